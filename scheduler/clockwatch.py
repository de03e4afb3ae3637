"""The clock watch: tells a wall clock that was set from one that runs.

Wall and monotonic time advance together. When their difference jumps between two readings,
somebody set the wall clock (or the machine slept): forward, and messages become due at once;
back, and they wait until the clock reaches their time again. Neither makes anything early, lost
or stuck; the watch is there so that it is seen.

Example: readings (wall 5000, monotonic 100) and (wall 3606000, monotonic 1100) differ by 4900 and
3604900: a step of +3600000 ms.
"""

from dataclasses import dataclass

from scheduler.limits import CLOCK_STEP_MS


@dataclass(frozen=True, slots=True)
class ClockStep:
    """One setting of the wall clock."""

    #: Wall-clock time after it, ms.
    at_ms: int
    #: How far it was set, ms; negative is back.
    step_ms: int


class ClockWatch:
    """Watches the difference between the two clocks."""

    def __init__(self) -> None:
        self._difference_ms: int | None = None
        #: How many steps were seen.
        self.count = 0
        #: The newest one.
        self.last: ClockStep | None = None

    def observe(self, now_ms: int, monotonic_ms: int) -> ClockStep | None:
        """Take one reading of both clocks; the step since the last reading, if there was one."""
        difference_ms = now_ms - monotonic_ms
        before_ms, self._difference_ms = self._difference_ms, difference_ms
        if before_ms is None or abs(difference_ms - before_ms) < CLOCK_STEP_MS:
            return None
        self.count += 1
        self.last = ClockStep(at_ms=now_ms, step_ms=difference_ms - before_ms)
        return self.last
