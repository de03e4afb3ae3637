"""`manage.py timer_rebuild`: lay the timer's files anew, with the slot width and span of now.

The files are derived, so this loses nothing; the next scheduler that starts fills them from the
schedule table. It is for another `POSTDATE_TIMER_PRECISION` or `POSTDATE_TIMER_WINDOW`, and for
files that are not trusted any more.
"""

import sys
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.durations import format_duration
from queues.store.disk import Disk
from queues.store.errors import NotAStore, StoreError
from queues.store.resizing import resize_timer
from queues.store.settings import Sizes
from scheduler.engine.places import remove_timeline, remove_wheel
from scheduler.wheel.geometry import WheelGeometry

EXIT_REFUSED = 2


class Command(BaseCommand):
    """Removes the engines' files and notes the sizes of the settings, while nobody runs."""

    help = (
        "Begin the timer's files (wheel or RocksDB) anew with POSTDATE_TIMER_PRECISION and"
        " POSTDATE_TIMER_WINDOW as they are set now. Postdate must be stopped. Nothing is lost: the"
        " next start fills them from the store. Exit code: 0, 2 when it was refused."
    )
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Do it and say what was done."""
        root, disk = settings.POSTDATE.store_dir, Disk()
        wiring = import_module(settings.POSTDATE_WIRING)
        wanted = wiring.store_settings(settings.POSTDATE).sizes
        removed: list[str] = []

        def remove_files() -> None:
            if remove_wheel(disk, root):
                removed.append("the wheel's files")
            if remove_timeline(disk, root):
                removed.append("RocksDB's files")

        try:
            if not (root / "commitlog").is_dir():
                raise NotAStore(path=root)
            WheelGeometry.of(wanted)
            before, after = resize_timer(disk, root, wanted, remove_files)
        except StoreError as error:
            self.stderr.write(f"{root}: {error.message}")
            sys.exit(EXIT_REFUSED)
        self.stdout.write(f"before  {_told(before)}")
        self.stdout.write(f"after   {_told(after)}")
        self.stdout.write(f"removed {' and '.join(removed) or 'nothing'}: the next start rebuilds.")


def _told(sizes: Sizes) -> str:
    window_ms = sizes.timer_precision_ms * sizes.timer_window_slots
    return (
        f"slots of {format_duration(sizes.timer_precision_ms)}, {format_duration(window_ms)} ahead"
    )
