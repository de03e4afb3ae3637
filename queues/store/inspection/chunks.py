"""A bounded run of records as columns, so that what is derived is checked many at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from queues.store.hashes import index_hashes
from queues.store.inspection.facts import (
    deciding_properties,
    due_of,
    has_unit,
    is_indexed,
    keys_of,
    tags_code_of,
)
from queues.store.inspection.log import LogWalk
from queues.store.inspection.runs import Run

#: Records in one chunk: some ten megabytes with their keys.
CHUNK_RECORDS: Final = 32_768

Int64s = npt.NDArray[np.int64]
#: Log offset, length, queue number, queue offset, tags code, due time.
Row = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records in log order, one place in each column a record."""

    #: Log offsets.
    offsets: Int64s
    #: Lengths.
    sizes: Int64s
    #: Number of the queue in ``QueueNumbers``; -1 for a record without a unit.
    queues: Int64s
    queue_offsets: Int64s
    #: What the units carry; ``TAGS_CODE_UNKNOWN`` where the record does not tell.
    tags_codes: Int64s
    #: Due times that our records tell, ms; -1 for a broker's.
    dues: Int64s
    #: Hash of each key that is indexed, and the place of its record in the columns.
    key_hashes: npt.NDArray[np.int32]
    key_owners: Int64s


class QueueNumbers:
    """Numbers the queues in the order in which records name them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bytes, int], int] = {}
        self.names: list[tuple[str, int]] = []

    def number(self, topic: bytes, queue_id: int) -> int:
        """Return the queue's number."""
        key = (topic, queue_id)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.names)
            self.names.append((topic.decode("utf-8", "replace"), queue_id))
        return found


def chunks(walk: LogWalk, numbers: QueueNumbers) -> Iterator[Chunk]:
    """Give all whole records of the log, chunk by chunk."""
    rows: list[Row] = []
    texts: list[str] = []
    owners: list[int] = []
    for run in walk.runs():
        _take(run, numbers, rows, texts, owners)
        if len(rows) >= CHUNK_RECORDS:
            yield _chunk(rows, texts, owners)
            rows, texts, owners = [], [], []
    if rows:
        yield _chunk(rows, texts, owners)


def _take(
    run: Run,
    numbers: QueueNumbers,
    rows: list[Row],
    texts: list[str],
    owners: list[int],
) -> None:
    base = run.base
    for at, size, queue_id, queue_offset, sys_flag, topic, properties in zip(
        run.ats,
        run.sizes,
        run.queue_ids,
        run.queue_offsets,
        run.sys_flags,
        run.topics,
        run.properties,
        strict=True,
    ):
        deciding = deciding_properties(properties)
        if is_indexed(sys_flag):
            name = topic.decode("utf-8", "replace")
            for key in keys_of(deciding):
                texts.append(f"{name}#{key}")
                owners.append(len(rows))
        queue = numbers.number(topic, queue_id) if has_unit(sys_flag) else -1
        code, due_ms = tags_code_of(topic, deciding), due_of(deciding)
        rows.append((base + at, size, queue, queue_offset, code, due_ms))


def _chunk(rows: list[Row], texts: list[str], owners: list[int]) -> Chunk:
    columns: Int64s = np.array(rows, dtype=np.int64).T
    hashes = index_hashes(texts)
    owner_numbers = np.array(owners, dtype=np.int64)
    offsets, sizes, queues, queue_offsets, codes, dues = columns
    return Chunk(offsets, sizes, queues, queue_offsets, codes, dues, hashes, owner_numbers)
