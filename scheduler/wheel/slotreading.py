"""Reading a slot: its messages' keys, sorted, in runs of bounded size.

The span of the log between the slot's oldest and newest unit is read in pieces and filtered; a
chain that is spread too thinly is walked by its links instead. At most `RUN_KEYS_MAX` keys are
given at a time, the smallest first: a slot that holds more is passed over once for each run, each
pass taking the smallest keys above the last run's greatest (the *mark*). Memory is two runs of
8-byte keys, however many messages the slot holds.

Arrivals that are linked while the slot is being read join the pass in progress, whose span does not
reach them; those at or below the mark would be missed and must be listed by the caller (`join`).

Example with runs of 2 and keys 5 1 9 3 7: passes give 1 3, then 5 7, then 9.
"""

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import Longs, unpack_reserved
from scheduler.engine.keys import KEY_END, keys_of
from scheduler.engine.limits import READ_UNITS_MAX, RUN_KEYS_MAX
from scheduler.wheel.errors import ChainBroken
from scheduler.wheel.limits import SPARSE_FACTOR, WALK_MAX
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

_NOTHING = np.zeros(0, dtype=np.int64)


class SlotReading:
    """One slot on its way out of the wheel."""

    def __init__(
        self, slot_ms: int, wheel: TimerWheel, log: TimerLog, *, run_keys_max: int = RUN_KEYS_MAX
    ) -> None:
        self.slot_ms = slot_ms
        self._wheel = wheel
        self._log = log
        self._run_keys_max = run_keys_max
        self._mark = -1
        self._begin_run()

    def _begin_run(self) -> None:
        first, last, self._expected = self._wheel.slot(self.slot_ms)
        geometry = self._log.geometry
        self._below = KEY_END
        self._found: list[Longs] = []
        self._kept = 0
        self._seen = 0
        self._cut_off = first < self._log.begin_position
        self._next = max(geometry.unit_number(first), self._log.begin_number)
        behind_last = geometry.unit_number(last) + 1 if self._expected else 0
        self._stop = max(behind_last, self._next)
        span = self._stop - self._next
        self._link = last if span > SPARSE_FACTOR * self._expected else None

    @property
    def finished(self) -> bool:
        """Whether every run was given."""
        return self._mark == KEY_END

    def join(self, keys: Longs) -> npt.NDArray[np.bool_]:
        """Take newly linked keys into the pass; which of them come too late for it."""
        missed = keys <= self._mark
        self._keep(keys[~missed])
        return missed

    def read(self, units_max: int) -> Longs | None:
        """Look at some more units; the sorted keys of a run when one is complete, else None."""
        if self._link is None:
            self._read_span(min(units_max, READ_UNITS_MAX))
        else:
            self._walk(min(units_max, WALK_MAX))
        return self._end_run() if self._next >= self._stop else None

    def _read_span(self, units_max: int) -> None:
        units = self._log.read(self._next, min(units_max, self._stop - self._next))
        if not len(units) and self._next < self._stop:
            raise ChainBroken(
                slot_ms=self.slot_ms, position=self._log.geometry.position(self._next)
            )
        self._next += len(units)
        self._take(units)

    def _walk(self, links_max: int) -> None:
        geometry, walked = self._log.geometry, []
        for _ in range(links_max):
            if self._link is None or self._link < self._log.begin_position:
                self._next = self._stop
                break
            unit = self._log.read(geometry.unit_number(self._link), 1)
            if not len(unit):
                raise ChainBroken(slot_ms=self.slot_ms, position=self._link)
            walked.append(unit)
            self._link = int(unit["previous"][0])
        if walked:
            self._take(np.concatenate(walked))

    def _take(self, units: npt.NDArray[np.void]) -> None:
        slots_ms = units["written_ms"] + units["delay_ms"]
        reserved = units["reserved"][slots_ms == self.slot_ms]
        mine = reserved[(reserved & 1) == 1]
        self._seen += len(mine)
        self._keep(keys_of(*unpack_reserved(mine)))

    def _keep(self, keys: Longs) -> None:
        keys = keys[(keys > self._mark) & (keys < self._below)]
        if len(keys):
            self._found.append(keys)
            self._kept += len(keys)
        if self._kept > 2 * self._run_keys_max:
            self._keep_smallest()

    def _keep_smallest(self) -> None:
        keys = np.concatenate(self._found)
        keys.partition(self._run_keys_max)
        self._below = int(keys[self._run_keys_max])
        self._found = [keys[: self._run_keys_max].copy()]
        self._kept = self._run_keys_max

    def _end_run(self) -> Longs:
        if self._seen < self._expected and not self._cut_off:
            raise ChainBroken(slot_ms=self.slot_ms, found=self._seen, expected=self._expected)
        if self._kept > self._run_keys_max:
            self._keep_smallest()
        keys = _ascending(np.concatenate(self._found)) if self._found else _NOTHING
        if self._below == KEY_END:
            self._mark = KEY_END
        else:
            self._mark = self._below - 1
            self._begin_run()
        return keys


def _ascending(keys: Longs) -> Longs:
    """Sorted, each once. (`numpy.unique` hashes, which takes twenty times as long.)"""
    keys.sort()
    once: Longs = keys[np.diff(keys, prepend=-1) != 0]
    return once
