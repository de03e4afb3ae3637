"""Spark's process: one run of the job, launched, watched and ended from here.

It runs at niceness 19 with a bounded heap, so that hand-overs beside it stay on time; it holds the
reports' lock, and the kernel kills it when the process that launched it dies (`jobs.leash`). What
it says on standard output is its progress; the rest goes to the run's log.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from django.conf import settings

from analytics.java import find_java_home

#: What a run may take; after that it is ended and counts as failed.
RUN_SECONDS_MAX = 4 * 3600
#: How long a run that was told to stop may take over it.
_STOP_SECONDS = 5
_LOG_TAIL_BYTES = 2000
#: Asked for twice a second: whether to stop.
LOOK_SECONDS = 0.5


class RunStopped(Exception):
    """Someone asked the run to stop."""


class RunFailed(Exception):
    """The process ended without a report."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(f"Spark's process ended with {status}. {told}".strip())
        self.status = status


@dataclass(slots=True)
class SparkProcess:
    """One process of the job."""

    arguments: Sequence[str]
    log_path: Path
    #: Told each line of progress.
    tell: Callable[[dict[str, Any]], None]
    #: Asked now and then; may raise.
    is_stopping: Callable[[], bool]
    module: str = "analytics.jobs.lateness"
    _lines: "queue.SimpleQueue[str | None]" = field(default_factory=queue.SimpleQueue)

    def run(self) -> None:
        """Run it to its end; raises `RunStopped`, `RunFailed`."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 (this interpreter and the product's own job)
                [sys.executable, "-m", self.module, *self.arguments],
                cwd=settings.BASE_DIR, env=environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
            assert process.stdout is not None  # noqa: S101 (it was asked for)
            threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()
            try:
                self._watch(process, log)
            except BaseException:
                self._end(process)
                raise
            status = process.wait()
        if status:
            raise RunFailed(status, self._tail())

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._lines.put(line)
        self._lines.put(None)

    def _watch(self, process: "subprocess.Popen[str]", log: IO[bytes]) -> None:
        looks = 0
        while True:
            try:
                line = self._lines.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                line = ""
                looks += 1
            if line is None:
                return
            if line:
                log.write(line.encode())
                log.flush()
                self._take(line)
            if self.is_stopping():
                raise RunStopped
            if looks * LOOK_SECONDS > RUN_SECONDS_MAX:
                self._end(process)
                raise RunFailed(-1, f"It took more than {RUN_SECONDS_MAX} s.")

    def _take(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return  # Something of Spark's own, which the log has.
        if isinstance(told, dict) and "done" in told:
            self.tell(told)

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tail(self) -> str:
        """The last words of the log."""
        content = self.log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        lines = [line for line in content.splitlines() if line.strip()]
        return lines[-1] if lines else ""


def environment() -> dict[str, str]:
    """What the job's process finds in its environment."""
    root = Path(settings.BASE_DIR)
    paths = [str(root), str(root / "platform"), os.environ.get("PYTHONPATH", "")]
    found = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": sys.executable,
        "MALLOC_ARENA_MAX": "2",
        "MPLBACKEND": "svg",
        "POSTDATE_REPORT_PARENT": str(os.getpid()),
    }
    home = find_java_home(settings.POSTDATE.data_dir / "reports" / "java")
    return {**found, "JAVA_HOME": home} if home else found
