"""The step of the delay levels: hand over what is due, level by level, the oldest first.

Each level gets its turn in every step, so that a million messages due in one level do not hold up
the others. A message that cannot be handed over is tried again with growing waits while the
others go on; one that never can be is parked, with the reason, and never dropped.

The schedule table is the truth: it says what waits and until when, also for queues of levels that
the table of delays has no longer, and for messages whose level's delay was changed since.
"""

import logging
from typing import Any

import numpy as np

from queues.store import HandOver, Store
from queues.store.names import SCHEDULE_TOPIC
from scheduler.lateness import LatenessMeter
from scheduler.levels.offsets import DelayOffsets
from scheduler.levels.queue import Batch, LevelQueue
from scheduler.limits import LEVEL_UNITS_MIN, STEP_UNITS_MAX
from scheduler.step import Advanced

logger = logging.getLogger(__name__)


class LevelsStep:
    """The deliverers of some levels: those whose queue number modulo `share[1]` is `share[0]`."""

    def __init__(
        self,
        store: Store,
        *,
        level_count: int,
        offsets: DelayOffsets,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self._store = store
        self._level_count = level_count
        self._offsets = offsets
        self._share = share
        self._queues: dict[int, LevelQueue] = {}
        self._meter = LatenessMeter()
        self._behind_ms = 0
        #: Where the log ended at the last look, and whether that look left units unseen.
        self._visible: int | None = None
        self._unseen = False

    def open(self) -> None:
        """Start from the schedule table; the file of delay offsets is only compared with it."""
        self._offsets.check()
        self._queues = {}
        self._visible = None

    def advance(self, now_ms: int) -> Advanced:
        """Hand over what is due, at most `STEP_UNITS_MAX` messages or a few of each level."""
        self._look()
        queues = self._queues.values()
        due = [queue for queue in queues if _has_come(queue.next_ms(now_ms), now_ms)]
        limit = max(LEVEL_UNITS_MIN, STEP_UNITS_MAX // max(1, len(due)))
        moved = sum(self._advance_queue(queue, now_ms, limit) for queue in due)
        times = [next_ms for queue in queues if (next_ms := queue.next_ms(now_ms)) is not None]
        next_ms = min(times, default=None)
        self._behind_ms = max(0, now_ms - next_ms) if next_ms is not None else 0
        more = self._unseen or _has_come(next_ms, now_ms)
        return Advanced(moved=moved, more=more, next_due_ms=next_ms)

    def close(self) -> None:
        """Write the delay offsets down."""
        self._offsets.save()

    def report(self) -> dict[str, Any]:
        """Lateness, and the levels in which something fails."""
        lateness = self._meter.read()
        return {
            "behind_ms": self._behind_ms,
            "lateness_p50_ms": lateness.p50_ms if lateness else None,
            "lateness_p99_ms": lateness.p99_ms if lateness else None,
            "retrying": {
                str(queue.queue_id + 1): len(queue.retries)
                for queue in self._queues.values()
                if queue.retries
            },
        }

    def _look(self) -> None:
        """Take new units in, if anything was written since the last look."""
        visible = self._store.visible()
        if visible != self._visible:
            self._find_queues()
        elif not self._unseen:
            return
        behind = [queue.look() for queue in self._queues.values()]
        self._unseen = any(behind)
        self._visible = visible

    def _find_queues(self) -> None:
        """Know every level of the table, and every other that something was ever stored in."""
        index, count = self._share
        stored = self._store.queue_ids(SCHEDULE_TOPIC)
        for queue_id in sorted({*range(self._level_count), *stored} - self._queues.keys()):
            if queue_id % count == index:
                self._queues[queue_id] = LevelQueue(self._store, queue_id)

    def _advance_queue(self, queue: LevelQueue, now_ms: int, limit: int) -> int:
        moved = 0
        if queue.retries:
            offsets, due_ms = queue.retries.due(now_ms, limit)
            if len(offsets):
                moved = self._settle(queue, Batch(offsets, due_ms, ()), now_ms)
        batch = queue.due(now_ms, limit)
        return moved + (self._settle(queue, batch, now_ms) if len(batch.offsets) else 0)

    def _settle(self, queue: LevelQueue, batch: Batch, now_ms: int) -> int:
        """Hand a batch over and see to those that did not go; the number that did."""
        result = self._store.hand_over(SCHEDULE_TOPIC, queue.queue_id, batch.offsets)
        queue.take(batch)
        failing = {failure.queue_offset for failure in result.failed}
        queue.retries.settled(batch.offsets, but=failing)
        if len(result.not_due):
            held = np.isin(batch.offsets, result.not_due)
            queue.put_back(batch.offsets[held], batch.due_ms[held])
        if failing:
            self._see_to_failures(queue, batch, result, now_ms)
        self._meter.note(batch.due_ms, now_ms)
        return result.handed

    def _see_to_failures(
        self, queue: LevelQueue, batch: Batch, result: HandOver, now_ms: int
    ) -> None:
        due_by_offset = dict(zip(batch.offsets.tolist(), batch.due_ms.tolist(), strict=True))
        for failure in result.failed:
            offset = failure.queue_offset
            queue.retries.failed(
                offset, due_ms=due_by_offset[offset], now_ms=now_ms, reason=failure.reason
            )
            logger.warning(
                "Level %d, offset %d cannot be handed over: %s",
                queue.queue_id + 1,
                offset,
                failure.reason,
            )
            if failure.permanent:
                self._store.park(SCHEDULE_TOPIC, queue.queue_id, offset, reason=failure.reason)
                queue.retries.settled(np.array([offset]))


def _has_come(time_ms: int | None, now_ms: int) -> bool:
    return time_ms is not None and time_ms <= now_ms
