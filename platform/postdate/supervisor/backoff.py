"""Back-off: how long to wait before a process that died is started again.

At once the first time, because a killed process must be missed for as short a time as possible;
then twice as long each time, up to ten seconds, until one has lived for five: what cannot start
dies sooner than that.
"""

from dataclasses import dataclass

WAIT_MS_FIRST = 250
WAIT_MS_MAX = 10_000
LIVED_MS_ENOUGH = 5_000


@dataclass(slots=True)
class Backoff:
    """The memory of one process's deaths."""

    _deaths_in_a_row: int = 0

    def died(self, lived_ms: int) -> int:
        """Note a death after `lived_ms` of life; return the milliseconds to wait."""
        if lived_ms >= LIVED_MS_ENOUGH:
            self._deaths_in_a_row = 0
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row == 1:
            return 0
        return min(WAIT_MS_FIRST << (self._deaths_in_a_row - 2), WAIT_MS_MAX)
