"""A delay is when a message shall arrive, in one of five forms that a client may write.

`delay_level` waits in a level of the table; `delay`, `delay_ms`, `delay_seconds` count from now;
`deliver_at` is a moment. At most one of them: which of two would win is nobody's guess to make.
"""

import math
from decimal import Decimal
from typing import NamedTuple

from queues.codes import Code
from queues.durations import format_duration, parse_duration
from queues.moments import parse_moment
from queues.problems import Problem
from queues.wires import Rules


class Due(NamedTuple):
    """When a message is due: at a level's end, at a moment, or (both absent) at once."""

    #: 0: none.
    level: int = 0
    #: Milliseconds since the epoch.
    due_ms: int | None = None


AT_ONCE = Due()


def resolve_delay(
    *,
    delay_level: int | None,
    delay: str | None,
    delay_ms: int | None,
    delay_seconds: float | None,
    deliver_at: str | int | None,
    now_ms: int,
    rules: Rules,
) -> Due | None:
    """Say when that is, or None for none of them; None and level 0 are absent.

    Raises `conflicting_delay` or one of the `delay_...` problems.
    """
    given = (
        (delay_seconds is not None)
        + (delay_ms is not None)
        + (delay is not None)
        + (deliver_at is not None)
        + bool(delay_level)
    )
    if not given:
        return None
    if given > 1:
        detail = "Give one of delay_level, delay, delay_ms, delay_seconds and deliver_at."
        raise Problem(Code.CONFLICTING_DELAY, detail, pointer="")
    if delay_level:
        return Due(_known_level(delay_level, rules))
    if deliver_at is not None:
        return _at_moment(deliver_at, now_ms, rules)
    if delay_seconds is not None:
        return _after(_whole_ms(delay_seconds), "/delay_seconds", now_ms, rules)
    if delay_ms is not None:
        return _after(delay_ms, "/delay_ms", now_ms, rules)
    return _after(_parsed_ms(delay or ""), "/delay", now_ms, rules)


def _after(delay_ms: int, pointer: str, now_ms: int, rules: Rules) -> Due:
    if not 0 <= delay_ms <= rules.delay_ms_max:
        raise _out_of_range(pointer, rules)
    return Due(0, now_ms + delay_ms) if delay_ms else AT_ONCE


def _known_level(level: int, rules: Rules) -> int:
    if 0 < level <= rules.levels.max_level:
        return level
    if level > 0 and rules.clamp_levels:
        return rules.levels.clamp(level)
    detail = f"The delay levels are 1 to {rules.levels.max_level}; 0 or none is no delay."
    extra = {"maximum": rules.levels.max_level}
    raise Problem(Code.DELAY_LEVEL_UNKNOWN, detail, pointer="/delay_level", extra=extra)


def _at_moment(moment: str | int, now_ms: int, rules: Rules) -> Due:
    due_ms = parse_moment(moment)
    if due_ms is None:
        detail = "Write RFC 3339 with a zone (2026-01-31T09:30:00.000Z) or milliseconds since 1970."
        raise Problem(Code.DELAY_INVALID, detail, pointer="/deliver_at")
    if due_ms > now_ms + rules.delay_ms_max:
        raise _out_of_range("/deliver_at", rules)
    return Due(0, due_ms) if due_ms > now_ms else AT_ONCE


def _whole_ms(seconds: float) -> int:
    if isinstance(seconds, int):
        return seconds * 1000
    # By its decimal digits: 1.1 s are 1100 ms, not the 1100.0000000000002 of binary fractions.
    return math.ceil(Decimal(repr(seconds)) * 1000)


def _parsed_ms(delay: str) -> int:
    delay_ms = parse_duration(delay)
    if delay_ms is None:
        detail = "Write a duration such as 250ms, 90s, 1h30m, 2d or PT90S."
        raise Problem(Code.DELAY_INVALID, detail, pointer="/delay")
    return delay_ms


def _out_of_range(pointer: str, rules: Rules) -> Problem:
    maximum_ms = rules.delay_ms_max
    return Problem(
        Code.DELAY_OUT_OF_RANGE,
        f"A delay is not negative and at most {format_duration(maximum_ms)}.",
        pointer=pointer,
        extra={"maximum": format_duration(maximum_ms), "maximum_ms": maximum_ms},
    )
