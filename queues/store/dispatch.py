"""Dispatch: from records in the log to all that is derived from them.

One function serves the writer (step 4 of one write), the repair of a half-done write, and a rebuild
from the log. Doing it twice for the same records changes nothing: a ConsumeQueue unit, a schedule
entry and a settled word have their place from the record itself, and the index is first wound back
to where the write began.
"""

import struct
from collections.abc import Callable, Sequence

import numpy as np

from queues.store.batch import Column, Entries, Int64s, column
from queues.store.consumequeue import DISK_UNIT, UNIT_BYTES, ConsumeQueues
from queues.store.index import IndexSet
from queues.store.limits import VECTOR_RECORDS_MIN
from queues.store.marks import LedgerMarks
from queues.store.names import SCHEDULE_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.schedule import ScheduleTable

_UNIT = struct.Struct(">qiq")
#: The numbers of some records, ascending: a list for a few, an array for many.
Members = list[int] | Int64s
#: Gives the schedule table of a holding queue.
TableOf = Callable[[Queue], ScheduleTable]


class Dispatcher:
    """Brings ConsumeQueues, schedule tables, index and queue table up to date."""

    def __init__(
        self, queues: QueueTable, consume_queues: ConsumeQueues, index: IndexSet, table_of: TableOf,
        marks: LedgerMarks,
    ) -> None:  # fmt: skip
        self._queues, self._consume_queues = queues, consume_queues
        self._index, self._table_of, self._marks = index, table_of, marks

    def apply(self, entries: Entries, index_file: int) -> None:
        """Derive everything from the records (under the append lock)."""
        groups = entries.members or _by_queue(entries.queues)
        for members in groups:
            self._units(entries, members)
        self._settle(entries)
        for number, mark in entries.marks:
            self._marks.settle(mark, int(entries.log_offsets[number]))
        self._index_entries(entries, index_file)
        for members in groups:
            last = members[-1]
            queue, end = entries.queues[last], int(entries.queue_offsets[last]) + 1
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
            log_offsets = column(entries.log_offsets)[entries.owners]
            store_ms = column(entries.store_ms)[entries.owners]
            self._index.file(index_file).append(entries.hashes, log_offsets, store_ms)

    def _units(self, entries: Entries, members: Members) -> None:
        """Write the ConsumeQueue units and schedule entries of one queue."""
        queue = entries.queues[members[0]]
        tags = entries.dues if queue.topic == SCHEDULE_TOPIC else entries.tags
        if len(members) == 1:
            (at,) = members
            unit = int(entries.queue_offsets[at])
            data = _UNIT.pack(entries.log_offsets[at], entries.sizes[at], tags[at])
            self._consume_queues.make_room(queue.topic, queue.queue_id, unit, unit + 1)
            self._consume_queues.write_one(queue.topic, queue.queue_id, unit, data)
            if queue.scheduled:
                self._schedule(entries, members, self._table_of(queue))
            return
        for run in _contiguous(entries.queue_offsets, members):
            data = _pack(entries.log_offsets, entries.sizes, tags, run)
            first = int(entries.queue_offsets[run[0]])
            self._consume_queues.make_room(queue.topic, queue.queue_id, first, first + len(run))
            self._consume_queues.write(queue.topic, queue.queue_id, first, data)
        if queue.scheduled:
            self._schedule(entries, members, self._table_of(queue))

    def _schedule(self, entries: Entries, members: Members, table: ScheduleTable) -> None:
        if len(members) < VECTOR_RECORDS_MIN:
            for number in members:
                table.add(
                    int(entries.queue_offsets[number]),
                    int(entries.dues[number]),
                    int(entries.topic_numbers[number]),
                )
            return
        chosen = np.array(members)
        table.add_many(
            column(entries.queue_offsets)[chosen],
            column(entries.dues)[chosen],
            column(entries.topic_numbers)[chosen],
        )

    def _settle(self, entries: Entries) -> None:
        """Point the settled words of what the records continue at the records."""
        for members in _by_queue(entries.source_queues):
            source = entries.source_queues[members[0]]
            assert source is not None
            table = self._table_of(source)
            if len(members) < VECTOR_RECORDS_MIN:
                for number in members:
                    table.settle(int(entries.units[number]), int(entries.log_offsets[number]))
            else:
                chosen = np.array(members)
                table.settle_many(
                    column(entries.units)[chosen],
                    column(entries.log_offsets)[chosen],
                )


def _by_queue(queues: Sequence[Queue | None]) -> Sequence[Members]:
    """The numbers of the records of each queue; records without one are left out."""
    first = queues[0] if queues else None
    if queues and queues.count(first) == len(queues):
        return [] if first is None else [np.arange(len(queues))]
    groups: dict[Queue, list[int]] = {}
    for number, queue in enumerate(queues):
        if queue is not None:
            groups.setdefault(queue, []).append(number)
    return list(groups.values())


def _contiguous(queue_offsets: Column, members: Members) -> Sequence[Members]:
    """Split the members where their queue offsets jump (only damage makes them jump)."""
    first, last = queue_offsets[members[0]], queue_offsets[members[-1]]
    if last - first + 1 == len(members):
        return [members]
    jumps = np.flatnonzero(np.diff(column(queue_offsets)[members]) != 1) + 1
    return np.split(np.asarray(members), jumps)


def _pack(log_offsets: Column, sizes: Column, tags: Column, run: Members) -> bytes:
    if len(run) < VECTOR_RECORDS_MIN:
        pack = _UNIT.pack
        return b"".join([pack(log_offsets[at], sizes[at], tags[at]) for at in run])
    units = np.empty(len(run), DISK_UNIT)
    assert units.itemsize == UNIT_BYTES
    units["log_offset"] = column(log_offsets)[run]
    units["size"] = column(sizes)[run]
    units["tags_code"] = column(tags)[run]
    return units.tobytes()
