"""The timer's bytes: a slot of the `timerwheel` file, a unit of the TimerLog, and RocketMQ's rules.

One slot, 32 bytes, big-endian; slot ``(time_ms / P) mod (2 x window)`` of the file (P: precision):

| At | Bytes | Field | Meaning |
|---|---|---|---|
| 0 | 8 | time | the slot's time in ms divided by P |
| 8 | 8 | first | TimerLog position of the oldest unit of the chain |
| 16 | 8 | last | TimerLog position of the newest unit |
| 24 | 4 | count | units in the chain |
| 28 | 4 | magic | reserved |

One TimerLog unit, 52 bytes, big-endian:

| At | Bytes | Field | Meaning |
|---|---|---|---|
| 0 | 4 | size | 52 |
| 4 | 8 | previous | position of the next older unit of the same slot, or -1 |
| 12 | 4 | magic | DEFAULT 1, ROLL 2, DELETE 4 |
| 16 | 8 | written_ms | when it was written, floored to P |
| 24 | 4 | delay_ms | the slot's time minus `written_ms` |
| 28 | 8 | log_offset | the record's address in the CommitLog |
| 36 | 4 | record_size | its size |
| 40 | 4 | topic_hash | Java's hash of the real topic (metrics) |
| 44 | 8 | reserved | 0 in RocketMQ; here `pack_reserved` |

A slot named OUT holds what is due in (OUT, OUT + P]. Worked example with P = 1000: a message due at
1,700,000,000,250 lies in slot 1,700,000,000,000, its unit keeps 250 in the reserved bytes, and in a
wheel of 604,800 slots the slot is number 512,000 + 0, byte 16,384,000 of the file.

Invariant: the last written bit of a unit's reserved bytes is 1, so that a unit whose end was never
written (a stop in the middle of a write, a page that never reached the disk) is seen to be torn.
"""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SLOT = np.dtype(
    [("time", ">i8"), ("first", ">i8"), ("last", ">i8"), ("count", ">i4"), ("magic", ">i4")]
)
TIMER_UNIT = np.dtype(
    [
        ("size", ">i4"),
        ("previous", ">i8"),
        ("magic", ">i4"),
        ("written_ms", ">i8"),
        ("delay_ms", ">i4"),
        ("log_offset", ">i8"),
        ("record_size", ">i4"),
        ("topic_hash", ">i4"),
        ("reserved", ">i8"),
    ]
)
SLOT_BYTES = SLOT.itemsize
TIMER_UNIT_BYTES = TIMER_UNIT.itemsize

MAGIC_DEFAULT = 1
MAGIC_ROLL = 2
MAGIC_DELETE = 4
#: A unit whose magic has a bit beyond these is no unit.
MAGIC_BITS = 0x0F

#: What ends a TimerLog file: size of the rest, a previous position of 0, and this magic.
BLANK = np.dtype([("size", ">i4"), ("previous", ">i8"), ("magic", ">u4")])
BLANK_MAGIC = 0xCBD43194
#: Bytes that RocketMQ keeps free at the end of a TimerLog file.
BLANK_BYTES_MIN = BLANK.itemsize

#: The milliseconds within the slot have 17 bits, so a slot may be as wide as this.
PRECISION_MS_MAX = 100_000
_OFFSET_IN_SLOT_BITS = 17
#: The queue offset has the 45 bits that are left beside the sign.
TIMER_QUEUE_OFFSET_MAX = (1 << 45) - 1

Longs = npt.NDArray[np.int64]


def slot_of(due_ms: int, precision_ms: int) -> int:
    """RocketMQ's TIMER_OUT_MS: the start of the slot (OUT, OUT + P] that holds `due_ms`."""
    return (due_ms - 1) // precision_ms * precision_ms


def slots_of(due_ms: Longs, precision_ms: int) -> Longs:
    """`slot_of` for many at once."""
    return (due_ms - 1) // precision_ms * precision_ms


def fires_at(due_ms: int, precision_ms: int) -> int:
    """When RocketMQ hands a message over at the earliest: the end of its slot."""
    return slot_of(due_ms, precision_ms) + precision_ms


def wheel_index(slot_ms: int, precision_ms: int, window_slots: int) -> int:
    """The slot's number in the file of ``2 x window_slots`` slots."""
    return slot_ms // precision_ms % (2 * window_slots)


def pack_reserved(offset_in_slot_ms: Longs, queue_offset: Longs) -> Longs:
    """Milliseconds within the slot (0: overdue when written) and queue offset, as one long."""
    return (queue_offset << (_OFFSET_IN_SLOT_BITS + 1)) | (offset_in_slot_ms << 1) | 1


def unpack_reserved(reserved: npt.NDArray[Any]) -> tuple[Longs, Longs]:
    """The two numbers that `pack_reserved` joined."""
    native = reserved.astype(np.int64)
    return (native >> 1) & ((1 << _OFFSET_IN_SLOT_BITS) - 1), native >> (_OFFSET_IN_SLOT_BITS + 1)


def whole_units(units: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which of our units were written to their last byte."""
    magic = units["magic"]
    whole = (units["size"] == TIMER_UNIT_BYTES) & (magic > 0) & (magic <= MAGIC_BITS)
    return np.asarray(whole & ((units["reserved"] & 1) == 1), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class RollPlacement:
    """Where RocketMQ lets a message wait."""

    #: How long until its slot is read, ms.
    wait_ms: int
    #: Whether it is then put into the timer topic once more.
    rolled: bool


def place_as_rocketmq(remaining_ms: int, *, window_ms: int) -> RollPlacement:
    """RocketMQ's roll rule (spec 4.4) for a message whose slot is `remaining_ms` ahead.

    Ours is in `scheduler.wheel.placement`; this one explains a real broker's TimerLog.
    """
    overshoot_ms = remaining_ms - window_ms
    if overshoot_ms < 0:
        return RollPlacement(remaining_ms, rolled=False)
    if overshoot_ms < window_ms // 3:
        return RollPlacement(window_ms // 2, rolled=True)
    return RollPlacement(window_ms, rolled=True)


def hops_as_rocketmq(remaining_ms: int, *, window_ms: int) -> list[int]:
    """The waits, ms, that RocketMQ strings together until the message is due."""
    hops = []
    while True:
        placement = place_as_rocketmq(remaining_ms, window_ms=window_ms)
        hops.append(placement.wait_ms)
        if not placement.rolled:
            return hops
        remaining_ms -= placement.wait_ms


@dataclass(frozen=True, slots=True)
class RecallHandle:
    """What RocketMQ's client is given to cancel a timed message (version 1)."""

    topic: str
    broker: str
    #: Milliseconds; any time that falls into the message's slot.
    timestamp_ms: int
    message_id: str

    def encode(self) -> str:
        """The handle as the client sees it."""
        plain = f"v1 {self.topic} {self.broker} {self.timestamp_ms} {self.message_id}"
        return base64.urlsafe_b64encode(plain.encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "RecallHandle":
        """The handle's parts; `ValueError` for anything that is no handle of version 1."""
        try:
            plain = base64.b64decode(text, altchars=b"-_", validate=True).decode()
            version, topic, broker, timestamp_ms, message_id = plain.split(" ")
            handle = cls(topic, broker, int(timestamp_ms), message_id)
        except ValueError as error:
            raise ValueError(f"not a recall handle: {text!r}") from error
        if version != "v1":
            raise ValueError(f"not a recall handle of version 1: {text!r}")
        return handle
