"""The options of the commands for API keys: rights, limits, expiry."""

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import CommandError

from queues import wires
from queues.durations import parse_duration
from queues.moments import MOMENT_MS_MAX, parse_moment
from queues.quotas import UNLIMITED, Quotas

SCOPES = ("send", "consume", "inspect", "manage")
_LIMITS = {
    "requests_per_second": "requests a second",
    "messages_per_second": "messages sent a second, each item of a batch counted",
    "messages_per_day": "messages sent from midnight to midnight, UTC",
    "burst_seconds": "so many seconds' worth may be used at once",
}


def add_rights(parser: ArgumentParser, *, default: str) -> None:
    """Scopes and patterns."""
    parser.add_argument(
        "--scope", action="append", choices=SCOPES, help=f"may be repeated; default: {default}"
    )
    for what in ("topics", "groups"):
        parser.add_argument(f"--{what}", action="append", help=f"a pattern; default: {default}")


def add_limits(parser: ArgumentParser) -> None:
    """Quotas and expiry."""
    for name, text in _LIMITS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    parser.add_argument("--expires", metavar="WHEN", help="RFC 3339 with a zone, or 90d from now")


def quotas_of(options: Mapping[str, Any], base: Quotas = UNLIMITED) -> Quotas:
    """What was asked for, over what there is; 0 is no limit."""
    given: dict[str, Any] = {name: options[name] for name in _LIMITS if options[name] is not None}
    if given.get("burst_seconds") == 0:
        raise CommandError("--burst-seconds is 1 or more.")
    changes: dict[str, Any] = {name: value or None for name, value in given.items()}
    return replace(base, **changes)


def expiry_of(options: Mapping[str, Any]) -> datetime | None:
    """When the key expires; None: nothing was said."""
    written = options["expires"]
    if written is None:
        return None
    length_ms = parse_duration(written)
    moment_ms = parse_moment(written) if length_ms is None else _now_ms() + length_ms
    if moment_ms is None or not _now_ms() < moment_ms <= MOMENT_MS_MAX:
        raise CommandError(
            "--expires takes a moment to come, before the year 10000: 2027-01-31T00:00:00Z, or 90d."
        )
    return datetime.fromtimestamp(moment_ms / 1000, UTC)


def overlap_of(written: str) -> timedelta:
    """How long two secrets overlap; what is far beyond any bound is cut to a date's length."""
    length_ms = parse_duration(written)
    if length_ms is None:
        raise CommandError("--overlap takes a duration: 24h, 7d, 0s.")
    return timedelta(milliseconds=max(-1, min(length_ms, MOMENT_MS_MAX)))


def _now_ms() -> int:
    return wires.wiring().get_clock().now_ms()
