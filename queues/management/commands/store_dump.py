"""`manage.py store_dump [DIR]` prints a store's records, or its units, slots or index entries."""

import itertools
import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.store.disk import Disk
from queues.store.errors import StoreError
from queues.store.inspection import dump
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout, find_layout

EXIT_DAMAGED = 1
EXIT_NOT_A_STORE = 2


def natural(text: str) -> int:
    """A number of lines on the command line."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError("write a number from 0 up")
    return int(text)


class Command(BaseCommand):
    """Reads a store, ours or a broker's; changes nothing."""

    help = (
        "Print one line a record, in log order (ours by default; a RocketMQ broker's root works"
        " too): with --json one JSON object. Damage is told on standard error and stepped over."
        " Exit code: 0, 1 when something is damaged, 2 not a store."
    )
    requires_system_checks: list[str] = []  # it opens nothing but the files that it reads

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", nargs="?", type=Path, metavar="DIR")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")
        parser.add_argument("--limit", type=natural, default=None, help="end after so many lines")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--queues", action="store_true", help="ConsumeQueue units instead")
        what.add_argument("--slots", action="store_true", help="timer wheel slots instead")
        what.add_argument("--index", action="store_true", help="index entries instead")

    def handle(self, *_args: Any, **options: Any) -> None:
        root = options["dir"] or settings.POSTDATE.store_dir
        report = Report()
        try:
            lines = _lines(find_layout(Disk(), root), report, options)
            for values in itertools.islice(lines, options["limit"]):
                self.stdout.write(json.dumps(values) if options["json"] else _text(values))
        except StoreError as error:
            self.stderr.write(f"{root}: {error.message}")
            sys.exit(EXIT_NOT_A_STORE)
        except BrokenPipeError:  # `| head` has seen enough.
            sys.stderr.close()
        for finding in report.findings:
            self.stderr.write(f"DAMAGED {finding}")
        if not report.sound:
            sys.exit(EXIT_DAMAGED)


def _lines(layout: Layout, report: Report, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if options["queues"]:
        return dump.dump_units(layout, report)
    if options["slots"]:
        return dump.dump_slots(layout, report)
    if options["index"]:
        return dump.dump_entries(layout, report)
    return dump.dump_records(layout, report)


def _text(values: dict[str, Any]) -> str:
    """Return a line for the eye: what is long is left to --json."""
    short = {
        name: len(value) if name == "units" else value
        for name, value in values.items()
        if name not in {"properties", "body_base64"}
    }
    properties = values.get("properties", {})
    return " ".join(f"{name}={value}" for name, value in (short | properties).items())
