"""Durations and moments as clients write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.durations import format_duration, parse_duration
from queues.moments import MOMENT_MS_MAX, format_moment, parse_moment

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("2d", 2 * DAY_MS),
        ("1w", 7 * DAY_MS),
        ("1.5s", 1_500),
        ("0.0001s", 1),
        ("0s", 0),
        ("-5s", -5_000),
        ("PT90S", 90_000),
        ("PT1H30M", 5_400_000),
        ("P2D", 2 * DAY_MS),
        ("P1DT1M", DAY_MS + 60_000),
        ("P1W", 7 * DAY_MS),
        ("PT0.25S", 250),
        ("-PT5S", -5_000),
    ],
)
def test_a_duration_is_understood(text, length_ms):
    assert parse_duration(text) == length_ms


@pytest.mark.parametrize(
    "text",
    ["", "5", "s", "soon", "5 s", "5sec", "1m1h", "5s5s", "P", "PT", "P1Y", "P1M", "P1DT", "1e3s",
     "٣s", "5S", "pt5s", "--5s", "+5s", ".5s", "5.s", "9" * 31 + "s", "5s\n", "P1H"],
)  # fmt: skip
def test_anything_else_is_not(text):
    assert parse_duration(text) is None


@given(st.integers(min_value=0, max_value=10**15))
def test_a_duration_written_out_reads_the_same(length_ms):
    assert parse_duration(format_duration(length_ms)) == length_ms


@given(st.text())
def test_no_text_is_a_fault(text):
    parse_duration(text)
    parse_moment(text)


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14t22:13:20.123z", 1_700_000_000_123),
        ("2023-11-14 22:13:20.1Z", 1_700_000_000_100),
        ("2023-11-15T00:13:20.123+02:00", 1_700_000_000_123),
        ("2023-11-14T22:13:20.1230001Z", 1_700_000_000_124),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("9999-12-31T23:59:59.999Z", MOMENT_MS_MAX),
        (1_700_000_000_123, 1_700_000_000_123),
        (-1, -1),
    ],
)
def test_a_moment_is_understood(text, moment_ms):
    assert parse_moment(text) == moment_ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14T22:13Z", "2023-02-30T00:00:00Z",
     "2023-11-14T25:00:00Z", "2023-11-14T22:13:20+25:00", "0000-01-01T00:00:00Z",
     "2023-11-14T22:13:20Z\n", "1700000000123", "٢٠٢٣-11-14T22:13:20Z"],
)  # fmt: skip
def test_a_moment_without_zone_or_day_is_not(text):
    assert parse_moment(text) is None


@given(st.integers(min_value=0, max_value=MOMENT_MS_MAX))
def test_a_moment_written_out_reads_the_same(moment_ms):
    assert parse_moment(format_moment(moment_ms)) == moment_ms
