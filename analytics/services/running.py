"""Running reports: the runner of operations of the kind ``report.lateness``.

It waits for what it needs (the packages while they install, the reports' lock while another run has
it), starts Spark in a process of its own, and keeps what comes of it. A run whose process fails is
tried once more; taken up again after a crash it begins anew, which reads only what no partial
covers yet.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from analytics.java import JavaMissing
from analytics.models import ReportRun
from analytics.services.places import are_packages_ready, reports_dir, run_dir
from analytics.services.reports import KIND, fail_run, keep_result, queue_again, start_run
from analytics.services.spark_process import RunFailed, RunStopped, SparkProcess
from queues import wires
from queues.codes import Code
from queues.problems import Problem
from queues.wires import Progress

logger = logging.getLogger(__name__)

#: Exit status of a process that found the reports' lock taken.
BUSY = 75
ATTEMPTS_MAX = 2
_WAIT_SECONDS = 2.0

Launch = Callable[[SparkProcess], None]


@dataclass(frozen=True, slots=True)
class LatenessRunner:
    """Carries one report out."""

    #: Runs Spark's process to its end.
    launch: Launch = SparkProcess.run
    wait: Callable[[float], object] = threading.Event().wait

    @property
    def kind(self) -> str:
        """What operations call it."""
        return KIND

    @property
    def at_once(self) -> int:
        """One report runs at a time; the others queue."""
        return 1

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Make the report; the result names it."""
        run_id = str(request["report_id"])
        answer = {"report_id": run_id}
        if ReportRun.objects.filter(pk=run_id, state=ReportRun.State.SUCCEEDED).exists():
            return answer  # The process died between keeping the report and saying so.
        finished = False
        try:
            finished = self._make(run_id, progress)
        except (Problem, JavaMissing) as error:
            told = error.detail if isinstance(error, Problem) else str(error)
            fail_run(run_id, told)
            finished = True
            raise Problem(Code.REPORT_FAILED, told) from error
        finally:
            if not finished:
                queue_again(run_id)
        return answer

    def _make(self, run_id: str, progress: Progress) -> bool:
        """Whether there is a report; False when the run was aborted."""
        try:
            self._await_packages(progress)
            for attempt in range(1, ATTEMPTS_MAX + 1):
                try:
                    self._attempt(run_id, progress)
                except RunFailed as error:
                    logger.warning("Report %s, attempt %d: %s", run_id, attempt, error)
                    if attempt == ATTEMPTS_MAX:
                        raise Problem(Code.REPORT_FAILED, str(error)) from error
                else:
                    return True
        except RunStopped:
            fail_run(run_id, "It was aborted.", state=ReportRun.State.ABORTED)
        return True

    def _await_packages(self, progress: Progress) -> None:
        while not are_packages_ready():
            if not settings.POSTDATE.analytics_install:
                detail = (
                    "The packages of reports are not installed, and POSTDATE_ANALYTICS_INSTALL is "
                    "off: pip install -r requirements-analytics.txt"
                )
                raise Problem(Code.REPORT_FAILED, detail)
            progress.report(0, 100)
            self._pause(progress)

    def _pause(self, progress: Progress) -> None:
        if progress.aborted:
            raise RunStopped
        self.wait(_WAIT_SECONDS)

    def _attempt(self, run_id: str, progress: Progress) -> None:
        while True:
            run = start_run(run_id)
            try:
                self._launch(run, progress)
            except RunFailed as error:
                if error.status != BUSY:
                    raise
                queue_again(run_id)
                self._pause(progress)  # Another run, of another process perhaps, is at it.
            else:
                break
        report = run_dir(run_id) / "report.json"
        result = json.loads(report.read_bytes())
        result["tracing"] = settings.POSTDATE.trace_consumption
        keep_result(run_id, result)

    def _launch(self, run: ReportRun, progress: Progress) -> None:
        def tell(told: dict[str, Any]) -> None:
            progress.report(int(told["done"]), int(told.get("total", 100)))

        arguments = job_arguments(run)
        log = run_dir(run.id) / "log.txt"
        self.launch(SparkProcess(arguments, log, tell, lambda: progress.aborted))


def job_arguments(run: ReportRun) -> list[str]:
    """The job's command line; the log is flushed first, and read up to there."""
    config = settings.POSTDATE
    end = wires.wiring().get_store().flush()
    return [
        *("--store", str(config.store_dir)),
        *("--reports", str(reports_dir())),
        *("--from", str(run.from_ms)),
        *("--to", str(run.to_ms)),
        *(("--topic", run.topic) if run.topic else ()),
        *("--zone", run.time_zone),
        *("--slo-ms", str(config.lateness_slo_ms)),
        *("--end", str(end)),
        *("--precision-ms", str(config.timer_precision_ms)),
        *("--out", str(run_dir(run.id) / "report.json")),
        "--charts",
        # Nobody waits for a scheduled run.
        *(("--keep-classes",) if run.schedule_id else ()),
    ]
