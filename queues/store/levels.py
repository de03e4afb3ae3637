"""The delay level table: the fixed delays that a message may ask for by number.

RocketMQ's syntax: entries separated by one space, each a whole number and a unit (``s``, ``m``,
``h``, ``d``); levels are positions, beginning with 1. The parser is strict: what RocketMQ would
half accept is refused as a whole, with the entry that is wrong.

Example: ``LevelTable.parse("1s 5s 10s").delay_ms(3) == 10_000``.
"""

from dataclasses import dataclass
from typing import Final, Self

from queues.store.errors import LevelTableInvalid

DEFAULT_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

#: ``PD_KIND`` writes the level in three digits.
LEVEL_COUNT_MAX: Final = 999

#: The schedule table keeps a due time in 44 bits of milliseconds; ten years leave room for it.
LEVEL_DELAY_MS_MAX: Final = 10 * 366 * 86_400_000

#: RocketMQ's delay for a unit whose level its table does not know.
UNKNOWN_LEVEL_DELAY_MS: Final = 1000

_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class LevelTable:
    """The delays by level."""

    #: The table as it was written.
    text: str
    #: The delay of level 1, 2, ... in milliseconds.
    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the table; raise ``LevelTableInvalid`` for anything but RocketMQ's syntax."""
        if not text:
            raise LevelTableInvalid(text=text, reason="the table is empty")
        entries = text.split(" ")
        if len(entries) > LEVEL_COUNT_MAX:
            raise LevelTableInvalid(text=text, reason=f"more than {LEVEL_COUNT_MAX} levels")
        delays_ms = tuple(
            _parse_entry(text, level, entry) for level, entry in enumerate(entries, start=1)
        )
        return cls(text=text, delays_ms=delays_ms)

    @property
    def max_level(self) -> int:
        """The highest level."""
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """Return the delay of a level that the table has; ``IndexError`` for any other."""
        if not 1 <= level <= len(self.delays_ms):
            message = f"level {level} is not between 1 and {len(self.delays_ms)}"
            raise IndexError(message)
        return self.delays_ms[level - 1]

    def clamp(self, level: int) -> int:
        """Return the level as RocketMQ takes it: the highest for any above, 0 for none."""
        return max(0, min(level, len(self.delays_ms)))

    def due_ms(self, level: int, store_ms: int) -> int:
        """Return RocketMQ's tagsCode of a waiting record: its due time, the level clamped."""
        clamped = self.clamp(level)
        return store_ms + (self.delays_ms[clamped - 1] if clamped else UNKNOWN_LEVEL_DELAY_MS)


def correct_deliver_timestamp(*, now_ms: int, due_ms: int, delay_ms: int) -> int:
    """Return the time at which RocketMQ delivers a stored unit: now, if it is due too far ahead.

    It guards against a clock that stepped back and a level that was shortened. Used for a broker's
    own records only; the messages of this store keep the due time that they were promised.
    """
    return now_ms if due_ms > now_ms + delay_ms else due_ms


def _parse_entry(text: str, level: int, entry: str) -> int:
    if not entry:
        reason = f"level {level} is empty; entries are separated by exactly one space"
        raise LevelTableInvalid(text=text, reason=reason)
    number, unit = entry[:-1], entry[-1]
    if unit not in _UNIT_MS:
        reason = f"level {level} ({entry!r}) does not end with one of s, m, h, d"
        raise LevelTableInvalid(text=text, reason=reason)
    if not (number.isascii() and number.isdigit()):
        reason = f"level {level} ({entry!r}) does not begin with a whole number"
        raise LevelTableInvalid(text=text, reason=reason)
    # The length is looked at first: converting a number of any length takes any time.
    delay_ms = int(number) * _UNIT_MS[unit] if len(number.lstrip("0")) <= len("9" * 12) else None
    if delay_ms is None or not 0 < delay_ms <= LEVEL_DELAY_MS_MAX:
        reason = f"level {level} ({entry!r}) is not between 1 ms and {LEVEL_DELAY_MS_MAX} ms"
        raise LevelTableInvalid(text=text, reason=reason)
    return delay_ms
