"""Slot counts: how many messages wait in each slot of the timer, cheaply enough to ask at a send.

A ring of counters follows the timer topic's schedule table: each question first takes in what came
since the last (a few entries of 16 bytes). What was settled since is not taken out again, so a
count is never too small; when one says that a slot is full, all are counted anew, which takes 10 ms
for a million messages, and is done once a second at the most and less often when there is more to
count. Each process counts for itself; all see the same table.

Slots that lie a ring apart share a counter: 194 days and more with slots of a second.

Example with slots of a second and a ring of 4: messages due at 1,500 and 5,200 lie in slots 1 and
5, and both count in counter 1.
"""

import threading
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from queues.store.limits import SCHEDULE_UNITS
from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import slot_of, slots_of

if TYPE_CHECKING:
    from queues.store.store import Store

#: Counters of the ring, at the most (4 bytes each).
RING_SLOTS_MAX = 1 << 24
#: Counting anew pauses for this, and a millisecond more for so many entries.
_PAUSE_MS = 1_000
_ENTRIES_PER_PAUSE_MS = 1_000

#: How far from a full slot a free one is looked for, in slots.
_SEARCHED = 86_400

Counts = npt.NDArray[np.int32]


class SlotCounts:
    """Counters of one process over one store."""

    def __init__(self, store: "Store", span_ms: int) -> None:
        """`span_ms`: how far ahead messages may be due."""
        self._store = store
        self.precision_ms = store.sizes.timer_precision_ms
        slots = min(max(span_ms // self.precision_ms, 1), RING_SLOTS_MAX - 1)
        self._ring_slots = 1 << slots.bit_length()
        self._counts: Counts | None = None
        self._seen = 0
        self._counted_ms = 0
        self._mutex = threading.Lock()

    def slot_of(self, due_ms: int) -> int:
        """The number of the slot that holds what is due then."""
        return slot_of(due_ms, self.precision_ms) // self.precision_ms

    def count(self, slot: int, now_ms: int, *, limit: int) -> int:
        """Messages in a slot: never too few, and hardly too many from `limit` on."""
        with self._mutex:
            counts = self._follow(now_ms)
            if counts[slot % self._ring_slots] >= limit and self._may_count_anew(now_ms):
                counts = self._count_anew(now_ms)
            return int(counts[slot % self._ring_slots])

    def nearest_free(
        self, slot: int, *, first: int, last: int, limit: int
    ) -> tuple[int | None, int | None]:
        """The nearest slots before and after one, in [first, last], with fewer than `limit`."""
        with self._mutex:
            counts = self._counts
            assert counts is not None, "count first"
            earliest, latest = max(first, slot - _SEARCHED), min(last, slot + _SEARCHED)
            before = self._free(counts, np.arange(slot - 1, earliest - 1, -1), limit)
            after = self._free(counts, np.arange(slot + 1, latest + 1), limit)
        return before, after

    def _free(self, counts: Counts, slots: npt.NDArray[np.int64], limit: int) -> int | None:
        free = counts[slots % self._ring_slots] < limit
        return int(slots[int(free.argmax())]) if free.any() else None

    def _may_count_anew(self, now_ms: int) -> bool:
        pause_ms = _PAUSE_MS + self._seen // _ENTRIES_PER_PAUSE_MS
        return not 0 <= now_ms - self._counted_ms < pause_ms

    def _follow(self, now_ms: int) -> Counts:
        """Take in what came since."""
        counts = self._counts
        if counts is None:
            return self._count_anew(now_ms)
        end = self._store.queue_bounds(TIMER_TOPIC, 0).max_offset
        if end > self._seen:
            self._add(counts, self._seen, end)
        return counts

    def _count_anew(self, now_ms: int) -> Counts:
        counts = np.zeros(self._ring_slots, np.int32)
        end = self._store.queue_bounds(TIMER_TOPIC, 0).max_offset
        self._add(counts, self._store.first_unsettled(TIMER_TOPIC, 0), end)
        self._counts, self._counted_ms = counts, now_ms
        return counts

    def _add(self, counts: Counts, begin: int, end: int) -> None:
        for start in range(begin, end, SCHEDULE_UNITS):
            found = self._store.schedule(TIMER_TOPIC, 0, start, min(end, start + SCHEDULE_UNITS))
            due_ms = found.due_ms[found.settled == 0]
            slots = slots_of(due_ms, self.precision_ms) // self.precision_ms
            np.add.at(counts, slots % self._ring_slots, 1)
        self._seen = end
