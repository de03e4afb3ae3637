"""The step of housekeeping: a list of duties, each done as often as it says.

A duty that was missed is done once, not once for each time it was missed. One that fails is tried
again with growing waits, and the others go on; its last failure stands in the loop's status.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queues.store.errors import StoreClosing
from scheduler.limits import FAILURE_WAIT_MS_MAX
from scheduler.step import Advanced

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Duty:
    """Something to be done every so often."""

    name: str
    #: How often, ms.
    every_ms: int
    #: Does it, given the wall-clock time; what it returns is shown in the loop's status.
    do: Callable[[int], object]
    #: Whether it is also done when the lease is given away.
    on_close: bool = False


class _Course:
    """How one duty goes."""

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.done_ms: int | None = None
        self.failures = 0
        self.last: object = None
        self.last_error: str | None = None

    def next_ms(self) -> int | None:
        """When it is to be done next; None: now."""
        if self.done_ms is None:
            return None
        every_ms = self.duty.every_ms
        if self.failures:
            every_ms = max(every_ms, min(every_ms << min(self.failures, 10), FAILURE_WAIT_MS_MAX))
        return self.done_ms + every_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether it is time; a wall clock that was set back makes it time, too."""
        next_ms = self.next_ms()
        return next_ms is None or now_ms >= next_ms or now_ms < (self.done_ms or 0)


class HousekeepingStep:
    """Does the duties."""

    def __init__(self, duties: Sequence[Duty]) -> None:
        self._courses = [_Course(duty) for duty in duties]
        self._now_ms = 0

    def open(self) -> None:
        """Nothing to recover: each duty looks at the store itself."""

    def advance(self, now_ms: int) -> Advanced:
        """Do each duty whose time has come."""
        self._now_ms = now_ms
        for course in self._courses:
            if course.is_due(now_ms):
                self._do(course)
        times = [time_ms for course in self._courses if (time_ms := course.next_ms()) is not None]
        return Advanced(moved=0, more=False, next_due_ms=min(times, default=None))

    def close(self) -> None:
        """Do once more what the next start should find done."""
        for course in self._courses:
            if course.duty.on_close:
                self._do(course)

    def report(self) -> dict[str, Any]:
        """The duties' last answers, and those that fail."""
        return {
            "duties": {
                course.duty.name: course.last for course in self._courses if course.last is not None
            },
            "failing": {
                course.duty.name: course.last_error for course in self._courses if course.failures
            },
        }

    def _do(self, course: _Course) -> None:
        course.done_ms = self._now_ms
        try:
            course.last = course.duty.do(self._now_ms)
        except StoreClosing:
            raise
        except Exception as error:
            course.failures += 1
            course.last_error = f"{type(error).__name__}: {error}"[:300]
            logger.exception("Housekeeping: %s failed; it is tried again.", course.duty.name)
        else:
            course.failures, course.last_error = 0, None
