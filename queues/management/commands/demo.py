"""`manage.py demo` plays an order-timeout run over the REST API and accounts for every order."""

import json
import os
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError

from queues.demo.client import ServerUnreachableError, UnexpectedAnswerError
from queues.demo.launching import LaunchFailedError, launched
from queues.demo.progress import ProgressLine, summary_text
from queues.demo.run import Outcome, Run, RunSettings

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Command(BaseCommand):
    """Plays one run; exit code 1 when an order was lost, early, doubled or wrongly cancelled."""

    help = (
        "Post orders with a payment deadline, cancel those that are paid, close the rest at their"
        " deadline, and account for every one. Starts a platform of its own unless --url or"
        " POSTDATE_URL names one (with --api-key or POSTDATE_API_KEY)."
    )
    requires_system_checks: list[str] = []  # it speaks to a server and opens nothing of its own

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--orders", type=int, default=10_000, help="how many orders (10,000)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed, the same plan (1)")
        parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
        parser.add_argument(
            "--url", default=os.environ.get("POSTDATE_URL"), help="a running server"
        )
        parser.add_argument("--api-key", default=os.environ.get("POSTDATE_API_KEY"))
        parser.add_argument("--lease-seconds", type=int, default=60)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            outcome = _play(options)
        except (LaunchFailedError, ServerUnreachableError, UnexpectedAnswerError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            facts = {**outcome.summary.as_dict(), "elapsed_s": outcome.elapsed_s}
            self.stdout.write(json.dumps({**facts, "repeats": outcome.repeats}))
        else:
            self.stdout.write(summary_text(outcome))
        if outcome.summary.faults:
            sys.exit(1)


def _play(options: dict[str, Any]) -> Outcome:
    if options["url"]:
        if not options["api_key"]:
            raise CommandError("--api-key or POSTDATE_API_KEY must hold a key of that server.")
        return _play_at(options["url"], options["api_key"], options)
    sys.stderr.write("Starting a platform of its own, with an empty data directory …\n")
    with (
        tempfile.TemporaryDirectory(prefix="postdate-demo-") as folder,
        launched(Path(folder) / "var") as running,
    ):
        return _play_at(running.base_url, running.api_key, options)


def _play_at(url: str, api_key: str, options: dict[str, Any]) -> Outcome:
    settings = RunSettings(
        base_url=url,
        api_key=api_key,
        orders=options["orders"],
        seed=options["seed"],
        same_clock=urlsplit(url).hostname in LOOPBACK,
        lease_seconds=options["lease_seconds"],
    )
    line = ProgressLine(sys.stderr)
    run = Run(settings, line.show)
    try:
        return run.play()
    finally:
        line.end()
