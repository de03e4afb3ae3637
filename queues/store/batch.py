"""A batch: records encoded before the append lock, but for what only the lock decides.

Left open in each record are queue offset, log offset, store time, the property CRC, and the due
time of a level (store time + delay). They have fixed places: see `record` and, for the leading
properties that Postdate writes, this table (byte from the start of the properties):

=====  ===================================  ===================================
byte   property                             value
=====  ===================================  ===================================
0      ``PD_DUE``                           13 digits at byte 7
21     ``PD_FROM``                          a letter at 29 and 20 digits at 30
51     ``PD_KIND``                          a letter at 59 and 3 digits at 60
64     ``PD_VERSION``                       6 digits at byte 75
82     ``UNIQ_KEY``                         32 hex digits at byte 91
124    then ``TAGS``, ``KEYS``, ``PD_BY``, the user's, ``REAL_TOPIC``, ``REAL_QID``, ``DELAY`` or
       ``TIMER_DELIVER_MS`` and ``TIMER_OUT_MS``, and last ``__CRC32#``
=====  ===================================  ===================================
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.errors import MessageIllegal
from queues.store.hashes import index_hashes, java_hash
from queues.store.limits import PROPERTIES_BYTES_MAX, VECTOR_RECORDS_MIN
from queues.store.marks import LedgerMark
from queues.store.queuetable import Queue
from queues.store.scattered import rows_at

#: The first 88 bytes of a record: all fixed fields before the body.
HEAD = struct.Struct(">iIiiiqqiq8sq8siqi")
MAGIC_V1 = 0xDAA320A7
HOST = bytes((127, 0, 0, 1, 0, 0, 0, 0))
#: A record's size without body, topic and properties.
FIXED_BYTES = 91

DUE_AT, FROM_LETTER_AT, FROM_AT, KIND_AT, LEVEL_AT, VERSION_AT, ID_AT = 7, 29, 30, 59, 60, 75, 91
ID_BYTES = 32
LEADING_BYTES = 124
CRC_BYTES = 20
CRC_ROOM = b"__CRC32#\x010000000000\x02"

LEADING = (
    b"PD_DUE\x01%013d\x02PD_FROM\x01%b%020d\x02PD_KIND\x01%b%03d\x02PD_VERSION\x01%06d\x02"
    b"UNIQ_KEY\x01%b\x02"
)

_POWERS = np.array([pow(31, 31 - position, 1 << 32) for position in range(32)], np.uint32)
_POWER_32 = pow(31, 32, 1 << 32)
_INT_MIN = 1 << 31
_prefix_hashes: dict[str, int] = {}

Hashes = npt.NDArray[np.int32] | list[int]
Numbers = npt.NDArray[np.int64] | list[int]
Int64s = npt.NDArray[np.int64]
#: One number a record: a sequence for a few, an array for many.
Column = Sequence[int] | Int64s


#: What dispatching needs to know of one record, a plain tuple because making a named one costs more
#: than all the rest of a small record: size, where its properties begin, its queue, the tag's code,
#: due time in ms, delay in ms of a level whose due time the lock decides (else 0), number of the
#: real topic, and what it settles: queue (None: nothing), unit, and the word expected there.
Row = tuple[int, int, Queue, int, int, int, int, Queue | None, int, int]
_COLUMNS = (
    "sizes", "property_at", "queues", "tags", "dues", "delays", "topic_numbers", "source_queues",
    "units", "expected",
)  # fmt: skip


class Source(NamedTuple):
    """What a record settles: a unit of a holding queue, if its word still is `expected`."""

    queue: Queue
    unit: int
    expected: int


@dataclass(slots=True)
class Batch:
    """Encoded records, and what dispatching needs to know of each."""

    records: list[bytes] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    #: ``topic#key`` texts, and the record that each belongs to.
    key_texts: list[str] = field(default_factory=list)
    key_owners: list[int] = field(default_factory=list)
    #: Numbers of records that settle a ledger entry, and which.
    marks: list[tuple[int, LedgerMark]] = field(default_factory=list)

    def add_keys(self, topic: str, keys: Sequence[str]) -> None:
        """Index the record added last under these keys too."""
        owner = len(self.rows) - 1
        for key in keys:
            self.key_texts.append(f"{topic}#{key}")
            self.key_owners.append(owner)


@dataclass(slots=True)
class Entries:
    """What dispatching needs to know of some records, one entry a record in each column."""

    sizes: Column
    #: Where each record's properties begin.
    property_at: Column
    queues: Sequence[Queue]
    tags: Column
    dues: Column
    #: Delays of levels whose due time the lock has yet to decide.
    delays: Column
    topic_numbers: Column
    #: The holding unit that each record settles: its queue (None: nothing), offset, and word.
    source_queues: Sequence[Queue | None]
    units: Column
    expected: Column
    #: Index hashes, and the record that each belongs to: lists for a few, arrays for many.
    hashes: Hashes
    owners: Numbers
    #: What the lock decided.
    log_offsets: Column = ()
    queue_offsets: Column = ()
    store_ms: Column = ()
    #: The numbers of the records of each queue, ascending, where they are known already.
    members: Sequence[Int64s] = ()
    #: Numbers of records that settle a ledger entry, and which.
    marks: Sequence[tuple[int, LedgerMark]] = ()


@dataclass(slots=True)
class Sealed:
    """A batch as bytes, with all that can be computed before the lock."""

    data: bytearray
    #: Where each record begins in `data`.
    starts: list[int]
    entries: Entries

    def without(self, lost: set[int]) -> "Sealed":
        """The batch but for the records numbered in `lost`."""
        kept = [number for number in range(len(self.starts)) if number not in lost]
        old = self.entries
        view = memoryview(self.data)
        data = bytearray()
        starts = []
        for number in kept:
            starts.append(len(data))
            start = self.starts[number]
            data += view[start : start + old.sizes[number]]
        renumbered = {number: place for place, number in enumerate(kept)}
        places = [at for at, owner in enumerate(old.owners) if int(owner) in renumbered]
        columns = [[getattr(old, name)[number] for number in kept] for name in _COLUMNS]
        hashes: Hashes = [int(old.hashes[at]) for at in places]
        owners: Numbers = [renumbered[int(old.owners[at])] for at in places]
        if len(kept) >= VECTOR_RECORDS_MIN:
            hashes, owners = np.array(hashes, np.int32), np.array(owners, np.int64)
        entries = Entries(*columns, hashes, owners)  # type: ignore[call-arg]
        entries.marks = [(renumbered[at], mark) for at, mark in old.marks if at in renumbered]
        return Sealed(data, starts, entries)


def column(values: Column) -> Int64s:
    """A column as an array."""
    return np.asarray(values, np.int64)


def numbers(values: Column) -> Sequence[int]:
    """A column as plain numbers."""
    return values.tolist() if isinstance(values, np.ndarray) else values


def checked_size(body: bytes, topic: bytes, properties_bytes: int) -> int:
    """The size of a record, given its topic with the length byte and its properties' length.

    Raises `MessageIllegal` for properties (CRC included) that are too long.
    """
    if properties_bytes > PROPERTIES_BYTES_MAX:
        raise MessageIllegal(properties_bytes=properties_bytes, maximum=PROPERTIES_BYTES_MAX)
    return FIXED_BYTES - 1 + len(body) + len(topic) + properties_bytes


def seal(batch: Batch) -> Sealed:
    """Join the records and hash their keys."""
    columns = list(zip(*batch.rows, strict=True)) if batch.rows else [()] * len(_COLUMNS)
    sizes, queues = columns[0], columns[2]
    starts, start = [], 0
    for size in sizes:
        starts.append(start)
        start += size
    data = bytearray(b"".join(batch.records))
    topics = [queue.topic for queue in queues]
    if len(starts) < VECTOR_RECORDS_MIN:
        hashes, owners = _few_hashes(batch, data, starts, columns[1], topics)
    else:
        ids = ids_of(data, starts, columns[1])
        hashes, owners = many_hashes(ids, topics, batch.key_texts, batch.key_owners)
    entries = Entries(*columns, hashes, owners)  # type: ignore[call-arg]
    entries.marks = batch.marks
    return Sealed(data, starts, entries)


def _few_hashes(
    batch: Batch, data: bytearray, starts: Sequence[int], property_at: Sequence[int],
    topics: list[str],
) -> tuple[Hashes, Numbers]:  # fmt: skip
    hashes = []
    for start, at, topic in zip(starts, property_at, topics, strict=True):
        place = start + at + ID_AT
        hashes.append(key_hash(topic, data[place : place + ID_BYTES]))
    owners = list(range(len(hashes)))
    for text, owner in zip(batch.key_texts, batch.key_owners, strict=True):
        topic, _, key = text.partition("#")
        hashes.append(key_hash(topic, key.encode("ascii")) if key.isascii() else _slow(text))
        owners.append(owner)
    return hashes, owners


def key_hash(topic: str, key: bytes | bytearray) -> int:
    """The index hash of ``topic#key`` for an ASCII key."""
    first, powers = _powers_of(len(key))
    value = (_topic_hash(topic) * first + sum(map(mul, key, powers))) & 0xFFFFFFFF
    if value >= _INT_MIN:
        value = (1 << 32) - value
    return 0 if value == _INT_MIN else value


