"""A retry rule: how long a failed message waits for its next attempt, and when it is dead.

RocketMQ's: the first failure waits in level 3, each further one a level higher, up to the table's
last; after `retries_max` retries the next failure ends in the dead letters. A group may have delays
of its own instead: growing by a factor, or a list whose last one repeats.

Example: with 18 levels and 16 retries, failures 1, 5 and 16 wait 10 s, 3 min and 2 h (levels 3, 7
and 18); failure 17 is the end.
"""

from dataclasses import dataclass
from typing import NamedTuple

from queues.store.levels import LevelTable

#: The level that the first failure waits in.
FIRST_LEVEL = 3
#: Doubling that often is past every bound (RocketMQ clamps there, too).
_GROWTHS_MAX = 32


class Wait(NamedTuple):
    """What comes after a failure: a wait in a level, for some time, or (`dead`) nothing more."""

    level: int = 0
    delay_ms: int = 0
    dead: bool = False


DEAD = Wait(dead=True)


@dataclass(frozen=True, slots=True)
class RetryRule:
    """How one group tries again."""

    #: The table that levels are looked up in.
    levels: LevelTable
    #: Retries after the first attempt.
    retries_max: int = 16
    #: Queues of the group's retry topic.
    queues: int = 1
    #: Delays of the group's own, ms; the last one repeats. None: levels, or growing ones.
    delays_ms: tuple[int, ...] | None = None
    #: First delay, factor and longest delay of growing ones. None: levels.
    growth: tuple[int, float, int] | None = None

    def after(self, attempt: int) -> Wait:
        """What comes after the failure of an attempt, from 1."""
        if attempt > self.retries_max:
            return DEAD
        if self.delays_ms is not None:
            return Wait(delay_ms=self.delays_ms[min(attempt, len(self.delays_ms)) - 1])
        if self.growth is not None:
            initial_ms, factor, max_ms = self.growth
            grown = initial_ms * factor ** min(attempt - 1, _GROWTHS_MAX)
            return Wait(delay_ms=int(min(grown, max_ms)))
        level = min(FIRST_LEVEL + attempt - 1, self.levels.max_level)
        return Wait(level=level, delay_ms=self.levels.delay_ms(level))

    def plan(self, attempt: int) -> list[int]:
        """The delays, ms, of all attempts that would follow the failure of this one."""
        return [self.after(number).delay_ms for number in range(attempt, self.retries_max + 1)]
