"""Bulk delivery: many holding records become delivering records, column by column.

Holding records of one shape (the same lengths, waiting for the same topic) differ in their bytes
only. They are laid under each other as the rows of a matrix, checked, and copied by columns into
the matrix of the delivering records; queues, tags and keys are taken out of columns too. A shape
with few records is copied record by record (`delivering`). Both ways give the same bytes.

Example: 1,000 reminders of 412 bytes that wait for queues 0 to 7 of ``orders`` are one matrix of
1,000 x 412 bytes, from which one of 1,000 x 322 is made.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from queues.store.batch import (
    CRC_BYTES,
    CRC_ROOM,
    ID_AT,
    ID_BYTES,
    LEADING_BYTES,
    Entries,
    Sealed,
    hashes_of_columns,
)
from queues.store.commitlog import CommitLog
from queues.store.delivering import Due, Shape, deliver_one, new_parts
from queues.store.digits import digits_of
from queues.store.grouping import members_by_number
from queues.store.hashes import index_hashes
from queues.store.held import HOLDING, tag_and_keys
from queues.store.limits import VECTOR_RECORDS_MIN
from queues.store.queuetable import Queue
from queues.store.scattered import put_rows
from queues.store.seals import SEAL, are_seals, hold

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
#: The queue that a holding record is for, given its bytes and where its waiting is described; or
#: why it cannot go there.
RealOf = Callable[[bytes, int], Queue | str]

_REAL_QID = b"REAL_QID\x01"
_KEYS = b"KEYS\x01"
_SEPARATOR, _SPACE, _ASCII_END = 2, 32, 128
_ZERO, _TEN = np.uint8(48), 10
#: A whole record has its head, the leading properties and its CRC at least; less is damage.
_RECORD_BYTES_MIN = 91 + LEADING_BYTES + CRC_BYTES


@dataclass(slots=True)
class Bulk:
    """Holding records on their way, and what became of each, by their number in the request."""

    holding: Queue
    #: Where each lies, when it is due (ms), and its unit.
    log_offsets: Int64s
    dues: Int64s
    units: Int64s
    #: Sizes of the delivering records; 0 for what could not be delivered.
    sizes: Int64s
    #: The queues that the records go to: their numbers in the queue table, and in their topic.
    queue_numbers: Int64s
    queue_ids: Int64s
    property_at: Int64s
    tags: Int64s
    id_hashes: Int32s
    queues: dict[int, Queue] = field(default_factory=dict)
    #: Delivering records of one size, one a row, and their numbers.
    copied: list[tuple[Int64s, Octets]] = field(default_factory=list)
    #: Further index hashes, and the record that each belongs to.
    key_hashes: list[Int32s] = field(default_factory=list)
    key_owners: list[Int64s] = field(default_factory=list)
    #: What cannot be delivered: number, reason (None: damaged or gone).
    refused: dict[int, str | None] = field(default_factory=dict)

    def refuse(self, numbers: Int64s, reason: str | None) -> None:
        """Leave out what cannot be delivered."""
        self.refused.update(dict.fromkeys(numbers.tolist(), reason))


def deliver_bulk(
    holding: Queue, log: CommitLog, sizes: Int64s, log_offsets: Int64s, dues: Int64s,
    units: Int64s, real_of: RealOf,
) -> tuple[Sealed, dict[int, str | None]]:  # fmt: skip
    """Seal the delivering records in the order given; what is damaged or refused is left out.

    Returns also the numbers of what was left out, with the reason; None for a damaged record.
    """
    count = len(sizes)
    sizes_made, queue_numbers, queue_ids, property_at, tags = np.zeros((5, count), np.int64)
    bulk = Bulk(
        holding, log_offsets, dues, units, sizes_made, queue_numbers, queue_ids, property_at, tags,
        np.zeros(count, np.int32),
    )  # fmt: skip
    for size in np.unique(sizes).tolist():
        numbers = np.flatnonzero(sizes == size)
        if size < _RECORD_BYTES_MIN:
            bulk.refuse(numbers, None)
            continue
        matrix, there = log.read_rows(log_offsets[numbers], size)
        if not there.all():
            bulk.refuse(numbers[~there], None)
            numbers, matrix = numbers[there], matrix[there]
        _deliver_size(bulk, numbers, matrix, real_of)
    return _sealed(bulk), bulk.refused


def _deliver_size(bulk: Bulk, numbers: Int64s, matrix: Octets, real_of: RealOf) -> None:
    """Deliver the records of one length: those of one shape together."""
    whole = _whole(matrix)
    if not whole.all():
        bulk.refuse(numbers[~whole], None)
        numbers, matrix = numbers[whole], matrix[whole]
    while len(numbers):
        raw = matrix[0].tobytes()
        own_end = raw.rfind(HOLDING) + 1
        queue_at = raw.index(b"\x02", own_end) + 1 + len(_REAL_QID)
        queue_end = raw.index(b"\x02", queue_at)
        digits = matrix[:, queue_at:queue_end] - _ZERO
        alike = (matrix[:, own_end - 1 : queue_at] == matrix[0, own_end - 1 : queue_at]).all(axis=1)
        alike &= (matrix[:, 84:88] == matrix[0, 84:88]).all(axis=1)
        alike &= (digits < _TEN).all(axis=1) & (matrix[:, queue_end] == _SEPARATOR)
        mine, rows = numbers, matrix
        if alike.all():
            numbers = numbers[:0]
        else:
            alike[0] = True
            mine, rows, digits = numbers[alike], matrix[alike], digits[alike]
            numbers, matrix = numbers[~alike], matrix[~alike]
        mine, rows = _find_queues(bulk, mine, rows, digits, own_end, real_of)
        if not len(mine):
            continue
        real = bulk.queues[int(bulk.queue_numbers[mine[0]])]
        shape = Shape(len(raw), int.from_bytes(raw[84:88], "big"), own_end, real)
        if len(mine) < VECTOR_RECORDS_MIN:
            _copy_each(bulk, mine, rows, shape)
        else:
            _copy_columns(bulk, mine, rows, shape)


def _find_queues(
    bulk: Bulk, numbers: Int64s, rows: Octets, digits: Octets, own_end: int, real_of: RealOf
) -> tuple[Int64s, Octets]:
    """Find the queues that records of one topic go to; what has none is refused and left out."""
    queue_ids = np.zeros(len(numbers), np.int64)
    for column in digits.T:
        queue_ids = queue_ids * 10 + column
    found, firsts, inverse = np.unique(queue_ids, return_index=True, return_inverse=True)
    places = np.zeros(len(found), np.int64)
    refused: dict[int, str] = {}
    for position, first in enumerate(firsts.tolist()):
        real = real_of(rows[first].tobytes(), own_end)
        if isinstance(real, str):
            refused[position] = real
        else:
            bulk.queues[real.index] = real
            places[position] = real.index
    bulk.queue_numbers[numbers], bulk.queue_ids[numbers] = places[inverse], queue_ids
    if not refused:
        return numbers, rows
    for position, reason in refused.items():
        bulk.refuse(numbers[inverse == position], reason)
    kept = ~np.isin(inverse, list(refused))
    return numbers[kept], rows[kept]


def _whole(matrix: Octets) -> npt.NDArray[np.bool_]:
    """Which records' property CRC, which covers all of a record, holds."""
    count, size = matrix.shape
    seals = np.ascontiguousarray(matrix[:, size - CRC_BYTES :]).view(SEAL)[:, 0]
    starts = np.arange(0, count * size, size)
    return are_seals(seals) & hold(seals, matrix.reshape(-1), starts, starts + size - CRC_BYTES)


