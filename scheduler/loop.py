"""The loop: runs one group's step with the time, and sleeps in between.

It is the only code of the scheduler that reads a clock or sleeps. One run of it is one holder's
term: take the step up, run it until the term is over and a standby can take it without a gap that
anybody feels, and put it down. Without a standby the run goes on past its term.

Terms and waits count monotonic time; only what is due is compared with the wall clock. The loop
sleeps until the step's next due time or the doorbell, at most half a second, so that a step of
the wall clock is noticed within that time.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from queues.store.clock import Clock
from queues.store.errors import StoreClosing
from scheduler.clockwatch import ClockStep
from scheduler.limits import (
    FAILURE_WAIT_MS,
    FAILURE_WAIT_MS_MAX,
    FAILURES_MAX,
    GAP_MS_MAX,
    QUIET_MS,
    SLEEP_MS_MAX,
    STATUS_MS,
    TERM_MS,
)
from scheduler.step import Advanced, Step
from scheduler.tally import Tally
from scheduler.wake import Wake

logger = logging.getLogger(__name__)


class Ending(Enum):
    """Why a run of a loop ended."""

    STOPPED = "stopped"
    TERM_OVER = "term over"
    YIELDED = "yielded to a better placed process"
    FAILING = "handed to the standby after failures"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a loop is given besides its step."""

    clock: Clock
    wake: Wake
    stopped: threading.Event
    #: Whether another process waits for the lease.
    has_standby: Callable[[], bool]
    #: Whether the loop may move to the standby's process, given whether its term is over.
    may_move: Callable[[bool], bool]
    #: Says that the holder is alive; called at every turn.
    pulse: Callable[[], None]
    #: Told when the wall clock was set.
    note_clock_step: Callable[[ClockStep], None]


class Loop:
    """One holder's run."""

    def __init__(
        self, *, group: str, step: Step, tally: Tally, around: Surroundings, term_ms: int = TERM_MS
    ) -> None:
        self._group = group
        self._step = step
        self._tally = tally
        self._around = around
        self._term_ms = term_ms
        self._opening_ms = 0
        #: Monotonic time at which a failing step is tried again.
        self._retry_ms = 0

    def run(self) -> Ending:
        """Run from taking the lease to giving it away."""
        self._open()
        try:
            return self._turn_until_over()
        finally:
            self._step.close()

    def _open(self) -> None:
        clock = self._around.clock
        begun_ms = clock.monotonic_ms()
        self._tally.begin(clock.now_ms(), begun_ms, begun_ms + self._term_ms)
        self._step.open()
        self._opening_ms = clock.monotonic_ms() - begun_ms

    def _turn_until_over(self) -> Ending:
        clock = self._around.clock
        look_ms = clock.monotonic_ms()
        term_ends_ms = look_ms + self._term_ms
        while not self._around.stopped.is_set():
            self._around.pulse()
            advanced = self._turn() if clock.monotonic_ms() >= self._retry_ms else None
            monotonic_ms = clock.monotonic_ms()
            if monotonic_ms >= look_ms:
                look_ms = monotonic_ms + STATUS_MS
                self._look_at_clocks_and_tell()
                ending = self._over(advanced, term_over=monotonic_ms >= term_ends_ms)
                if ending is not None:
                    return ending
            if advanced is None:
                # In short pieces: a holder that waits is alive, and says so.
                wait_ms = min(self._retry_ms - clock.monotonic_ms(), SLEEP_MS_MAX)
                self._around.stopped.wait(max(wait_ms, 0) / 1000)
            elif not advanced.more:
                self._sleep(advanced.next_due_ms)
        return Ending.STOPPED

    def _turn(self) -> Advanced | None:
        """One step; None when it failed."""
        self._around.wake.watch()
        now_ms = self._around.clock.now_ms()
        try:
            advanced = self._step.advance(now_ms)
        except StoreClosing:
            self._around.stopped.set()
            return None
        except Exception as error:
            self._tally.failed(error)
            self._retry_ms = self._around.clock.monotonic_ms() + self._failure_wait_ms()
            logger.exception("A step of the %s loop failed; it is tried again.", self._group)
            return None
        self._tally.stepped(advanced, now_ms)
        return advanced

    def _sleep(self, next_due_ms: int | None) -> None:
        now_ms = self._around.clock.now_ms()
        latest_ms = now_ms + SLEEP_MS_MAX
        until_ms = latest_ms if next_due_ms is None else min(next_due_ms, latest_ms)
        if until_ms > now_ms:
            self._around.wake.sleep(until_ms, (until_ms - now_ms) / 1000)

    def _failure_wait_ms(self) -> int:
        doublings = min(self._tally.failures_in_a_row, 10)
        return min(FAILURE_WAIT_MS << max(0, doublings - 1), FAILURE_WAIT_MS_MAX)

    def _look_at_clocks_and_tell(self) -> None:
        clock = self._around.clock
        before_ms = clock.monotonic_ms()
        now_ms = clock.now_ms()
        after_ms = clock.monotonic_ms()
        clock_step = self._tally.observe_clocks(before_ms, now_ms, after_ms)
        if clock_step is not None:
            logger.warning(
                "The wall clock was set by %+d ms (seen by the %s loop).",
                clock_step.step_ms,
                self._group,
            )
            self._around.note_clock_step(clock_step)
        self._tally.write(after_ms, self._step)

    def _over(self, advanced: Advanced | None, *, term_over: bool) -> Ending | None:
        if advanced is None:
            failing = self._tally.failures_in_a_row >= FAILURES_MAX
            return Ending.FAILING if failing and self._around.has_standby() else None
        if not self._around.may_move(term_over) or self._gap_would_be_felt(advanced):
            return None
        if not self._around.has_standby():
            return None
        return Ending.TERM_OVER if term_over else Ending.YIELDED

    def _gap_would_be_felt(self, advanced: Advanced) -> bool:
        if self._opening_ms <= GAP_MS_MAX:
            return False
        if advanced.more or advanced.next_due_ms is None:
            return advanced.more
        quiet_ms = advanced.next_due_ms - self._around.clock.now_ms()
        return quiet_ms < min(2 * self._opening_ms, QUIET_MS)
