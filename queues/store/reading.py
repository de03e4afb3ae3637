"""Reading: queues, schedule tables and records, no further than readers may look."""

import numpy as np
import numpy.typing as npt

from queues.store.commitlog import CommitLog
from queues.store.consumequeue import UNIT, ConsumeQueues
from queues.store.control import Control, Word
from queues.store.dispatch import TableOf
from queues.store.errors import RecordCorrupt
from queues.store.leading import Leading, read_leading
from queues.store.limits import HOLD_RECORDS_MAX
from queues.store.messages import QueueBounds
from queues.store.queuetable import Queue, QueueTable
from queues.store.record import Record, decode_record
from queues.store.scan import read_whole
from queues.store.schedule import ScheduleSlice
from queues.store.seals import read_sealed

#: Of more records the seals are checked together.
_ONE_BY_ONE_MAX = 64


class Reader:
    """Reads one store, up to `visible`."""

    def __init__(
        self, control: Control, log: CommitLog, queues: QueueTable, consume_queues: ConsumeQueues,
        table_of: TableOf, *, sync_flush: bool,
    ) -> None:  # fmt: skip
        self._words, self._log, self._queues = control.words, log, queues
        self._consume_queues, self._table_of = consume_queues, table_of
        self._sync_flush = sync_flush
        self._end_word = Word.FLUSHED if sync_flush else Word.COMMITTED

    def visible(self) -> int:
        """The log offset that readers may look up to: committed, in sync mode flushed."""
        return self._words[self._end_word]

    def bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """The offsets of a queue that can be read; (0, 0) for one that is not there."""
        queue = self._queues.find(topic, queue_id)
        return QueueBounds(0, 0) if queue is None else self.bounds_of(queue)

    def bounds_of(self, queue: Queue) -> QueueBounds:
        """The offsets of a queue that can be read.

        The queue table's maximum runs ahead of what is visible while a write is under way, and in
        sync mode until its flush; only then are units looked at.
        """
        first, end = self._queues.min(queue), self._queues.max(queue)
        if not self._words[Word.NOTE_STATE] and not self._sync_flush:
            return QueueBounds(first, max(first, end))
        visible = self.visible()
        while end > first:
            step = min(end - first, HOLD_RECORDS_MAX)
            units = self._consume_queues.read(queue.topic, queue.queue_id, end - step, step)
            seen = units["log_offset"] + units["size"] <= visible
            if seen.any():
                return QueueBounds(first, end - step + int(np.flatnonzero(seen)[-1]) + 1)
            end -= step
        return QueueBounds(first, first)

    def units(self, topic: str, queue_id: int, start: int, count: int) -> npt.NDArray[np.void]:
        """ConsumeQueue units from `start` on, native."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return np.zeros(0, UNIT)
        first = max(start, self._queues.min(queue))
        stop = min(start + count, self._queues.max(queue))
        if stop <= first:
            return np.zeros(0, UNIT)
        units = self._consume_queues.read(topic, queue_id, first, stop - first)
        seen = units["log_offset"] + units["size"] <= self.visible()
        return units if seen.all() else units[: int(np.argmin(seen))]

    def records(self, units: npt.NDArray[np.void]) -> list[bytes | None]:
        """The records of units, raw, in the order given; None for one that is damaged or gone."""
        offsets, sizes = units["log_offset"], units["size"]
        if len(units) > _ONE_BY_ONE_MAX:
            return read_sealed(self._log, offsets, sizes.astype(np.int64))
        return [
            read_whole(self._log, offset, size)
            for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True)
        ]

    def leading(self, log_offsets: npt.NDArray[np.int64]) -> Leading:
        """The leading properties of records, without decoding them."""
        return read_leading(self._log, log_offsets)

    def record(self, log_offset: int) -> Record:
        """The record at a log offset; raises `RecordGone` or `RecordCorrupt`."""
        size = int.from_bytes(self._log.read(log_offset, 4), "big")
        try:
            return decode_record(self._log.read(log_offset, size))
        except RecordCorrupt as error:
            path = self._log.path(self._log.base_of(log_offset))
            raise RecordCorrupt(path=path, offset=log_offset, reason=error.reason) from error

    # -- schedule tables ------------------------------------------------------------------------

    def schedule(self, topic: str, queue_id: int, start: int, stop: int) -> ScheduleSlice:
        """A stretch of a holding queue's schedule table."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            nothing = np.zeros(0, np.int64)
            return ScheduleSlice(start, nothing, nothing, nothing)
        bounds = self.bounds_of(queue)
        start = max(start, bounds.min_offset)
        return self._table_of(queue).slice(start, max(start, min(stop, bounds.max_offset)))

    def first_unsettled(self, topic: str, queue_id: int, start: int) -> int:
        """The first offset from `start` on that waits; the maximum if none does."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return 0
        bounds = self.bounds_of(queue)
        first = max(start, bounds.min_offset)
        return self._table_of(queue).waiting_from(first, bounds.max_offset)

    def count_waiting(self, topic: str, queue_id: int, start: int) -> int:
        """How many messages from `start` on wait."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return 0
        bounds = self.bounds_of(queue)
        first = max(start, bounds.min_offset)
        return self._table_of(queue).count_waiting(first, bounds.max_offset)

    def schedule_at(
        self, topic: str, queue_id: int, queue_offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Settled words and due times (ms) at any offsets; (-1, 0) for what cannot be read."""
        settled = np.full(len(queue_offsets), -1, np.int64)
        due_ms = np.zeros(len(queue_offsets), np.int64)
        queue = self._queues.find(topic, queue_id)
        if queue is not None:
            bounds, table = self.bounds_of(queue), self._table_of(queue)
            inside = queue_offsets >= bounds.min_offset
            inside &= queue_offsets < bounds.max_offset
            settled[inside] = table.settled_many(queue_offsets[inside])
            due_ms[inside] = table.due_many(queue_offsets[inside])
        return settled, due_ms
