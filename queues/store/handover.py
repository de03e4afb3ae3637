"""Hand-over: the step from schedule to topic, exactly once, never early, many at a time.

Due messages are read in physical order, rebuilt as ordinary records of their own topic, and
appended in holds of at most 1000 records and 2 MiB, on the condition that their units still wait
and are due by the hold's own clock reading.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.append import Appender
from queues.store.batch import Batch, Sealed
from queues.store.bulkdelivery import deliver_bulk
from queues.store.consumequeue import UNIT
from queues.store.delivering import Due, deliver
from queues.store.encode import QueueOf
from queues.store.errors import RecordGone
from queues.store.grouping import are_different
from queues.store.held import HOLDING, real_of
from queues.store.limits import (
    BULK_RECORDS_MIN,
    HOLD_BYTES_MAX,
    HOLD_RECORDS_MAX,
    ONE_BY_ONE_MAX,
)
from queues.store.messages import Failure, HandOver
from queues.store.onehandover import SingleHandOver
from queues.store.parts import Parts
from queues.store.queuetable import Queue
from queues.store.scan import is_whole

#: Says why a topic's queue may not receive now; None when it may.
TopicGate = Callable[[str, int], str | None]


class Waiting(NamedTuple):
    """Units of a holding queue that one hold hands over: offsets, and of each its unit and due."""

    queue: Queue
    offsets: npt.NDArray[np.int64]
    units: npt.NDArray[np.void]
    #: Due times, ms.
    dues: npt.NDArray[np.int64]


class HandOvers:
    """Hands over the messages of holding queues."""

    def __init__(
        self, parts: Parts, appender: Appender, queue_of: QueueOf,
        settle_flush: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._table_of, self._queue_of = parts.table_of, queue_of
        #: ``topic 0x02 REAL_QID 0x01 queue`` of holding records, and the queue that it names.
        self._reals: dict[bytes, Queue] = {}
        self._appender, self._log = appender, parts.log
        self._consume_queues = parts.consume_queues
        self._single = SingleHandOver(parts, appender, self._real)
        self._settle_flush = settle_flush
        self.topic_gate: TopicGate | None = None

    def units_at(self, queue: Queue, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
        """The ConsumeQueue units at any offsets of a queue, in the order given."""
        if len(offsets) == 1:
            found = self._consume_queues.read(queue.topic, queue.queue_id, int(offsets[0]), 1)
            return found if len(found) else np.zeros(1, UNIT)
        units = np.zeros(len(offsets), UNIT)
        if not len(offsets):
            return units
        low, high = int(offsets.min()), int(offsets.max())
        if high - low < 4 * len(offsets) + 64:
            span = self._consume_queues.read(queue.topic, queue.queue_id, low, high - low + 1)
            inside = offsets - low < len(span)
            if inside.all():
                return span.take(offsets - low)
            units[inside] = span.take(offsets[inside] - low)
            return units
        return self._consume_queues.read_at(queue.topic, queue.queue_id, offsets)

    def hand_over(self, queue: Queue, offsets: npt.NDArray[np.int64]) -> HandOver:
        """Deliver the messages at these offsets of a holding queue, in the order given."""
        handed, end = 0, 0
        not_due: list[int] = []
        settled: list[int] = []
        failed: list[Failure] = []
        if len(offsets) <= ONE_BY_ONE_MAX:
            offsets, handed, end = self._one_by_one(queue, offsets, not_due, settled)
        if len(offsets):
            for batch in self._batches(queue, _once_each(offsets), settled, failed):
                written = self._appender.write(batch, "handed_over", privileged=True, gated=True)
                handed += len(written.entries.sizes)
                not_due += written.not_due
                settled += written.settled
                end = max(end, written.end)
        self._settle_flush(end)
        return HandOver(handed, tuple(not_due), tuple(settled), tuple(failed))

    def _one_by_one(
        self, queue: Queue, offsets: npt.NDArray[np.int64], not_due: list[int], settled: list[int]
    ) -> tuple[npt.NDArray[np.int64], int, int]:
        """The short way for a few; what is left for the general one, how many went, log's end."""
        handed, end = 0, 0
        for number, offset in enumerate(offsets.tolist()):
            done = self._single.hand_over(queue, offset)
            if done is None:
                return offsets[number:], handed, end
            told, log_end = done
            handed += told.handed
            not_due += told.not_due
            settled += told.settled
            end = max(end, log_end)
        return offsets[:0], handed, end

    def _batches(
        self, queue: Queue, offsets: npt.NDArray[np.int64], settled: list[int],
        failed: list[Failure],
    ) -> Iterator[Batch | Sealed]:  # fmt: skip
        units, dues = self.units_at(queue, offsets), self._table_of(queue).due_many(offsets)
        for part in _parts(units["size"]):
            waiting = Waiting(queue, offsets[part], units[part], dues[part])
            if len(waiting.offsets) < BULK_RECORDS_MIN:
                batch = deliver(self._due(waiting, settled, failed), queue)
                if batch.rows:
                    yield batch
            else:
                sealed = self._bulk(waiting, settled, failed)
                if sealed.starts:
                    yield sealed

    def _bulk(self, waiting: Waiting, settled: list[int], failed: list[Failure]) -> Sealed:
        queue, offsets, units, dues = waiting
        places, sizes = units["log_offset"], units["size"].astype(np.int64)
        sealed, refused = deliver_bulk(queue, self._log, sizes, places, dues, offsets, self._real)
        for number, reason in sorted(refused.items()):
            self._tell(queue, int(offsets[number]), int(places[number]), reason, settled, failed)
        return sealed

    def _tell(
        self, queue: Queue, offset: int, place: int, reason: str | None, settled: list[int],
        failed: list[Failure],
    ) -> None:  # fmt: skip
        """Say why a message cannot be handed over (None: its record is damaged or gone)."""
        if reason is None and self._table_of(queue).settled(offset):
            settled.append(offset)
            return
        told = reason or f"the record at log offset {place} is damaged or gone"
        failed.append(Failure(offset, told, permanent=True))

    def _due(self, waiting: Waiting, settled: list[int], failed: list[Failure]) -> Iterator[Due]:
        """The records that can be delivered; what cannot is told in the lists."""
        queue, offsets, units, dues = waiting
        for offset, place, due_ms, raw in zip(
            offsets.tolist(), units["log_offset"].tolist(), dues.tolist(), self._load(units),
            strict=True,
        ):  # fmt: skip
            if raw is None or not is_whole(raw):
                self._tell(queue, offset, place, None, settled, failed)
                continue
            own_end = raw.rfind(HOLDING) + 1
            real = self._real(raw, own_end)
            if isinstance(real, str):
                self._tell(queue, offset, place, real, settled, failed)
            else:
                yield Due(raw, place, own_end, real, due_ms, offset)

    def _load(self, units: npt.NDArray[np.void]) -> list[bytes | None]:
        """The records of the units, read in physical order; None for what is gone."""
        raws: list[bytes | None] = [None] * len(units)
        places, sizes = units["log_offset"].tolist(), units["size"].tolist()
        for number in sorted(range(len(places)), key=places.__getitem__):
            raws[number] = self._read(places[number], sizes[number])
        return raws

    def _read(self, place: int, size: int) -> bytes | None:
        try:
            raw = self._log.read(place, size)
        except RecordGone:
            return None
        return raw if size and len(raw) == size else None

    def _real(self, raw: bytes, own_end: int) -> Queue | str:
        """The queue that the message is for, or why it cannot be handed over there."""
        end = raw.index(b"\x02", raw.index(b"\x02", own_end) + 1)
        told = raw[own_end + 11 : end]
        real = self._reals.get(told)
        if real is None:
            name, queue_id = real_of(told.split(b"\x02"))
            real = self._reals[told] = self._queue_of(name.decode(), queue_id)
        if self.topic_gate is not None:
            reason = self.topic_gate(real.topic, real.queue_id)
            if reason is not None:
                return reason
        return real


def _parts(sizes: npt.NDArray[np.int32]) -> Iterator[slice]:
    """Cut records of these sizes into parts that one hold takes each."""
    ends = np.cumsum(sizes, dtype=np.int64)
    first, before = 0, 0
    while first < len(sizes):
        fitting = int(np.searchsorted(ends, before + HOLD_BYTES_MAX, side="right"))
        stop = min(max(fitting, first + 1), first + HOLD_RECORDS_MAX)
        yield slice(first, stop)
        first, before = stop, int(ends[stop - 1])


def _once_each(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The offsets without repetitions, in their order: one hold decides each unit once."""
    if len(offsets) == 1 or are_different(offsets):
        return offsets
    _, firsts = np.unique(offsets, return_index=True)
    return offsets[np.sort(firsts)]
