"""Steps and sleeps for tests of the loop: they count, fail on demand, and never wait."""

import threading
from collections.abc import Callable
from typing import Any

from scheduler.step import Advanced
from tests.support.clock import ManualClock


class CountingStep:
    """A step with something due every so often, which remembers what was asked of it."""

    def __init__(self, *, every_ms: int | None = None, failures: int = 0) -> None:
        self.every_ms = every_ms
        self.failures = failures
        self.opened = self.closed = 0
        self.times_ms: list[int] = []
        self.on_advance: Callable[[int], None] = lambda _now_ms: None

    def open(self) -> None:
        """Count."""
        self.opened += 1

    def advance(self, now_ms: int) -> Advanced:
        """Remember the time, and fail as often as told."""
        self.times_ms.append(now_ms)
        self.on_advance(now_ms)
        if self.failures:
            self.failures -= 1
            raise OSError("told to fail")
        next_due_ms = None if self.every_ms is None else now_ms + self.every_ms
        return Advanced(moved=1, more=False, next_due_ms=next_due_ms)

    def close(self) -> None:
        """Count."""
        self.closed += 1

    def report(self) -> dict[str, Any]:
        """Nothing."""
        return {}


class ClockWake:
    """A sleep that moves a manual clock instead of waiting."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.slept_s: list[float] = []

    def watch(self) -> None:
        """Nothing arrives."""

    def sleep(self, until_ms: int, timeout_s: float) -> None:  # noqa: ARG002 - as the protocol has it
        """Let the time pass."""
        self.slept_s.append(timeout_s)
        self._clock.advance(round(timeout_s * 1000))


class ClockEvent(threading.Event):
    """A stop that is waited for by moving a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        """Let the time pass."""
        if not self.is_set() and timeout:
            self._clock.advance(round(timeout * 1000))
        return self.is_set()
