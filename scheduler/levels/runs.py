"""A run: a stretch of one level's queue whose due times do not fall.

One level has one delay and store time does not fall, so a queue is one run, unless the delay was
changed, the clock was set back, or old messages were appended again. Each of these begins a new
run, and the heads of all runs are merged, so that neither old nor new messages wait behind each
other.

Example: due times 100 101 50 102 103 are the runs [100 101] and [50 102 103].
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from queues.store import ScheduleSlice
from scheduler.limits import WINDOW_UNITS

Int64s = npt.NDArray[np.int64]
#: Reads units [start, stop) of the queue's schedule table.
ReadSchedule = Callable[[int, int], ScheduleSlice]

_EMPTY: Int64s = np.empty(0, dtype=np.int64)


class Run:
    """A run of units [start, stop), of which a window lies in memory."""

    def __init__(self, read: ReadSchedule, start: int, stop: int) -> None:
        self._read = read
        self._next = start
        #: The first unit that is not in it; raised when the run goes on.
        self.stop = stop
        self._offsets = self._dues = _EMPTY
        self._head = 0

    @classmethod
    def of_units(cls, read: ReadSchedule, offsets: Int64s, dues: Int64s) -> "Run":
        """A run of single units in order of due time, all of them in memory."""
        run = cls(read, -1, -1)
        run._offsets, run._dues = offsets, dues
        return run

    def head_due_ms(self) -> int | None:
        """When the first unit is due; None when the run is at its end."""
        while self._head >= len(self._dues):
            if self._next >= self.stop:
                return None
            self._load()
        return int(self._dues[self._head])

    def due(self, now_ms: int, limit: int) -> tuple[Int64s, Int64s]:
        """Queue offsets and due times of up to `limit` units that are due, without taking them."""
        if self.head_due_ms() is None:
            return _EMPTY, _EMPTY
        head = self._head
        end = head + int(np.searchsorted(self._dues[head : head + limit], now_ms, side="right"))
        return self._offsets[head:end], self._dues[head:end]

    def take(self, count: int) -> None:
        """Go past `count` units."""
        self._head += count

    def _load(self) -> None:
        stop = min(self.stop, self._next + WINDOW_UNITS)
        units = self._read(self._next, stop)
        waiting = np.flatnonzero(units.settled == 0)
        self._offsets, self._dues = waiting + units.start, units.due_ms[waiting]
        self._next, self._head = stop, 0