def _copy_each(bulk: Bulk, numbers: Int64s, rows: Octets, shape: Shape) -> None:
    property_at = 91 + shape.body_bytes + len(shape.real.topic)
    own_at = 91 + shape.body_bytes + len(bulk.holding.topic) + LEADING_BYTES
    for row, number in enumerate(numbers.tolist()):
        raw = rows[row].tobytes()
        real = bulk.queues[int(bulk.queue_numbers[number])]
        due = Due(raw, int(bulk.log_offsets[number]), shape.own_end, real, 0, 0)
        record = np.frombuffer(deliver_one(due, shape._replace(real=real)), np.uint8)[None]
        bulk.copied.append((numbers[row : row + 1], record))
        bulk.sizes[number] = record.shape[1]
        bulk.property_at[number] = property_at
        columns = record[:, property_at + ID_AT :][:, :ID_BYTES]
        bulk.id_hashes[number] = hashes_of_columns(real.topic, columns)[0]
        _take_keys(bulk, number, raw[own_at : shape.own_end], real)


def _take_keys(bulk: Bulk, number: int, own: bytes, real: Queue) -> None:
    tag, keys = tag_and_keys(own)
    bulk.tags[number] = tag
    if keys:
        bulk.key_hashes.append(index_hashes([f"{real.topic}#{key}" for key in keys]))
        bulk.key_owners.append(np.full(len(keys), number, np.int64))


