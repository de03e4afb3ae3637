"""What the console's fields for a moment mean, with the script and without it."""

import pytest

from queues.admin.pages import read_moment
from queues.problems import Problem

NOON_MS = 1_767_355_200_000


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"at": "  "}, None),
        ({"at": "2026-01-02T13:00", "at_ms": str(NOON_MS)}, NOON_MS),
        ({"at": "2026-01-02T12:00"}, NOON_MS),
        ({"at": "2026-01-02T12:00:00"}, NOON_MS),
        ({"at": "2026-01-02T13:00:00+01:00"}, NOON_MS),
        ({"at": "2026-01-02T12:00:00Z"}, NOON_MS),
        ({"at": str(NOON_MS)}, NOON_MS),
        ({"at": "-5"}, -5),
    ],
)
def test_a_moment_is_read(fields: dict[str, str], expected: int | None) -> None:
    assert read_moment(fields, "at") == expected


@pytest.mark.parametrize("rubbish", ["--5", "yesterday", "9" * 5000, "\u0665", "2026-13-01T00:00"])
def test_rubbish_is_told_apart(rubbish: str) -> None:
    for fields in ({"at": rubbish}, {"at": rubbish, "at_ms": rubbish}):
        with pytest.raises(Problem, match="is no moment"):
            read_moment(fields, "at")
