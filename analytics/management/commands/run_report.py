"""`manage.py run_report lateness` makes a report now and prints it."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analytics.models import ReportRun
from analytics.selectors import reports as selectors
from analytics.services.here import run_here
from analytics.services.reports import request_report
from queues import wires
from queues.management.database import needs_database
from queues.moments import parse_moment
from queues.problems import Problem


def moment(text: str) -> int:
    """A moment on the command line: RFC 3339, or ms since the epoch."""
    at_ms = int(text) if text.isascii() and text.isdigit() else parse_moment(text)
    if at_ms is None:
        raise ArgumentTypeError("write RFC 3339 with a zone, or milliseconds since 1970")
    return at_ms


class Command(BaseCommand):
    """Makes a report, beside a running platform or without one."""

    help = (
        "Make a report over the log now and print it: by default of the last 24 hours, all topics."
        " Works beside a running platform and without one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("report", choices=["lateness"])
        parser.add_argument("--from", dest="from_ms", type=moment, metavar="TIME")
        parser.add_argument("--to", dest="to_ms", type=moment, metavar="TIME")
        parser.add_argument("--topic")
        parser.add_argument("--time-zone", default="UTC", help="in which hours are told")
        parser.add_argument("--json", action="store_true", help="the whole report as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask for it as anyone does, and carry it out here if nobody else has."""
        del _args
        wiring = wires.wiring()
        try:
            with needs_database():
                begun = request_report(
                    report=options["report"], from_ms=options["from_ms"], to_ms=options["to_ms"],
                    topic=options["topic"], by="command:run_report",
                    now_ms=wiring.get_clock().now_ms(), zone=options["time_zone"],
                )  # fmt: skip
        except Problem as problem:
            raise CommandError(problem.detail) from None
        leases = settings.POSTDATE.store_dir / "postdate" / "leases"
        operation = run_here(begun.operation_id, leases, self._tell)
        if operation.state != "succeeded":
            told = (operation.error or {}).get("detail") or f"It was {operation.state}."
            self.stderr.write(str(told))
            sys.exit(1)
        self._print(selectors.get_report(begun.run_id), as_json=options["json"])

    def _tell(self, done: int) -> None:
        self.stderr.write(f"{done:>3} %")

    def _print(self, run: ReportRun, *, as_json: bool) -> None:
        rows = [selectors.row_values(row) for row in selectors.rows_of(run)]
        if as_json:
            self.stdout.write(json.dumps({"id": run.id, **run.result, "rows": rows}))
            return
        for line in table(run.result, rows):
            self.stdout.write(line)


def table(result: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """The report as lines for people."""
    totals, period = result["totals"], result["range"]
    counts = (
        ("delivered", totals["delivered"]),
        ("early", totals["early"]),
        (f"later than {result['slo_ms']} ms", totals["late_over_slo"]),
        ("cancelled", totals["cancelled"]),
        ("retried", totals["retried"]),
        ("dead", totals["dead"]),
    )
    return [
        f"Lateness from {period['from']} to {period['to']}",
        ", ".join(f"{name} {count:,}" for name, count in counts),
        _quantiles("all", totals["lateness_ms"]),
        *(_gap(gap) for gap in result["gaps"]),
        *(_line(row) for row in rows),
    ]


def _gap(gap: dict[str, Any]) -> str:
    after, before = gap["after"] or "the beginning", gap["before"] or "an unknown time"
    span = f"bytes {gap['start']:,} to {gap['end']:,} of the log were removed unread"
    return f"GAP: {span} (after {after}, before {before})"


def _line(row: dict[str, Any]) -> str:
    level = f" {row['level']}" if row.get("level") else ""
    name = f"{row['hour']}  {row['topic']}  {row['kind']}{level}  {row['delivered']:,}"
    return _quantiles(name, row["lateness_ms"])


def _quantiles(name: str, of: dict[str, Any]) -> str:
    told = "  ".join(f"{key} {value}" for key, value in of.items() if value is not None)
    return f"{name}:  {told or 'not known'} (ms)"