def _copy_columns(bulk: Bulk, numbers: Int64s, source: Octets, shape: Shape) -> None:
    body_end, property_at, middle, size = new_parts(shape, source[0].tobytes())
    target = np.empty((len(numbers), int.from_bytes(size, "big")), np.uint8)
    at = body_end + len(middle)
    target[:, :4] = np.frombuffer(size, np.uint8)
    target[:, 4:12] = source[:, 4:12]
    target[:, 12:16] = bulk.queue_ids[numbers].astype(">u4").view(np.uint8).reshape(-1, 4)
    target[:, 16:body_end] = source[:, 16:body_end]
    target[:, body_end:at] = np.frombuffer(middle, np.uint8)
    target[:, at : at + 29] = source[:, property_at : property_at + 29]
    target[:, at + 29] = ord("H")
    target[:, at + 30 : at + 50] = digits_of(bulk.log_offsets[numbers], 20)
    rest = at + shape.own_end - property_at
    target[:, at + 50 : rest] = source[:, property_at + 50 : shape.own_end]
    target[:, rest:] = np.frombuffer(CRC_ROOM, np.uint8)
    bulk.copied.append((numbers, target))
    bulk.sizes[numbers] = target.shape[1]
    bulk.property_at[numbers] = at
    unique_ids = target[:, at + ID_AT : at + ID_AT + ID_BYTES]
    bulk.id_hashes[numbers] = hashes_of_columns(shape.real.topic, unique_ids)
    own_at = property_at + LEADING_BYTES
    _keys_of_columns(bulk, numbers, source[:, own_at : shape.own_end], shape.real)


def _keys_of_columns(bulk: Bulk, numbers: Int64s, own: Octets, real: Queue) -> None:
    """Tags and keys of records whose own properties are the rows of a matrix."""
    if not own.shape[1]:
        return
    first = own[0].tobytes()
    tag_end = first.index(b"\x02") + 1 if first.startswith(b"TAGS\x01") else 0
    start = tag_end + len(_KEYS) if first[tag_end:].startswith(_KEYS) else tag_end
    end = first.index(b"\x02", start) + 1 if start > tag_end else start
    same = (own[:, :start] == own[0, :start]).all()
    keys = own[:, start : max(start, end - 1)]
    plain = ((keys != _SPACE) & (keys != _SEPARATOR) & (keys < _ASCII_END)).all()
    closed = end == start or (own[:, end - 1] == _SEPARATOR).all()
    if not (same and plain and closed) or (start == tag_end and _may_begin_otherwise(own, start)):
        for number, row in zip(numbers.tolist(), own, strict=True):
            _take_keys(bulk, number, row.tobytes(), real)
        return
    bulk.tags[numbers] = tag_and_keys(first)[0]
    if keys.shape[1]:
        bulk.key_hashes.append(hashes_of_columns(real.topic, keys))
        bulk.key_owners.append(numbers)


def _may_begin_otherwise(own: Octets, start: int) -> bool:
    """Whether a row may have a tag or keys where the first row has none."""
    for name in (b"TAGS\x01", _KEYS):
        columns = own[:, start : start + len(name)]
        if columns.shape[1] == len(name) and (
            (columns == np.frombuffer(name, np.uint8)).all(axis=1).any()
        ):
            return True
    return False


def _sealed(bulk: Bulk) -> Sealed:
    chosen = np.flatnonzero(bulk.sizes)
    count, sizes = len(chosen), bulk.sizes[chosen]
    places = np.zeros(len(bulk.sizes), np.int64)
    places[chosen] = starts = np.cumsum(sizes) - sizes
    data = bytearray(int(sizes.sum()))
    for numbers, rows in bulk.copied:
        put_rows(data, places[numbers], rows)
    renumbered = np.full(len(bulk.sizes), -1, np.int64)
    renumbered[chosen] = np.arange(count)
    hashes = np.concatenate((bulk.id_hashes[chosen], *bulk.key_hashes))
    owners = np.concatenate((np.arange(count), *(renumbered[n] for n in bulk.key_owners)))
    order = np.argsort(owners, kind="stable")
    queue_numbers = bulk.queue_numbers[chosen]
    nothing = np.zeros(count, np.int64)
    entries = Entries(
        sizes, bulk.property_at[chosen], [bulk.queues[n] for n in queue_numbers.tolist()],
        bulk.tags[chosen], bulk.dues[chosen], nothing, nothing, [bulk.holding] * count,
        bulk.units[chosen], nothing, hashes[order], owners[order],
        members=members_by_number(queue_numbers),
    )  # fmt: skip
    return Sealed(data, starts.tolist(), entries)
