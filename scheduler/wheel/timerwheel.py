"""The TimerWheel: the mapped `timerwheel` file, one 32-byte slot for each second of two windows.

A slot of the file holds the chain of one lap at a time; its `time` field says of which. A slot
whose time is not the one asked for counts as empty, and is taken over by the next lap's first unit.

Invariant: for every slot time from `settled_ms` on, the slot's chain is exactly the units of that
slot in the TimerLog; the TimerLog is written first, so that `recovery` can always make it so again.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from queues.store.disk import Disk
from queues.store.timerunits import SLOT, Longs
from scheduler.engine.places import WHEEL_FILE
from scheduler.wheel.chain import Chained
from scheduler.wheel.geometry import WheelGeometry

FILE_NAME = str(WHEEL_FILE)
_BYTES = np.dtype(f"V{SLOT.itemsize}")
_CLEARED_AT_ONCE = 16_384


class TimerWheel:
    """The slots, and which of them were not read yet."""

    def __init__(self, disk: Disk, root: Path, geometry: WheelGeometry) -> None:
        self.geometry = geometry
        self._path = root / FILE_NAME
        self._disk = disk
        self._mapped = disk.map(self._path, size_bytes=geometry.wheel_bytes, create=True)
        self._slots = self._mapped.array(SLOT)
        self._unread = np.zeros(geometry.slots_total, dtype=np.bool_)
        self._next_unread_ms: int | None = None
        self._newest_ms = 0

    @staticmethod
    def exists(disk: Disk, root: Path) -> bool:
        """Whether there is a wheel to open."""
        return disk.exists(root / FILE_NAME)

    def slots(self, slots_ms: Longs) -> npt.NDArray[Any]:
        """A copy of the slots of these times; those of other laps are empty (-1, -1, 0)."""
        found = self._slots.take(self.geometry.indexes(slots_ms))
        other = (found["time"] != slots_ms // self.geometry.precision_ms) | (found["count"] <= 0)
        found["first"][other] = -1
        found["last"][other] = -1
        found["count"][other] = 0
        return found

    def slot(self, slot_ms: int) -> tuple[int, int, int]:
        """First and last position and count of one slot; (-1, -1, 0) when it is empty."""
        found = self.slots(np.array([slot_ms], dtype=np.int64))[0]
        return int(found["first"]), int(found["last"]), int(found["count"])

    def link(self, chained: Chained) -> None:
        """Let the slots lead to a batch that is in the TimerLog."""
        before = chained.before
        first = np.where(before["first"] < 0, chained.first, before["first"])
        self.put(chained.slots_ms, first, chained.last, before["count"] + chained.count)

    def put(self, slots_ms: Longs, first: Longs, last: Longs, count: Longs) -> None:
        """Set slots outright."""
        changed = np.zeros(len(slots_ms), dtype=SLOT)
        changed["time"] = slots_ms // self.geometry.precision_ms
        changed["first"] = first
        changed["last"] = last
        changed["count"] = count
        # As bytes: field by field it takes fifteen times as long.
        whole = self._slots.view(_BYTES)
        self._mapped.assign(whole, self.geometry.indexes(slots_ms), changed.view(_BYTES))
        self._newest_ms = max(self._newest_ms, int(slots_ms.max(initial=0)))

    def leading_beyond(self, position: int) -> tuple[Longs, Longs]:
        """The slots (ms, ascending) whose newest unit is said to lie at or behind a position.

        Gives also what each says of its oldest unit.
        """
        found = self._slots[(self._slots["last"] >= position) & (self._slots["count"] > 0)]
        slots_ms = found["time"].astype(np.int64) * self.geometry.precision_ms
        order = np.argsort(slots_ms)
        return slots_ms[order], found["first"].astype(np.int64)[order]

    def clear(self) -> None:
        """Empty every slot (before a rebuild)."""
        for begin in range(0, self.geometry.slots_total, _CLEARED_AT_ONCE):
            part = slice(begin, begin + _CLEARED_AT_ONCE)
            if self._slots["time"][part].any() or self._slots["count"][part].any():
                self._mapped.assign(self._slots, part, np.zeros(1, dtype=SLOT))
        self._unread[:] = False
        self._next_unread_ms = None
        self._newest_ms = 0

    def mark_unread_from(self, from_ms: int) -> None:
        """Count every slot from `from_ms` on as not read."""
        precision_ms = self.geometry.precision_ms
        times = self._slots["time"].astype(np.int64)
        self._newest_ms = int(times.max()) * precision_ms
        np.greater_equal(times, -(-from_ms // precision_ms), out=self._unread)
        present = np.flatnonzero(self._unread)
        self._unread[present[self._slots["count"][present] <= 0]] = False
        self._next_unread_ms = self._find_unread(from_ms)

    def mark_unread(self, slots_ms: Longs) -> None:
        """Units were linked to slots that will be read later."""
        if not len(slots_ms):
            return
        self._unread[self.geometry.indexes(slots_ms)] = True
        soonest = int(slots_ms.min())
        if self._next_unread_ms is None or soonest < self._next_unread_ms:
            self._next_unread_ms = soonest

    def mark_read(self, slot_ms: int) -> None:
        """The next unread slot was read to its end."""
        self._unread[slot_ms // self.geometry.precision_ms % self.geometry.slots_total] = False
        self._next_unread_ms = self._find_unread(slot_ms)

    @property
    def oldest_possible_ms(self) -> int:
        """How far back a hand may go without a slot of the present lap being taken over."""
        span_ms = self.geometry.slots_total * self.geometry.precision_ms
        return self._newest_ms + self.geometry.precision_ms - span_ms

    @property
    def next_unread_ms(self) -> int | None:
        """The soonest slot with units that was not read; None when there is none."""
        return self._next_unread_ms

    def _find_unread(self, from_ms: int) -> int | None:
        precision_ms, total = self.geometry.precision_ms, self.geometry.slots_total
        start = from_ms // precision_ms % total
        for begin, part in ((start, self._unread[start:]), (0, self._unread[:start])):
            if len(part) and part[found := int(part.argmax())]:
                found_ms = int(self._slots["time"][begin + found]) * precision_ms
                # A new holder's hand may be behind by a lap: then a nearer slot may come later.
                return found_ms if found_ms < from_ms + total * precision_ms else self._oldest()
        return None

    def _oldest(self) -> int:
        return int(self._slots["time"][self._unread].min()) * self.geometry.precision_ms

    def sync(self) -> None:
        """Return after the slots are on the device."""
        self._mapped.sync()

    def close(self) -> None:
        """Drop the mapping."""
        del self._slots
        self._mapped.close()
