"""A clock that stands still until the test moves it."""


class ManualClock:
    """Wall and monotonic time, moved by hand; it goes back only when the test says so."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 1_000

    def now_ms(self) -> int:
        """Wall-clock time, ms since the Unix epoch."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Monotonic time in ms."""
        return self._monotonic_ms

    def advance(self, step_ms: int) -> None:
        """Let time pass."""
        assert step_ms >= 0, "time passes forward; use step_back or step_forward for a clock step"
        self._now_ms += step_ms
        self._monotonic_ms += step_ms

    def advance_to(self, now_ms: int) -> None:
        """Let time pass until a wall-clock time."""
        self.advance(max(0, now_ms - self._now_ms))

    def step_back(self, step_ms: int) -> None:
        """Set the wall clock back; monotonic time goes on."""
        self._now_ms -= step_ms

    def step_forward(self, step_ms: int) -> None:
        """Set the wall clock forward; monotonic time does not notice."""
        self._now_ms += step_ms
