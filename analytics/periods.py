"""Periods: which time a scheduled report covers, and when the next one starts.

Hours and days are the schedule's zone's. A start that a change of the clocks leaves out comes when
the clocks have moved; one that comes twice counts once. An hour ends when the clocks show a full
one: where they move by half an hour (Lord Howe) one hour of a year takes 90 minutes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

Every = Literal["hour", "day", "week"]
QUARTER_MS = 900_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule starts."""

    every: Every
    minute: int = 0
    hour: int = 0
    #: 0 is Monday.
    weekday: int = 0
    zone: str = "UTC"

    def next_after(self, now_ms: int) -> int:
        """The first start after a moment, ms."""
        place = ZoneInfo(self.zone)
        local = datetime.fromtimestamp(now_ms / 1000, place)
        if self.every == "hour":
            # Counted from the last full one, so that none is left out or comes twice.
            begun_ms = _last_full_hour_ms(now_ms, place)
            if begun_ms + self.minute * 60_000 <= now_ms:
                begun_ms = _full_hour_ms(begun_ms + QUARTER_MS, place, QUARTER_MS)
            return begun_ms + self.minute * 60_000
        day = local.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0, fold=0)
        for _ in range(9):
            at_ms = round(day.astimezone(UTC).timestamp() * 1000)
            if at_ms > now_ms and (self.every == "day" or day.weekday() == self.weekday):
                return at_ms
            day += timedelta(days=1)
        raise AssertionError("no start within nine days")

    def period(self, start_ms: int) -> tuple[int, int]:
        """The period of a report that starts then: the last whole one, in quarter-hours."""
        place = ZoneInfo(self.zone)
        if self.every == "hour":
            to_ms = _last_full_hour_ms(start_ms, place)
            return _last_full_hour_ms(to_ms - 1, place), to_ms
        local = datetime.fromtimestamp(start_ms / 1000, place)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        days = 1 if self.every == "day" else 7
        bounds = (midnight - timedelta(days=days), midnight)
        from_ms, to_ms = (round(one.astimezone(UTC).timestamp() * 1000) for one in bounds)
        return whole_quarters(from_ms, to_ms)


def whole_quarters(from_ms: int, to_ms: int) -> tuple[int, int]:
    """The quarter-hours (UTC) that hold a period: its start rounded down, its end up."""
    return from_ms // QUARTER_MS * QUARTER_MS, -(-to_ms // QUARTER_MS) * QUARTER_MS


def _last_full_hour_ms(at_ms: int, place: ZoneInfo) -> int:
    """When the clocks last showed a full hour."""
    return _full_hour_ms(at_ms // QUARTER_MS * QUARTER_MS, place, -QUARTER_MS)


def _full_hour_ms(at_ms: int, place: ZoneInfo, step_ms: int) -> int:
    """The first quarter-hour from one on, in steps, at which the clocks show a full hour."""
    while datetime.fromtimestamp(at_ms / 1000, place).minute:
        at_ms += step_ms
    return at_ms
