"""Bulk delivery: many holding records become delivering records, column by column.

Holding records of one shape (the same lengths, waiting for the same queue) differ in their bytes
only. They are laid under each other as the rows of a matrix, checked, and copied by columns into
the matrix of the delivering records; tags and keys are taken out of columns too. A shape with few
records is copied record by record (`delivering`). Both ways give the same bytes.

Example: 1,000 reminders of 412 bytes that wait for queue 3 of ``orders`` are one matrix of
1,000 x 412 bytes, from which one of 1,000 x 322 is made.
"""

import zlib
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
from queues.store.delivering import Due, Shape, deliver_one, new_parts
from queues.store.hashes import index_hashes
from queues.store.held import HOLDING, tag_and_keys
from queues.store.limits import VECTOR_RECORDS_MIN
from queues.store.queuetable import Queue

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
#: The queue that a holding record is for, given its bytes and where its waiting is described; or
#: why it cannot go there.
RealOf = Callable[[bytes, int], Queue | str]

_CRC_NAME = np.frombuffer(CRC_ROOM[:9], np.uint8)
_CRC_DIGITS = 10 ** np.arange(10, dtype=np.int64)
#: Log offsets have 19 digits at the most; ``PD_FROM`` begins with a zero.
_OFFSET_DIGITS = 10 ** np.arange(18, -1, -1, dtype=np.int64)
_KEYS = b"KEYS\x01"
_SEPARATOR, _SPACE, _ASCII_END = 2, 32, 128


@dataclass(slots=True)
class Bulk:
    """Holding records on their way, and what became of each, by their number in the request."""

    holding: Queue
    raws: list[bytes]
    #: Where each lies, when it is due (ms), and its unit.
    log_offsets: Int64s
    dues: Int64s
    units: Int64s
    #: The delivering records; empty for what could not be delivered. One stretch of bytes where
    #: all have the same shape.
    records: list[bytes]
    #: Their sizes; 0 for what could not be delivered.
    sizes: Int64s
    queues: list[Queue]
    property_at: Int64s
    tags: Int64s
    id_hashes: Int32s
    #: Further index hashes, and the record that each belongs to.
    key_hashes: list[Int32s] = field(default_factory=list)
    key_owners: list[Int64s] = field(default_factory=list)
    #: What cannot be delivered: number, reason (None: damaged).
    refused: dict[int, str | None] = field(default_factory=dict)


def deliver_bulk(
    holding: Queue, raws: list[bytes], log_offsets: Int64s, dues: Int64s, units: Int64s,
    real_of: RealOf,
) -> tuple[Sealed, dict[int, str | None]]:  # fmt: skip
    """Seal the delivering records in the order given; what is damaged or refused is left out.

    Returns also the numbers of what was left out, with the reason; None for a damaged record.
    """
    count = len(raws)
    bulk = Bulk(
        holding, raws, log_offsets, dues, units, [b""] * count, np.zeros(count, np.int64),
        [holding] * count, np.zeros(count, np.int64), np.zeros(count, np.int64),
        np.zeros(count, np.int32),
    )  # fmt: skip
    sizes = np.fromiter(map(len, raws), np.int64, count)
    for size in np.unique(sizes).tolist():
        numbers = np.flatnonzero(sizes == size)
        matrix = np.frombuffer(b"".join([raws[number] for number in numbers.tolist()]), np.uint8)
        _deliver_size(bulk, numbers, matrix.reshape(-1, size), real_of)
    return _sealed(bulk), bulk.refused


def _deliver_size(bulk: Bulk, numbers: Int64s, matrix: Octets, real_of: RealOf) -> None:
    """Deliver the records of one length: those of one shape together."""
    whole = _whole(matrix)
    for number in numbers[~whole].tolist():
        bulk.refused[number] = None
    numbers, matrix = numbers[whole], matrix[whole]
    while len(numbers):
        raw = bulk.raws[int(numbers[0])]
        own_end = raw.rfind(HOLDING) + 1
        real = real_of(raw, own_end)
        told_end = raw.index(b"\x02", raw.index(b"\x02", own_end) + 1) + 1
        alike = (matrix[:, own_end - 1 : told_end] == matrix[0, own_end - 1 : told_end]).all(axis=1)
        alike &= (matrix[:, 84:88] == matrix[0, 84:88]).all(axis=1)
        mine, rows = numbers[alike], matrix[alike]
        numbers, matrix = numbers[~alike], matrix[~alike]
        if isinstance(real, str):
            bulk.refused.update(dict.fromkeys(mine.tolist(), real))
            continue
        shape = Shape(len(raw), int.from_bytes(raw[84:88], "big"), own_end, real)
        if len(mine) < VECTOR_RECORDS_MIN:
            _copy_each(bulk, mine, shape)
        else:
            _copy_columns(bulk, mine, rows, shape)


