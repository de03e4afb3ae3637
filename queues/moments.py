"""A moment is a point in time as clients write it: RFC 3339 with a zone, or ms since 1970.

`format_moment(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"`, and `parse_moment` is its inverse.
Rounding is upward: what is due at a fraction of a millisecond is never early.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

#: Year 9999, where RFC 3339 ends.
MOMENT_MS_MAX = 253_402_300_799_999

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC_3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,30}))?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)
_MILLISECOND = timedelta(milliseconds=1)


def format_moment(moment_ms: int) -> str:
    """The moment in RFC 3339, UTC, with milliseconds."""
    second, rest_ms = divmod(moment_ms, 1000)
    return f"{_format_second(second)}{rest_ms:03d}Z"


def parse_moment(moment: str | int) -> int | None:
    """Milliseconds since the epoch, or None if it is not understood (no zone, no such date)."""
    if isinstance(moment, int):
        return moment
    match = _RFC_3339.fullmatch(moment)
    if match is None:
        return None
    date, clock, fraction, zone = match.groups()
    leap_second = clock.endswith(":60")
    try:
        second = datetime.fromisoformat(
            f"{date}T{clock[:-2] + '59' if leap_second else clock}{zone.upper()}"
        )
    except ValueError:
        return None
    whole_ms = (second - _EPOCH) // _MILLISECOND + (1000 if leap_second else 0)
    return whole_ms + _fraction_ms(fraction or "")


def _fraction_ms(digits: str) -> int:
    whole_ms = int(digits[:3].ljust(3, "0"))
    return whole_ms + 1 if digits[3:].strip("0") else whole_ms


@lru_cache(maxsize=4096)
def _format_second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.")
