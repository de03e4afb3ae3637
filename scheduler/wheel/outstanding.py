"""Outstanding: how many messages of each slot were read out and not settled yet.

The clock hand, `settled_ms`, must not pass a slot with such a message, one in back-off included.
"""

import numpy as np

from queues.store.timerunits import Longs
from scheduler.wheel.geometry import WheelGeometry


class Outstanding:
    """Counts by slot, over the slots of the wheel."""

    def __init__(self, geometry: WheelGeometry) -> None:
        self._geometry = geometry
        self._counts = np.zeros(geometry.slots_total, dtype=np.int32)
        #: All of them.
        self.total = 0
        self._oldest_ms: int | None = None

    def add(self, slots_ms: Longs) -> None:
        """Messages were read out."""
        if len(slots_ms):
            self._change(slots_ms, 1)
            soonest = int(slots_ms.min())
            self._oldest_ms = soonest if self._oldest_ms is None else min(self._oldest_ms, soonest)

    def settle(self, slots_ms: Longs) -> None:
        """Messages were handed over, found settled, parked or placed elsewhere."""
        if len(slots_ms):
            self._change(slots_ms, -1)

    def _change(self, slots_ms: Longs, by: int) -> None:
        self.total += by * len(slots_ms)
        if len(slots_ms) == 1:
            self._counts[self._geometry.index(int(slots_ms[0]))] += by
            return
        indexes = self._geometry.indexes(slots_ms)
        if indexes[0] == indexes[-1] and (indexes == indexes[0]).all():
            self._counts[indexes[0]] += by * len(indexes)
        else:
            np.add.at(self._counts, indexes, by)

    def oldest_ms(self) -> int | None:
        """The oldest slot with an outstanding message; None when there is none."""
        if not self.total:
            self._oldest_ms = None
        if self._oldest_ms is None:
            return None
        precision = self._geometry.precision_ms
        start = self._oldest_ms // precision % len(self._counts)
        if not self._counts[start]:
            self._oldest_ms += self._distance(start) * precision
        return self._oldest_ms

    def _distance(self, start: int) -> int:
        """Slots from `start` to the next one with a count, around the wheel."""
        ahead = self._counts[start:] != 0
        found = int(ahead.argmax())
        if ahead[found]:
            return found
        return len(ahead) + int((self._counts[:start] != 0).argmax())
