"""Outstanding: how many messages of each slot were read out and not settled yet, of any slots.

The wheel counts over the slots of its file; a timeline has no last slot, so this counts by slot in
a dictionary, with a heap to find the oldest. Both stay small: the due list is bounded.
"""

import heapq

import numpy as np

from queues.store.timerunits import Longs


class OutstandingSlots:
    """Counts by slot."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []
        #: All of them.
        self.total = 0

    def add(self, slots_ms: Longs) -> None:
        """Messages were read out."""
        self._change(slots_ms, 1)

    def settle(self, slots_ms: Longs) -> None:
        """Messages were handed over, found settled, parked or placed elsewhere."""
        self._change(slots_ms, -1)

    def _change(self, slots_ms: Longs, by: int) -> None:
        if not len(slots_ms):
            return
        self.total += by * len(slots_ms)
        if slots_ms[0] == slots_ms[-1] and (slots_ms == slots_ms[0]).all():
            self._change_one(int(slots_ms[0]), by * len(slots_ms))
            return
        slots, counts = np.unique(slots_ms, return_counts=True)
        for slot_ms, count in zip(slots.tolist(), counts.tolist(), strict=True):
            self._change_one(slot_ms, by * count)

    def _change_one(self, slot_ms: int, by: int) -> None:
        count = self._counts.get(slot_ms)
        if count is None:
            heapq.heappush(self._heap, slot_ms)
        left = (count or 0) + by
        assert left >= 0, "more was settled than read out"
        self._counts[slot_ms] = left

    def oldest_ms(self) -> int | None:
        """The oldest slot with an outstanding message; None when there is none."""
        while self._heap:
            slot_ms = self._heap[0]
            if self._counts[slot_ms]:
                return slot_ms
            heapq.heappop(self._heap)
            del self._counts[slot_ms]
        return None
