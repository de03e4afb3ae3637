"""The groups: the loops that this process may run, and the way from a tick to a running loop.

Every second Celery beat ticks each group. A tick takes the group's free lease and runs its loop, or
becomes its standby and runs it when the holder is gone, or finds both places taken and ends. A
process runs each group at most once, in the thread of the tick that began it.
"""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from queues.store.clock import Clock
from queues.store.disk import Disk
from scheduler.clockwatch import ClockStep
from scheduler.lease import Lease
from scheduler.limits import PLACEMENT_TICKS, SWITCH_INTERVAL_S, TERM_MS
from scheduler.loop import Ending, Loop, Surroundings
from scheduler.placement import is_better_placed, is_well_placed, may_rotate
from scheduler.status import LoopStatus, StatusPage, read_status, read_statuses
from scheduler.step import Step
from scheduler.tally import Tally
from scheduler.wake import Wake

logger = logging.getLogger(__name__)


def group_names(level_groups: int) -> tuple[str, ...]:
    """The groups with so many loops for the levels; first the one that others are placed by."""
    further = (f"levels-{number}" for number in range(2, level_groups + 1))
    return ("levels", *further, "wheel", "housekeeping")


@dataclass(frozen=True, slots=True)
class Group:
    """One group as `postdate.wiring` describes it."""

    name: str
    #: Makes the step; called each time the lease is taken.
    make_step: Callable[[], Step]
    #: Makes what the loop sleeps on.
    make_wake: Callable[[threading.Event], Wake]
    #: Says that the holder is alive; with False, that it left.
    pulse: Callable[[bool], None]
    #: Told when the wall clock was set.
    note_clock_step: Callable[[ClockStep], None] = lambda _: None


class Groups:
    """All groups of one process."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        *,
        directory: Path,
        process: str,
        clock: Clock,
        disk: Disk,
        term_ms: int = TERM_MS,
    ) -> None:
        self._groups = groups
        self._directory = directory
        self._process = process
        self._clock = clock
        self._disk = disk
        self._term_ms = term_ms
        self._mutex = threading.Lock()
        self._running: set[str] = set()
        self._waited = dict.fromkeys(groups, 0)
        self._leases: dict[str, Lease] = {}
        #: Set when this process is to put everything down.
        self.stopped = threading.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The groups' names."""
        return tuple(self._groups)

    def name_process(self, process: str) -> None:
        """Call this process so, before its first tick."""
        self._process = process

    def tick(self, name: str) -> Ending | None:
        """Run the group's loop for a term, if this process gets to; None if it does not."""
        group = self._groups[name]
        with self._mutex:
            if name in self._running or self.stopped.is_set():
                return None
            self._running.add(name)
        try:
            if not self._take(name):
                return None
            return self._run(group)
        finally:
            with self._mutex:
                self._running.discard(name)

    def stop(self) -> None:
        """Put everything down; every tick that runs ends soon."""
        self.stopped.set()

    def statuses(self) -> dict[str, LoopStatus | None]:
        """What the holder of each group last said."""
        return read_statuses(self._disk, self._directory, self._groups, self._clock.monotonic_ms())

    def _take(self, name: str) -> bool:
        """Hold the lease, at once or after standing by for it."""
        lease = self._lease(name)
        if lease.try_take():
            stays = False
            try:
                stays = not self._defers(name)
            finally:
                if not stays:
                    lease.give()
            return stays
        if not lease.try_stand_by():
            return False
        try:
            page = StatusPage(self._disk, self._path(name, "standby.status"))
        except BaseException:
            lease.step_back()
            raise
        try:
            page.write(self._introduction(name), self._clock.monotonic_ms())
            return lease.wait(self.stopped)
        finally:
            page.clear(self._clock.monotonic_ms())
            page.close()

    def _defers(self, name: str) -> bool:
        """Whether to leave a free lease to a better placed process for now."""
        if is_well_placed(name, self._process, _holders(self.statuses())):
            self._waited[name] = 0
            return False
        self._waited[name] += 1
        return self._waited[name] <= PLACEMENT_TICKS

    def _run(self, group: Group) -> Ending:
        """With the lease held: run the loop, and give the lease away in any case."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            page = StatusPage(self._disk, self._path(group.name, "status"))
        except BaseException:
            self._lease(group.name).give()
            raise
        try:
            tally = Tally(introduction=self._introduction(group.name), page=page)
            loop = Loop(
                group=group.name,
                step=group.make_step(),
                tally=tally,
                around=self._surroundings(group),
                term_ms=self._term_ms,
            )
            ending = loop.run()
            routine = ending is not Ending.FAILING
            level = logging.DEBUG if routine else logging.WARNING
            logger.log(level, "The %s loop ends here: %s.", group.name, ending.value)
            return ending
        finally:
            group.pulse(False)
            page.clear(self._clock.monotonic_ms())
            page.close()
            self._lease(group.name).give()

    def _surroundings(self, group: Group) -> Surroundings:
        return Surroundings(
            clock=self._clock,
            wake=group.make_wake(self.stopped),
            stopped=self.stopped,
            has_standby=self._lease(group.name).has_standby,
            may_move=lambda term_over: self._may_move(group.name, term_over=term_over),
            pulse=lambda: group.pulse(True),
            note_clock_step=group.note_clock_step,
        )

    def _may_move(self, name: str, *, term_over: bool) -> bool:
        """At the end of its term to a place of its own, before it only to a better one."""
        standby = read_status(self._disk, self._path(name, "standby.status"))
        if standby is None or standby.holder == self._process:
            return False
        holders = _holders(self.statuses())
        if term_over:
            return may_rotate(name, standby.holder, holders)
        return is_better_placed(name, standby.holder, self._process, holders)

    def _introduction(self, name: str) -> LoopStatus:
        return LoopStatus(
            group=name,
            holder=self._process,
            process_id=self._disk.process_id(),
            since_ms=self._clock.now_ms(),
        )

    def _lease(self, name: str) -> Lease:
        with self._mutex:
            if name not in self._leases:
                self._leases[name] = Lease(self._disk, self._directory, name)
            return self._leases[name]

    def _path(self, name: str, ending: str) -> Path:
        return self._directory / f"{name}.{ending}"


def _holders(statuses: Mapping[str, LoopStatus | None]) -> dict[str, str]:
    return {name: status.holder for name, status in statuses.items() if status is not None}


class _Plug:
    """The socket: where this process finds its groups."""

    make: Callable[[], Groups] | None = None


def plug_in(make: Callable[[], Groups] | None) -> None:
    """Use the groups that `make` gives."""
    _Plug.make = make


def plugged_in() -> Groups:
    """The groups of this process."""
    if _Plug.make is None:
        message = "SchedulerConfig.ready plugs the groups in: set Django up first."
        raise RuntimeError(message)
    return _Plug.make()