@lru_cache(maxsize=256)
def _powers_of(length: int) -> tuple[int, tuple[int, ...]]:
    """31 to the length, and the powers by which the bytes of a key of that length count."""
    powers = [pow(31, exponent, 1 << 32) for exponent in range(length, -1, -1)]
    return powers[0], tuple(powers[1:])


def _slow(text: str) -> int:
    return int(index_hashes([text])[0])


def many_hashes(
    ids: npt.NDArray[np.uint8], topics: list[str], key_texts: list[str], key_owners: list[int]
) -> tuple[Hashes, Numbers]:
    """The index hashes of records' ids and keys, and the record that each belongs to, in order."""
    hashes = _hashes_of_ids(ids, topics)
    owners = np.arange(len(topics), dtype=np.int64)
    if key_texts:
        hashes = np.concatenate((hashes, index_hashes(key_texts)))
        owners = np.concatenate((owners, np.array(key_owners, np.int64)))
        order = np.argsort(owners, kind="stable")
        hashes, owners = hashes[order], owners[order]
    return hashes, owners


def ids_of(
    data: bytearray | bytes, starts: Sequence[int], property_at: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """The ids of records that begin with our properties, one a row."""
    at = np.array(starts, np.int64) + np.array(property_at, np.int64) + ID_AT
    return rows_at(data, at, ID_BYTES)


def id_hashes(
    data: bytearray | bytes, starts: Sequence[int], property_at: Sequence[int], topics: list[str]
) -> npt.NDArray[np.int32]:
    """The index hashes of ``topic#UNIQ_KEY`` for records that begin with our properties."""
    return _hashes_of_ids(ids_of(data, starts, property_at), topics)


def _hashes_of_ids(ids: npt.NDArray[np.uint8], topics: list[str]) -> npt.NDArray[np.int32]:
    if topics and topics.count(topics[0]) == len(topics):
        return hashes_of_columns(topics[0], ids)
    found = [_topic_hash(topic) * _POWER_32 & 0xFFFFFFFF for topic in topics]
    return _positive((ids.astype(np.uint32) @ _POWERS) + np.array(found, np.uint32))


def hashes_of_columns(topic: str, keys: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """The index hashes of ``topic#key`` for ASCII keys of one length, one a row."""
    width = keys.shape[1]
    powers = _POWERS if width == ID_BYTES else _powers(width)
    prefix = np.uint32(_topic_hash(topic) * pow(31, width, 1 << 32) & 0xFFFFFFFF)
    return _positive((keys.astype(np.uint32) @ powers) + prefix)


def _powers(width: int) -> npt.NDArray[np.uint32]:
    return np.array([pow(31, width - 1 - at, 1 << 32) for at in range(width)], np.uint32)


def _positive(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Java's absolute value; the one that has none counts as 0."""
    signed = values.astype(np.uint32).view(np.int32)
    return np.where(signed == -_INT_MIN, 0, np.abs(signed)).astype(np.int32)


def _topic_hash(topic: str) -> int:
    """Java's hash of ``topic#``, unsigned."""
    found = _prefix_hashes.get(topic)
    if found is None:
        found = _prefix_hashes[topic] = java_hash(f"{topic}#") & 0xFFFFFFFF
    return found