def _whole(matrix: Octets) -> npt.NDArray[np.bool_]:
    """Which records' property CRC, which covers all of a record, holds."""
    count, size = matrix.shape
    view, crc32 = memoryview(matrix.tobytes()), zlib.crc32
    crcs = [crc32(view[start : start + size - CRC_BYTES]) for start in range(0, count * size, size)]
    told = (matrix[:, size - 11 : size - 1].astype(np.int64) - 48) @ _CRC_DIGITS
    named = (matrix[:, size - CRC_BYTES : size - 11] == _CRC_NAME).all(axis=1)
    found: npt.NDArray[np.bool_] = named & (told == (np.array(crcs, np.int64) & 0x7FFFFFFF))
    return found


def _copy_each(bulk: Bulk, numbers: Int64s, shape: Shape) -> None:
    property_at = 91 + shape.body_bytes + len(shape.real.topic)
    own_at = 91 + shape.body_bytes + len(bulk.holding.topic) + LEADING_BYTES
    for number in numbers.tolist():
        raw = bulk.raws[number]
        due = Due(raw, int(bulk.log_offsets[number]), shape.own_end, shape.real, 0, 0)
        record = bulk.records[number] = deliver_one(due, shape)
        bulk.queues[number] = shape.real
        bulk.sizes[number] = len(record)
        bulk.property_at[number] = property_at
        columns = np.frombuffer(record, np.uint8)[None, property_at + ID_AT :][:, :ID_BYTES]
        bulk.id_hashes[number] = hashes_of_columns(shape.real.topic, columns)[0]
        _take_keys(bulk, number, raw[own_at : shape.own_end], shape.real)


def _take_keys(bulk: Bulk, number: int, own: bytes, real: Queue) -> None:
    tag, keys = tag_and_keys(own)
    bulk.tags[number] = tag
    if keys:
        bulk.key_hashes.append(index_hashes([f"{real.topic}#{key}" for key in keys]))
        bulk.key_owners.append(np.full(len(keys), number, np.int64))


def _copy_columns(bulk: Bulk, numbers: Int64s, source: Octets, shape: Shape) -> None:
    raw = bulk.raws[int(numbers[0])]
    body_end, property_at, middle, size = new_parts(shape, raw)
    target = np.empty((len(numbers), int.from_bytes(size, "big")), np.uint8)
    at = body_end + len(middle)
    target[:, :4] = np.frombuffer(size, np.uint8)
    target[:, 4:12] = source[:, 4:12]
    target[:, 12:16] = np.frombuffer(shape.real.queue_id.to_bytes(4, "big"), np.uint8)
    target[:, 16:body_end] = source[:, 16:body_end]
    target[:, body_end:at] = np.frombuffer(middle, np.uint8)
    target[:, at : at + 29] = source[:, property_at : property_at + 29]
    target[:, at + 29 : at + 31] = np.frombuffer(b"H0", np.uint8)
    target[:, at + 31 : at + 50] = bulk.log_offsets[numbers, None] // _OFFSET_DIGITS % 10 + 48
    rest = at + shape.own_end - property_at
    target[:, at + 50 : rest] = source[:, property_at + 50 : shape.own_end]
    target[:, rest:] = np.frombuffer(CRC_ROOM, np.uint8)
    data, width = target.tobytes(), target.shape[1]
    if len(numbers) == len(bulk.raws):
        bulk.records, bulk.queues = [data], [shape.real] * len(numbers)
        bulk.sizes[:] = width
    else:
        for row, number in enumerate(numbers.tolist()):
            bulk.records[number] = data[row * width : row * width + width]
            bulk.queues[number] = shape.real
        bulk.sizes[numbers] = width
    bulk.property_at[numbers] = at
    ids = target[:, at + ID_AT : at + ID_AT + ID_BYTES]
    bulk.id_hashes[numbers] = hashes_of_columns(shape.real.topic, ids)
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
    kept, sizes = chosen.tolist(), bulk.sizes[chosen]
    renumbered = np.full(len(bulk.raws), -1, np.int64)
    renumbered[chosen] = np.arange(len(kept))
    hashes = np.concatenate((bulk.id_hashes[chosen], *bulk.key_hashes))
    owners = np.concatenate((np.arange(len(kept)), *(renumbered[n] for n in bulk.key_owners)))
    order = np.argsort(owners, kind="stable")
    nothing = [0] * len(kept)
    entries = Entries(
        sizes.tolist(), bulk.property_at[chosen].tolist(), [bulk.queues[n] for n in kept],
        bulk.tags[chosen].tolist(), bulk.dues[chosen].tolist(), nothing, nothing,
        [bulk.holding] * len(kept), bulk.units[chosen].tolist(), nothing,
        hashes[order], owners[order],
    )  # fmt: skip
    return Sealed(bytearray(b"".join(bulk.records)), (np.cumsum(sizes) - sizes).tolist(), entries)
