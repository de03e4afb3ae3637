"""A duration is a length of time as clients write it: `250ms`, `1h30m`, `2d`, or ISO 8601 `PT90S`.

`parse_duration("1h30m") == 5_400_000`. Years and months have no length and are not understood.
Fractions of a millisecond are rounded up, so that nothing is due early.
"""

import re
from decimal import ROUND_CEILING, Decimal

_NUMBER = r"(\d{1,30}(?:\.\d{1,9})?)"
_PLAIN = re.compile(
    rf"(-?)(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?",
    re.ASCII,
)
_ISO_8601 = re.compile(
    rf"(-?)P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)
#: Weeks, days, hours, minutes, seconds, milliseconds: the groups of both patterns, in order.
_UNIT_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1000, 1)


def parse_duration(text: str) -> int | None:
    """Milliseconds (negative ones too), or None if it is not understood."""
    for pattern in (_PLAIN, _ISO_8601):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        sign, *numbers = match.groups()
        if not any(numbers) or text.endswith("T"):
            continue
        total = sum(
            (
                Decimal(number) * unit
                for number, unit in zip(numbers, _UNIT_MS, strict=False)
                if number
            ),
            Decimal(0),
        )
        whole_ms = int(total.to_integral_value(rounding=ROUND_CEILING))
        return -whole_ms if sign else whole_ms
    return None


def format_duration(duration_ms: int) -> str:
    """The shortest plain form: `90_000` is `1m30s`, `250` is `250ms`, `0` is `0s`."""
    parts: list[str] = []
    rest_ms = duration_ms
    for unit_ms, word in (
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
        (1, "ms"),
    ):
        count, rest_ms = divmod(rest_ms, unit_ms)
        if count:
            parts.append(f"{count}{word}")
    return "".join(parts) or "0s"
