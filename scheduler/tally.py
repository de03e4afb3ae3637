"""The tally: what a holder counts about its own loop, and writes to the status page."""

from dataclasses import replace

from scheduler.clockwatch import ClockStep, ClockWatch
from scheduler.limits import CLOCK_READING_MS_MAX
from scheduler.status import LoopStatus, StatusPage
from scheduler.step import Advanced, Step


class Tally:
    """Counts of one holder's run."""

    def __init__(self, *, introduction: LoopStatus, page: StatusPage) -> None:
        self._introduction = introduction
        self._page = page
        self._watch = ClockWatch()
        self._steps = self._moved = self._failures = 0
        self._told_steps = self._told_moved = self._told_ms = 0
        self._last_step_ms: int | None = None
        self._next_due_ms: int | None = None
        self._last_error: str | None = None
        #: Steps that failed one after the other, up to now.
        self.failures_in_a_row = 0

    def begin(self, now_ms: int, monotonic_ms: int, term_ends_ms: int) -> None:
        """The lease was taken; a standby may take over at `term_ends_ms`, monotonic."""
        self._introduction = replace(
            self._introduction, since_ms=now_ms, term_ends_monotonic_ms=term_ends_ms
        )
        self._told_ms = monotonic_ms
        self._page.write(self._introduction, monotonic_ms)

    def stepped(self, advanced: Advanced, now_ms: int) -> None:
        """A step was done."""
        self._steps += 1
        self._moved += advanced.moved
        self._last_step_ms = now_ms
        self._next_due_ms = now_ms if advanced.more else advanced.next_due_ms
        self.failures_in_a_row = 0

    def failed(self, error: Exception) -> None:
        """A step failed."""
        self._failures += 1
        self.failures_in_a_row += 1
        self._last_error = f"{type(error).__name__}: {error}"[:500]

    def observe_clocks(self, before_ms: int, now_ms: int, after_ms: int) -> ClockStep | None:
        """Compare the clocks, read in the order monotonic, wall, monotonic."""
        if after_ms - before_ms > CLOCK_READING_MS_MAX:
            return None
        return self._watch.observe(now_ms, after_ms)

    def write(self, monotonic_ms: int, step: Step) -> None:
        """Write the status page."""
        span_s = max(monotonic_ms - self._told_ms, 1) / 1000
        last, report = self._watch.last, step.report()
        status = replace(
            self._introduction,
            last_step_ms=self._last_step_ms,
            steps_per_second=round((self._steps - self._told_steps) / span_s, 1),
            moved_per_second=round((self._moved - self._told_moved) / span_s, 1),
            moved=self._moved,
            next_due_ms=self._next_due_ms,
            behind_ms=report.pop("behind_ms", 0),
            lateness_p50_ms=report.pop("lateness_p50_ms", None),
            lateness_p99_ms=report.pop("lateness_p99_ms", None),
            failures=self._failures,
            failures_in_a_row=self.failures_in_a_row,
            last_error=self._last_error,
            clock_steps=self._watch.count,
            clock_step_ms=last.step_ms if last else None,
            clock_step_at_ms=last.at_ms if last else None,
            detail=report,
        )
        self._page.write(status, monotonic_ms)
        self._told_steps, self._told_moved, self._told_ms = self._steps, self._moved, monotonic_ms
