"""The clock: the only place in the engine that asks what time it is.

The production clock cannot be stubbed; tests hand the store a `ManualClock` instead.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def now_ms(self) -> int:
        """Wall-clock time, ms since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """A time that never steps, ms since some start."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Wall-clock time, ms since the Unix epoch, rounded down: a message is never early."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Monotonic time in ms."""
        return time.monotonic_ns() // 1_000_000
