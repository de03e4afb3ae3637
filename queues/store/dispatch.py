"""Dispatch: from records in the log to all that is derived from them.

One function serves the writer (step 4 of one write), the repair of a half-done write, and a rebuild
from the log. Doing it twice for the same records changes nothing: a ConsumeQueue unit, a schedule
entry and a settled word have their place from the record itself, and the index is first wound back
to where the write began.
"""

import struct
from collections.abc import Callable, Sequence

import numpy as np

from queues.store.batch import Entries
from queues.store.consumequeue import DISK_UNIT, UNIT_BYTES, ConsumeQueues
from queues.store.index import IndexSet
from queues.store.limits import VECTOR_RECORDS_MIN
from queues.store.names import SCHEDULE_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.schedule import ScheduleTable

_UNIT = struct.Struct(">qiq")
#: Gives the schedule table of a holding queue.
TableOf = Callable[[Queue], ScheduleTable]


class Dispatcher:
    """Brings ConsumeQueues, schedule tables, index and queue table up to date."""

    def __init__(
        self, queues: QueueTable, consume_queues: ConsumeQueues, index: IndexSet, table_of: TableOf
    ) -> None:
        self._queues, self._consume_queues = queues, consume_queues
        self._index, self._table_of = index, table_of

    def apply(self, entries: Entries, index_file: int) -> None:
        """Derive everything from the records (under the append lock)."""
        groups = _by_queue(entries.queues)
        for members in groups:
            self._units(entries, members)
        self._settle(entries)
        self._index_entries(entries, index_file)
        for members in groups:
            last = members[-1]
            queue, end = entries.queues[last], entries.queue_offsets[last] + 1
            if end > self._queues.max(queue):
                self._queues.set_max(queue, end)

    def _index_entries(self, entries: Entries, index_file: int) -> None:
        if isinstance(entries.hashes, list):
            places, times = entries.log_offsets, entries.store_ms
            few = [
                (key_hash, places[owner], times[owner])
                for key_hash, owner in zip(entries.hashes, entries.owners, strict=True)
            ]
            self._index.file(index_file).append_few(few)
        elif len(entries.hashes):
            log_offsets = np.array(entries.log_offsets, np.int64)[entries.owners]
            store_ms = np.array(entries.store_ms, np.int64)[entries.owners]
            self._index.file(index_file).append(entries.hashes, log_offsets, store_ms)

    def _units(self, entries: Entries, members: list[int]) -> None:
        """Write the ConsumeQueue units and schedule entries of one queue."""
        queue = entries.queues[members[0]]
        tags = entries.dues if queue.topic == SCHEDULE_TOPIC else entries.tags
        for run in _contiguous(entries.queue_offsets, members):
            data = _pack(entries.log_offsets, entries.sizes, tags, run)
            first = entries.queue_offsets[run[0]]
            self._consume_queues.make_room(queue.topic, queue.queue_id, first + len(run))
            self._consume_queues.write(queue.topic, queue.queue_id, first, data)
        if queue.scheduled:
            self._schedule(entries, members, self._table_of(queue))

    def _schedule(self, entries: Entries, members: list[int], table: ScheduleTable) -> None:
        if len(members) < VECTOR_RECORDS_MIN:
            for number in members:
                table.add(
                    entries.queue_offsets[number],
                    entries.dues[number],
                    entries.topic_numbers[number],
                )
            return
        chosen = np.array(members)
        table.add_many(
            np.array(entries.queue_offsets, np.int64)[chosen],
            np.array(entries.dues, np.int64)[chosen],
            np.array(entries.topic_numbers, np.int64)[chosen],
        )

    def _settle(self, entries: Entries) -> None:
        """Point the settled words of what the records continue at the records."""
        for members in _by_queue(entries.source_queues):
            source = entries.source_queues[members[0]]
            assert source is not None
            table = self._table_of(source)
            if len(members) < VECTOR_RECORDS_MIN:
                for number in members:
                    table.settle(entries.units[number], entries.log_offsets[number])
            else:
                chosen = np.array(members)
                table.settle_many(
                    np.array(entries.units, np.int64)[chosen],
                    np.array(entries.log_offsets, np.int64)[chosen],
                )


def _by_queue(queues: Sequence[Queue | None]) -> list[list[int]]:
    """The numbers of the records of each queue; records without one are left out."""
    first = queues[0] if queues else None
    if queues and queues.count(first) == len(queues):
        return [] if first is None else [list(range(len(queues)))]
    groups: dict[Queue, list[int]] = {}
    for number, queue in enumerate(queues):
        if queue is not None:
            groups.setdefault(queue, []).append(number)
    return list(groups.values())


def _contiguous(queue_offsets: Sequence[int], members: list[int]) -> list[list[int]]:
    """Split the members where their queue offsets jump (only damage makes them jump)."""
    first, last = queue_offsets[members[0]], queue_offsets[members[-1]]
    if last - first + 1 == len(members):
        return [members]
    runs, run = [], [members[0]]
    for number in members[1:]:
        if queue_offsets[number] != queue_offsets[run[-1]] + 1:
            runs.append(run)
            run = []
        run.append(number)
    return [*runs, run]


def _pack(
    log_offsets: Sequence[int], sizes: Sequence[int], tags: Sequence[int], run: list[int]
) -> bytes:
    if len(run) < VECTOR_RECORDS_MIN:
        pack = _UNIT.pack
        return b"".join([pack(log_offsets[at], sizes[at], tags[at]) for at in run])
    units = np.empty(len(run), DISK_UNIT)
    assert units.itemsize == UNIT_BYTES
    if len(run) == len(log_offsets):
        units["log_offset"], units["size"], units["tags_code"] = log_offsets, sizes, tags
    else:
        units["log_offset"] = [log_offsets[at] for at in run]
        units["size"] = [sizes[at] for at in run]
        units["tags_code"] = [tags[at] for at in run]
    return units.tobytes()
