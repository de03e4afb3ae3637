"""`manage.py run_scheduler`: one scheduler process, a Celery worker and beat together.

This is the embedded default: the broker lives in the memory of this process, so nothing else has to
be installed. Two such processes stand by for each other. In production `celery -A postdate worker`
and `celery -A postdate beat` run the same code with a broker of their own.
"""

import gc
import sys
import threading
from typing import Any

from celery.app.utils import find_app
from celery.beat import Service
from django.core.management.base import BaseCommand, CommandParser

from scheduler.beat import MonotonicScheduler
from scheduler.groups import plugged_in

#: What `celery -A` is given, too.
APP = "postdate"


class Command(BaseCommand):
    """Run one scheduler process until it is told to stop."""

    help = "Run the loops: a Celery worker and beat in one process (SIGTERM stops it cleanly)."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--name", default="scheduler", help="how the console names it")

    def handle(self, *_args: Any, name: str, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT; the exit code is the worker's."""
        app = find_app(APP)
        plugged_in().name_process(name)
        worker = app.Worker(
            hostname=f"{name}@localhost",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        beat = Service(app, scheduler_cls=MonotonicScheduler)
        # What was imported stays; the collector then never walks it beside a running loop.
        gc.collect()
        gc.freeze()
        threading.Thread(target=beat.start, name="beat", daemon=True).start()
        worker.start()
        beat.stop()
        sys.exit(worker.exitcode)
