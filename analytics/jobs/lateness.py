"""The lateness report: brings the partials up to the log's end and sums them up.

    python -m analytics.jobs.lateness --store var/store --reports var/reports \\
        --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --out report.json

The same file runs under `spark-submit --py-files postdate.zip analytics/jobs/lateness.py …`, where
all executors see store and reports under these paths. It holds the reports' lock while it runs, and
says how far it is on standard output, one JSON object a line.

Exit codes: 0 done, 2 the arguments, 75 another run holds the lock, 1 anything else.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analytics.buckets import bucket_of, upper_edge
from analytics.jobs.assembling import assemble
from analytics.jobs.classes import sharing
from analytics.jobs.folding import Folder
from analytics.jobs.leash import die_with, step_back
from analytics.jobs.summing import sum_up
from analytics.log.extent import find_extent
from analytics.log.facts import QUARTER_MS
from analytics.partials.keeping import Keeper, home_of
from analytics.partials.manifest import Manifest
from analytics.session import JAVA_OPTIONS, LOCAL_SETTINGS, application_of, open_session
from queues.store.disk import Disk

BUSY = 75


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    store: Path
    reports: Path
    #: Quarter-hours in [from, to).
    from_ms: int
    to_ms: int
    out: Path
    topic: str | None = None
    #: The zone in which hours are told.
    zone: str = "UTC"
    #: What is later than this counts as late; rounded up to a bucket's edge.
    slo_ms: int = 100
    #: Up to which log offset; None: all that can be read.
    end: int | None = None
    precision_ms: int = 1000
    #: Where Spark runs if nothing else says so.
    master: str = "local[2]"
    memory: str = "1g"
    #: Whether charts are drawn beside `out`; only then is matplotlib needed.
    charts: bool = False
    #: Whether this run may take the time to keep Spark's classes for later ones.
    keep_classes: bool = False

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> "Request":
        """Read the command line."""
        parser = argparse.ArgumentParser(prog="lateness", description=__doc__.partition("\n")[0])
        parser.add_argument("--store", type=Path, required=True)
        parser.add_argument("--reports", type=Path, required=True)
        parser.add_argument("--from", dest="from_ms", type=_moment, required=True)
        parser.add_argument("--to", dest="to_ms", type=_moment, required=True)
        parser.add_argument("--out", type=Path, required=True)
        parser.add_argument("--topic")
        parser.add_argument("--zone", default="UTC")
        parser.add_argument("--slo-ms", type=int, default=100)
        parser.add_argument("--end", type=int)
        parser.add_argument("--precision-ms", type=int, default=1000)
        parser.add_argument("--master", default="local[2]")
        parser.add_argument("--memory", default="1g")
        parser.add_argument("--charts", action="store_true")
        parser.add_argument("--keep-classes", action="store_true")
        told = vars(parser.parse_args(arguments))
        told["from_ms"] = told["from_ms"] // QUARTER_MS * QUARTER_MS
        told["to_ms"] = -(-told["to_ms"] // QUARTER_MS) * QUARTER_MS
        if told["from_ms"] >= told["to_ms"]:
            parser.error("--from must be before --to")
        return cls(**told)


def _moment(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} needs a zone, such as Z")
    return round(moment.timestamp() * 1000)


class Steps:
    """Says on standard output how far a run is: hundredths of it, and what it does."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def tell(self, done: int, what: str, **more: Any) -> None:
        """One line."""
        seconds = round(time.monotonic() - self._begun, 1)
        line = {"done": done, "total": 100, "step": what, "seconds": seconds, **more}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def run(request: Request, steps: Steps) -> dict[str, Any]:
    """Make the report in a session of its own; the reports' lock is held by the caller."""
    steps.tell(1, "starting Spark")
    shared = sharing(request.reports / "java", make=request.keep_classes)
    spark = open_session(
        "Postdate lateness",
        {
            "spark.master": request.master,
            "spark.driver.memory": request.memory,
            JAVA_OPTIONS: f"{LOCAL_SETTINGS[JAVA_OPTIONS]} {shared}",
        },
        sources=False,
    )
    try:
        return make(spark, request, steps)
    finally:
        spark.stop()


def make(spark: SparkSession, request: Request, steps: Steps) -> dict[str, Any]:
    """Bring the partials up to the log's end and sum them up."""
    application_id = application_of(spark)
    steps.tell(20, "reading the log", application_id=application_id)
    folder = Folder(spark, request.store, {"precision_ms": str(request.precision_ms)})

    def tell(done: int, total: int) -> None:
        share = done / total if total else 1
        steps.tell(20 + round(50 * share), "reading the log", bytes=done, bytes_total=total)

    keeper = Keeper(request.store, request.reports / "partials", folder.fold, folder.merge, tell)
    before = _end_of(request)
    manifest = keeper.bring_up_to_date(request.end)
    steps.tell(70, "summing up")
    home = home_of(request.reports / "partials", find_extent(request.store))
    files = [home / one.file for one in manifest.partials if _touches(one, request)]
    sums = sum_up(
        folder.read(files) if files else None,
        from_ms=request.from_ms, to_ms=request.to_ms, zone=request.zone,
        topic=request.topic, slo_ms=request.slo_ms,
    )  # fmt: skip
    steps.tell(90, "writing the report")
    result = assemble(sums, about(request), manifest, read_from=before)
    return result | {"spark": {"application_id": application_id, "version": spark.version}}


def _end_of(request: Request) -> int:
    extent = find_extent(request.store)
    return Manifest.load(home_of(request.reports / "partials", extent), extent.store_id).end or 0


def _touches(partial: Any, request: Request) -> bool:
    """Whether a partial may hold something of the period or of the one before.

    Its hand-overs lie between its store times; slots lie where its messages were due, which is
    before they were handed over, however long.
    """
    earliest = 2 * request.from_ms - request.to_ms
    return bool(
        partial.last_store_ms + QUARTER_MS >= earliest or partial.first_store_ms >= earliest
    )


def about(request: Request) -> dict[str, Any]:
    """What the report says of what was asked."""
    return {
        "report": "lateness",
        "topic": request.topic,
        "zone": request.zone,
        "range": {"from_ms": request.from_ms, "to_ms": request.to_ms},
        "slo_ms": upper_edge(bucket_of(request.slo_ms)),
        "slo_asked_ms": request.slo_ms,
    }


def main(arguments: Sequence[str]) -> int:
    """Take the lock, run, write the report."""
    request = Request.parse(arguments)
    disk = Disk()
    disk.make_dirs(request.reports)
    lock = disk.lock(request.reports / "lock")
    if not lock.try_acquire():
        sys.stderr.write("another report runs: it holds the reports' lock\n")
        return BUSY
    try:
        steps = Steps()
        result = run(request, steps)
        disk.make_dirs(request.out.parent)
        if request.charts:
            steps.tell(95, "drawing charts")
            result["charts"] = import_module("analytics.jobs.charts").draw(
                result, request.out.parent
            )
        disk.replace(request.out, json.dumps(result).encode())
        steps.tell(100, "done")
    finally:
        lock.release()
        lock.close()
    return 0


if __name__ == "__main__":
    if parent := os.environ.get("POSTDATE_REPORT_PARENT"):
        die_with(int(parent))
        step_back()
    sys.exit(main(sys.argv[1:]))
