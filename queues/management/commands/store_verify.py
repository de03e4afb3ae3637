"""`manage.py store_verify [DIR]` looks at a whole store and says what is wrong, file and offset."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.store.errors import StoreError
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.inspection.verify import verify_store

EXIT_DAMAGED = 1
EXIT_NOT_A_STORE = 2


class Command(BaseCommand):
    """Reads a store, ours or a broker's; changes nothing. Exit code 0 sound, 1 damaged, 2 none."""

    help = (
        "Count the records, units, slots and entries of a store (ours by default; a RocketMQ"
        " broker's root works too, also while it runs) and report what is wrong, with file and"
        " offset. Nothing is changed. Exit code: 0 sound, 1 damaged, 2 not a store."
    )
    requires_system_checks: list[str] = []  # it opens nothing but the files that it reads

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", nargs="?", type=Path, metavar="DIR")
        parser.add_argument("--json", action="store_true", help="the result as one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        root = options["dir"] or settings.POSTDATE.store_dir
        try:
            layout, report = verify_store(root)
        except StoreError as error:
            self._refuse(root, error, as_json=options["json"])
        if options["json"]:
            self.stdout.write(json.dumps(_values(layout, report)))
        else:
            self._tell(layout, report)
        if not report.sound:
            sys.exit(EXIT_DAMAGED)

    def _tell(self, layout: Layout, report: Report) -> None:
        self.stdout.write(f"{layout.root} ({_kind(layout)})")
        for name, count in sorted(report.counts.items()):
            if count:
                self.stdout.write(f"{count:>15,}  {name.replace('_', ' ')}")
        for note in report.notes:
            self.stdout.write(f"note: {note}")
        for finding in report.findings:
            self.stdout.write(f"DAMAGED {finding}")
        untold = report.findings_total - len(report.findings)
        if untold:
            self.stdout.write(f"DAMAGED and {untold:,} more")
        self.stdout.write("sound" if report.sound else f"{report.findings_total:,} faults")

    def _refuse(self, root: Path, error: StoreError, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"store": str(root), "error": error.message}))
        self.stderr.write(f"{root}: {error.message}")
        sys.exit(EXIT_NOT_A_STORE)


def _kind(layout: Layout) -> str:
    return "postdate" if layout.ours else "rocketmq"


def _values(layout: Layout, report: Report) -> dict[str, Any]:
    return {
        "store": str(layout.root),
        "kind": _kind(layout),
        "sound": report.sound,
        "counts": {name: count for name, count in sorted(report.counts.items()) if count},
        "findings": [
            {"path": str(one.path), "offset": one.offset, "reason": one.reason}
            for one in report.findings
        ],
        "findings_total": report.findings_total,
        "notes": report.notes,
    }
