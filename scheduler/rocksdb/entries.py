"""The bytes of the timeline: a key and a value for each waiting message, and two notes.

| Key, from byte | Bytes | Field |
|---|---|---|
| 0 | 8 | due time in ms, big-endian: keys lie in the order of due times |
| 8 | 1 to 127 | the topic that the message is for |
| then | 32 | its unique id |

| Value, from byte | Bytes | Field |
|---|---|---|
| 0 | 8 | log offset of the holding record, big-endian |
| 8 | 8 | its queue offset in the timer topic, for sorting and settling |

So a renewed message replaces its entry, and what is cancelled is found by what the cancel says. Two
messages with one key (a group's retries of one message, after a reset) have both values, one behind
the other. What is late when it is enqueued has the settled hand's time + 1 in its key instead of
its due time, and is found late by its settled word.

Keys of the two notes begin with 0xFF, behind every time:

| Key | Value |
|---|---|
| `FF "checkpoint"` | `Checkpoint`: what is known to be on the device |
| `FF "floor"` | `Floor`: written with every batch, so as durable as the batch itself |

Example: a message due at 1,700,000,000,250 for `orders` has the key 00 00 01 8B CF E5 68 FA,
"orders", and its id.
"""

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import Longs

TIME_BYTES = 8
ID_BYTES = 32
VALUE = np.dtype([("log_offset", ">i8"), ("queue_offset", ">i8")])
VALUE_BYTES = VALUE.itemsize
CHECKPOINT_KEY = b"\xffcheckpoint"
FLOOR_KEY = b"\xfffloor"
#: No time reaches here; the notes lie behind it.
TIMES_END = b"\xff"

_CHECKPOINT = struct.Struct(">8q")
_FLOOR = struct.Struct(">q")
_VERSION = 1

Octets = npt.NDArray[np.uint8]
#: A key and its value.
Entry = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Floor:
    """How early the times of the last batches are."""

    #: No entry of the batches since the durable checkpoint has a time at or before this, ms. (The
    #: clock may have been set back since that checkpoint.)
    floor_ms: int

    def encode(self) -> bytes:
        """The note's bytes."""
        return _FLOOR.pack(self.floor_ms)

    @classmethod
    def decode(cls, data: bytes) -> "Floor":
        """The note that `encode` made."""
        return cls(*_FLOOR.unpack(data))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is known to be on the device."""

    #: Slots before this time hold nothing unsettled, ms.
    settled_ms: int
    #: The first queue offset of the timer topic that may not be in the timeline.
    queue_offset: int
    #: The first record of the journal that was not looked at for a cancel.
    journal_offset: int
    #: When it was noted, ms.
    written_ms: int
    #: Of which store the timeline tells, and its slot width.
    store_id: int
    precision_ms: int
    #: What lies before this time was removed, ms.
    cleaned_ms: int = 0

    def encode(self) -> bytes:
        """The note's bytes."""
        return _CHECKPOINT.pack(
            _VERSION, self.settled_ms, self.queue_offset, self.journal_offset, self.written_ms,
            self.store_id, self.precision_ms, self.cleaned_ms,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> "Checkpoint | None":
        """The note that `encode` made; None for another version's."""
        if len(data) != _CHECKPOINT.size:
            return None
        version, *fields = _CHECKPOINT.unpack(data)
        return cls(*fields) if version == _VERSION else None


def time_key(time_ms: int) -> bytes:
    """The first key that a message due at this time could have."""
    return time_ms.to_bytes(TIME_BYTES, "big")


def keys_for(times_ms: Longs, topics: list[str], ids: Octets) -> list[bytes]:
    """The keys of messages, in the order given."""
    keys: list[bytes] = [b""] * len(topics)
    names = np.array(topics)
    for topic in set(topics):
        mine = np.flatnonzero(names == topic)
        name = np.frombuffer(topic.encode(), np.uint8)
        rows = np.empty((len(mine), TIME_BYTES + len(name) + ID_BYTES), np.uint8)
        rows[:, :TIME_BYTES] = times_ms[mine].astype(">i8").view(np.uint8).reshape(-1, TIME_BYTES)
        rows[:, TIME_BYTES:-ID_BYTES] = name
        rows[:, -ID_BYTES:] = ids[mine]
        for number, key in zip(mine.tolist(), _rows(rows), strict=True):
            keys[number] = key
    return keys


def values_of(log_offsets: Longs, queue_offsets: Longs) -> list[bytes]:
    """The values of messages."""
    values = np.empty(len(log_offsets), VALUE)
    values["log_offset"], values["queue_offset"] = log_offsets, queue_offsets
    data = values.tobytes()
    return [data[at : at + VALUE_BYTES] for at in range(0, len(data), VALUE_BYTES)]


def times_of(keys: list[bytes]) -> Longs:
    """The times in keys, ms."""
    times = np.frombuffer(b"".join([key[:TIME_BYTES] for key in keys]), ">i8")
    return times.astype(np.int64)


def _rows(matrix: Octets) -> list[bytes]:
    data, width = matrix.tobytes(), matrix.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]
