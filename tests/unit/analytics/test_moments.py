"""Moments in reports: RFC 3339 in every zone, as everywhere in the API."""

import re
from zoneinfo import ZoneInfo

import pytest

from analytics.jobs.assembling import _moment
from queues.moments import parse_moment

AT_MS = 1_795_399_200_000


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        (None, "2026-11-23T02:00:00.000Z"),
        ("UTC", "2026-11-23T02:00:00.000Z"),
        ("Australia/Sydney", "2026-11-23T13:00:00.000+11:00"),
        ("America/St_Johns", "2026-11-22T22:30:00.000-03:30"),
    ],
)
def test_a_moment_is_told_with_its_seconds(zone: str | None, told: str) -> None:
    found = _moment(AT_MS, zone and ZoneInfo(zone))
    assert found == told
    assert parse_moment(found) == AT_MS
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{3}(Z|[+-][0-9:]{5})", found)
