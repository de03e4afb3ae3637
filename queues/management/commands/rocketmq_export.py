"""`manage.py rocketmq_export DIR` makes a directory of the store that a RocketMQ broker opens."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.management.database import needs_database
from queues.selectors.exporting import find_destination
from queues.store.errors import NotAStore, StoreError
from queues.store.export.brokerfiles import is_broker_name
from queues.store.export.destination import Exported
from queues.store.export.run import check_target, export_store

EXIT_DAMAGED = 1
EXIT_REFUSED = 2
#: What is left out and should not be lost without a word.
_NOTICED = {
    "parked": "parked messages stay behind: release or cancel them first",
    "orphaned": "messages stay behind whose topic or group was deleted",
}


def broker_name(text: str) -> str:
    """A name on the command line."""
    if not is_broker_name(text):
        raise ArgumentTypeError("write 1 to 127 of letters, digits and _ - . % |")
    return text


class Command(BaseCommand):
    """Appends everything live again to a fresh log; the platform may run meanwhile."""

    help = (
        "Write to DIR (new or empty) what a RocketMQ 5 broker needs to take over: a log of"
        " everything live, topics, groups and their offsets, and broker.conf. The store itself is"
        " not changed. Exit code: 0, 1 when damaged records were left out, 2 when it was refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", type=Path, metavar="DIR")
        parser.add_argument(
            "--broker-name", type=broker_name, default="broker-a", help="brokerName in broker.conf"
        )
        parser.add_argument(
            "--cluster", type=broker_name, default="DefaultCluster", help="brokerClusterName"
        )
        parser.add_argument("--json", action="store_true", help="the result as one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        root, target = settings.POSTDATE.store_dir, options["dir"].resolve()
        try:
            if not (root / "commitlog").is_dir():
                raise NotAStore(path=root)
            check_target(root, target)
            with needs_database(EXIT_REFUSED):
                destination = find_destination(
                    settings.POSTDATE, broker=options["broker_name"], cluster=options["cluster"]
                )
            told = export_store(root, target, destination, self._progress())
        except StoreError as error:
            self.stderr.write(f"{target}: {error.message}")
            sys.exit(EXIT_REFUSED)
        except OSError as error:  # Such as a file that stands where a directory should.
            if error.filename is None:
                raise
            self.stderr.write(f"{error.filename}: {error.strerror}; see `manage.py store_verify`")
            sys.exit(EXIT_REFUSED)
        self._tell(target, told, as_json=options["json"])
        if told.damaged:
            sys.exit(EXIT_DAMAGED)

    def _progress(self) -> Any:
        """A line on standard error for every twentieth of the log."""
        told = -1

        def progress(done: int, total: int) -> None:
            nonlocal told
            twentieth = done * 20 // max(1, total)
            if twentieth > told:
                told = twentieth
                self.stderr.write(f"{twentieth * 5} % of {total:,} bytes")

        return progress

    def _tell(self, target: Path, told: Exported, *, as_json: bool) -> None:
        if as_json:
            values = {
                "directory": str(target),
                "kept": dict(told.kept),
                "left": dict(told.left),
                "damaged_stretches": told.damaged,
                "log_bytes": told.log_bytes,
            }
            self.stdout.write(json.dumps(values))
        else:
            self.stdout.write(f"{target}")
            for name, count in sorted(told.kept.items()):
                self.stdout.write(f"{count:>15,}  {name}")
            for name, count in sorted(told.left.items()):
                self.stdout.write(f"{count:>15,}  left behind: {name}")
            self.stdout.write(f"start a broker: mqbroker -c {target / 'broker.conf'}")
        for name, text in _NOTICED.items():
            if told.left[name]:
                self.stderr.write(f"note: {told.left[name]:,} {text}")
        if told.damaged:
            self.stderr.write(f"DAMAGED {told.damaged:,} stretches of the log were left out")
