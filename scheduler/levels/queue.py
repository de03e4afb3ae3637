"""A level queue: everything that waits in one level, merged from its runs.

It remembers how far it has looked and looks at new units only; what it knows about them is the
list of runs and what is to be tried again. What has settled in the meantime (a cancelled message)
is found out by the hand-over, which decides.
"""

import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues.store import ScheduleSlice, Store
from queues.store.names import SCHEDULE_TOPIC
from scheduler.levels.retries import Retries
from scheduler.levels.runs import Run
from scheduler.limits import LOOK_UNITS, LOOKS_PER_STEP, RUNS_PER_LOOK_MAX

logger = logging.getLogger(__name__)

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Units that are due, in the order in which they shall be handed over."""

    offsets: Int64s
    due_ms: Int64s
    #: The run and how many of its first units are in the batch.
    parts: tuple[tuple[Run, int], ...]


class LevelQueue:
    """One level's deliverer."""

    def __init__(self, store: Store, queue_id: int) -> None:
        self._store = store
        self.queue_id = queue_id
        #: What failed and is tried again.
        self.retries = Retries()
        self._runs: list[Run] = []
        self._last_due_ms = 0
        self._looked = store.first_unsettled(SCHEDULE_TOPIC, queue_id)

    def look(self) -> bool:
        """Take new units in; True when there are more than it looked at."""
        bounds = self._store.queue_bounds(SCHEDULE_TOPIC, self.queue_id)
        if self._looked == bounds.max_offset:
            return False
        self._clamp(bounds.min_offset, bounds.max_offset)
        for _ in range(LOOKS_PER_STEP):
            if self._looked >= bounds.max_offset:
                break
            self._look_at(self._looked, min(self._looked + LOOK_UNITS, bounds.max_offset))
        return self._looked < bounds.max_offset

    def next_ms(self, now_ms: int) -> int | None:
        """When something is due or to be tried again; None when nothing waits."""
        if not self._runs and not self.retries:
            return None
        heads = [run.head_due_ms() for run in self._runs]
        if None in heads:
            self._runs = [
                run for run, due in zip(self._runs, heads, strict=True) if due is not None
            ]
        times = [self.retries.next_ms(now_ms), *heads]
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def due(self, now_ms: int, limit: int) -> Batch:
        """Up to `limit` units that are due, first those that were due first; none is taken yet."""
        parts = [(run, *run.due(now_ms, limit)) for run in self._runs]
        parts = [part for part in parts if len(part[1])]
        if len(parts) == 1:
            run, offsets, dues = parts[0]
            return Batch(offsets, dues, ((run, len(offsets)),))
        return _merged(parts, limit)

    def take(self, batch: Batch) -> None:
        """Go past the units of a batch."""
        for run, count in batch.parts:
            run.take(count)

    def put_back(self, offsets: Int64s, due_ms: Int64s) -> None:
        """Let units that were taken wait again until they are due."""
        order = np.lexsort((offsets, due_ms))
        self._runs.append(Run.of_units(self._read, offsets[order], due_ms[order]))

    def _clamp(self, min_offset: int, max_offset: int) -> None:
        clamped = max(min_offset, min(self._looked, max_offset))
        if clamped != self._looked:
            logger.warning(
                "Level %d stood at offset %d, outside its queue [%d, %d); it goes on at %d.",
                self.queue_id + 1,
                self._looked,
                min_offset,
                max_offset,
                clamped,
            )
            self._looked = clamped

    def _look_at(self, start: int, stop: int) -> None:
        units = self._read(start, stop)
        self._looked = stop
        waiting = np.flatnonzero(units.settled == 0)
        if not len(waiting):
            return
        dues, offsets = units.due_ms[waiting], waiting + units.start
        falls = np.flatnonzero(dues[1:] < dues[:-1]) + 1
        if len(falls) > RUNS_PER_LOOK_MAX:
            order = np.argsort(dues, kind="stable")
            self._runs.append(Run.of_units(self._read, offsets[order], dues[order]))
        else:
            self._add_runs(offsets, int(dues[0]), falls, (start, stop))
        self._last_due_ms = int(dues[-1])

    def _add_runs(
        self, offsets: Int64s, first_due_ms: int, falls: Int64s, looked: tuple[int, int]
    ) -> None:
        """Make runs of what lies between the falls; the first may go on with the last known run."""
        starts = [0, *falls.tolist()]
        stops = [*offsets[falls].tolist(), looked[1]]
        last = self._runs[-1] if self._runs else None
        if last is not None and last.stop == looked[0] and first_due_ms >= self._last_due_ms:
            last.stop = stops[0]
            starts, stops = starts[1:], stops[1:]
        self._runs += [
            Run(self._read, int(offsets[at]), stop) for at, stop in zip(starts, stops, strict=True)
        ]

    def _read(self, start: int, stop: int) -> ScheduleSlice:
        return self._store.schedule(SCHEDULE_TOPIC, self.queue_id, start, stop)


def _merged(parts: list[tuple[Run, Int64s, Int64s]], limit: int) -> Batch:
    """The first units of several runs; with ties the older one, so that each gives its first."""
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Batch(empty, empty, ())
    offsets = np.concatenate([offsets for _, offsets, _ in parts])
    dues = np.concatenate([dues for _, _, dues in parts])
    sources = np.repeat(np.arange(len(parts)), [len(offsets) for _, offsets, _ in parts])
    order = np.lexsort((offsets, dues))[:limit]
    counts = np.bincount(sources[order], minlength=len(parts)).tolist()
    taken = tuple((run, count) for (run, _, _), count in zip(parts, counts, strict=True))
    return Batch(offsets[order], dues[order], taken)
