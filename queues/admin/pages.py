"""What pages of the console share, those of reports too: who acts, and a moment that was picked."""

import re
from typing import Any

from django.http import HttpRequest

from queues.codes import Code
from queues.moments import parse_moment
from queues.problems import Problem

#: More digits are no moment anyone means.
_MS = re.compile(r"-?\d{1,18}", re.ASCII)


def acting(request: HttpRequest) -> str:
    """How the audit log names the person."""
    return f"user:{request.user.get_username()}"


def read_moment(data: Any, name: str) -> int | None:
    """The moment of a field, ms; None where nothing is written.

    Without the script it is read as UTC. Raises `delay_invalid`.
    """
    exact = str(data.get(f"{name}_ms", "")).strip()
    written = str(data.get(name, "")).strip()
    for digits in (exact, written):
        if _MS.fullmatch(digits):
            return int(digits)
    if not written:
        return None
    has_zone = written.endswith(("Z", "z")) or "+" in written
    if not has_zone:
        seconds = "" if written.count(":") > 1 else ":00"
        written = f"{written}{seconds}Z"
    moment_ms = parse_moment(written)
    if moment_ms is None:
        raise Problem(Code.DELAY_INVALID, f"{written[:40]!r} is no moment.")
    return moment_ms
