"""When scheduled reports start, and which time they cover."""

import itertools
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from analytics.periods import Timing, whole_quarters


def ms(text: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def test_an_hourly_report_covers_the_hour_before() -> None:
    timing = Timing("hour", minute=5)
    start_ms = timing.next_after(ms("2026-03-01T10:04:59"))
    assert start_ms == ms("2026-03-01T10:05:00")
    assert timing.next_after(start_ms) == ms("2026-03-01T11:05:00")
    assert timing.period(start_ms) == (ms("2026-03-01T09:00"), ms("2026-03-01T10:00"))


def test_a_daily_report_covers_the_day_before_in_its_own_zone() -> None:
    timing = Timing("day", hour=1, minute=30, zone="Europe/Berlin")
    start_ms = timing.next_after(ms("2026-03-01T22:00", "Europe/Berlin"))
    assert start_ms == ms("2026-03-02T01:30", "Europe/Berlin")
    assert timing.period(start_ms) == (
        ms("2026-03-01T00:00", "Europe/Berlin"),
        ms("2026-03-02T00:00", "Europe/Berlin"),
    )


def test_a_weekly_report_starts_on_its_day_and_covers_seven() -> None:
    timing = Timing("week", weekday=0, hour=6)
    start_ms = timing.next_after(ms("2026-03-02T06:00"))
    assert start_ms == ms("2026-03-09T06:00")
    assert timing.period(start_ms) == (ms("2026-03-02T00:00"), ms("2026-03-09T00:00"))


def test_a_day_of_twenty_three_hours_is_covered_whole() -> None:
    timing = Timing("day", hour=3, zone="Europe/Berlin")
    start_ms = timing.next_after(ms("2026-03-30T00:00", "Europe/Berlin"))
    from_ms, to_ms = timing.period(start_ms)
    assert (to_ms - from_ms) / 3_600_000 == 23


def test_a_start_that_the_clocks_leave_out_comes_once_and_the_next_day_is_its_own() -> None:
    timing = Timing("day", hour=2, minute=30, zone="Europe/Berlin")
    first = timing.next_after(ms("2026-03-28T12:00", "Europe/Berlin"))
    second = timing.next_after(first)
    assert 0 < first - ms("2026-03-28T12:00", "Europe/Berlin") < 86_400_000
    assert second == ms("2026-03-30T02:30", "Europe/Berlin")


def test_an_hour_that_comes_twice_has_two_hourly_reports() -> None:
    timing = Timing("hour", minute=0, zone="Europe/Berlin")
    at_ms = ms("2026-10-25T01:30", "Europe/Berlin")
    starts = []
    for _ in range(4):
        at_ms = timing.next_after(at_ms)
        starts.append(at_ms)
    assert {b - a for a, b in itertools.pairwise(starts)} == {3_600_000}


@pytest.mark.parametrize("day", ["2026-04-04", "2026-10-03"])
@pytest.mark.parametrize("minute", [0, 20, 59])
def test_hours_follow_each_other_where_clocks_move_by_half_an_hour(day: str, minute: int) -> None:
    timing = Timing("hour", minute=minute, zone="Australia/Lord_Howe")
    at_ms = ms(f"{day}T20:00", "Australia/Lord_Howe")
    periods = []
    for _ in range(12):
        at_ms = timing.next_after(at_ms)
        periods.append(timing.period(at_ms))
    assert all(one[1] == other[0] for one, other in itertools.pairwise(periods))
    assert sorted(end - start for start, end in periods) == [3_600_000] * 11 + [5_400_000]


@pytest.mark.parametrize("every", ["hour", "day", "week"])
def test_the_next_start_is_always_later(every: str) -> None:
    timing = Timing(every, minute=59, hour=23, weekday=6, zone="Asia/Kolkata")  # type: ignore[arg-type]
    at_ms = ms("2026-10-24T00:00")
    for _ in range(50):
        following = timing.next_after(at_ms)
        assert following > at_ms
        from_ms, to_ms = timing.period(following)
        assert from_ms < to_ms <= following
        at_ms = following


def test_a_period_is_rounded_outward_to_quarter_hours() -> None:
    quarter = 900_000
    assert whole_quarters(quarter + 1, 2 * quarter + 1) == (quarter, 3 * quarter)
    assert whole_quarters(quarter, 2 * quarter) == (quarter, 2 * quarter)
