"""Real scheduler processes over a data directory of their own, and a store to send to."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from queues.store import Outgoing, Store
from queues.store.clock import SystemClock
from queues.store.disk import Disk
from scheduler.lease import Lease
from scheduler.status import LoopStatus, read_statuses
from tests.support.platforms import ROOT, await_that

GROUPS = ("levels", "wheel", "housekeeping")
TOPIC = "orders"
#: How long starting a few Python processes may take on a busy machine.
START_S = 120


def make_control_plane(data_dir: Path) -> None:
    """Make the tables, and the topic that messages are sent to."""
    environment = _environment(data_dir, "memory://")
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    with sqlite3.connect(data_dir / "postdate.sqlite3") as database:
        database.execute(
            "INSERT INTO queues_topic (name, queues, first_offsets, created_at)"
            " VALUES (?, 1, '{}', '2026-01-01')",
            (TOPIC,),
        )
    database.close()


class Schedulers:
    """Some scheduler processes on one data directory."""

    def __init__(self, data_dir: Path, broker_url: str = "memory://") -> None:
        self.data_dir = data_dir
        self._broker_url = broker_url
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._clock = SystemClock()

    def run_scheduler(self, name: str) -> None:
        """Start one as `make up` does."""
        self._start(name, ["manage.py", "run_scheduler", "--name", name])

    def celery(self, name: str, *arguments: str) -> None:
        """Start a Celery process as in production."""
        self._start(name, ["-m", "celery", "-A", "postdate", *arguments])

    def _start(self, name: str, arguments: Sequence[str]) -> None:
        with (self.data_dir / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=_environment(self.data_dir, self._broker_url),
                stdout=log,
                stderr=log,
            )

    def log(self, name: str) -> str:
        """What a process wrote."""
        return (self.data_dir / f"{name}.log").read_text()

    def statuses(self) -> dict[str, LoopStatus | None]:
        """What the living holders say."""
        directory = self.data_dir / "store" / "postdate" / "leases"
        return read_statuses(Disk(), directory, GROUPS, self._clock.monotonic_ms())

    def holders(self) -> dict[str, int | None]:
        """Process ids of the holders."""
        return {
            name: status.process_id if status else None for name, status in self.statuses().items()
        }

    def await_standbys(self) -> None:
        """Wait until another process waits for every loop."""
        directory = self.data_dir / "store" / "postdate" / "leases"
        leases = [Lease(Disk(), directory, name) for name in GROUPS]
        await_that(
            lambda: all(lease.has_standby() for lease in leases),
            within_s=START_S,
            what="every loop has a standby",
        )

    def await_holders(
        self, condition: Callable[[dict[str, int | None]], bool] = lambda _: True
    ) -> dict[str, int | None]:
        """Wait until every loop has a holder, and the condition holds."""

        def settled() -> dict[str, int | None] | None:
            for name, process in self._processes.items():
                assert process.poll() in {None, 0, -signal.SIGKILL}, self.log(name)
            holders = self.holders()
            return holders if None not in holders.values() and condition(holders) else None

        found: dict[str, int | None] = await_that(
            settled, within_s=START_S, what="every loop is held"
        )
        return found

    def process_id(self, name: str) -> int:
        """The id of a process started here."""
        return self._processes[name].pid

    def kill(self, process_id: int | None) -> None:
        """End one at once."""
        assert process_id is not None
        process = next(one for one in self._processes.values() if one.pid == process_id)
        process.kill()
        process.wait()

    def terminate(self, name: str, *, within_s: float) -> int:
        """Ask one to stop; its exit code."""
        self._processes[name].terminate()
        return self._processes[name].wait(within_s)

    def end(self) -> None:
        """End what still runs."""
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def schedulers(data_dir: Path, broker_url: str = "memory://") -> Iterator[Schedulers]:
    """Scheduler processes that are ended."""
    started = Schedulers(data_dir, broker_url)
    try:
        yield started
    finally:
        started.end()


@contextmanager
def redis_server(folder: Path, binary: str) -> Iterator[str]:
    """A Redis of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [binary, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        await_that(lambda: _listens(port), within_s=START_S, what="Redis listens")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


class Stream:
    """Messages with due times in even steps, and what became of them."""

    def __init__(self, store: Store, *, first_ms: int, step_ms: int, count: int) -> None:
        now_ms = SystemClock().now_ms()
        self._store = store
        self.ids = store.new_ids(TOPIC, now_ms, count)
        store.send(
            [
                Outgoing(
                    TOPIC, 0, message_id, b"x", now_ms, due_ms=now_ms + first_ms + at * step_ms
                )
                for at, message_id in enumerate(self.ids)
            ]
        )

    def delivered(self) -> list[str]:
        """Ids in the topic, in order."""
        bounds = self._store.queue_bounds(TOPIC, 0)
        units = self._store.read_units(TOPIC, 0, 0, bounds.max_offset)
        records = map(self._store.read_record, units["log_offset"].tolist())
        return [record.unique_id for record in records if record.unique_id in set(self.ids)]

    def await_delivered(self, within_s: float) -> None:
        """Wait for all of them."""
        bounds = self._store.queue_bounds
        await_that(
            lambda: bounds(TOPIC, 0).max_offset >= len(self.ids),
            within_s=within_s,
            what="all messages are delivered",
        )

    def lateness_ms(self) -> list[int]:
        """How late each was handed over."""
        views = [self._store.find(message_id) for message_id in self.ids]
        return [
            view.delivered_ms - view.due_ms
            for view in views
            if view is not None and view.delivered_ms is not None
        ]


def _environment(data_dir: Path, broker_url: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("POSTDATE_") and name != "DATABASE_URL"
    }
    return kept | {
        "DJANGO_SETTINGS_MODULE": "postdate.settings",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
        "POSTDATE_ENV_FILE": "",
        "POSTDATE_REPORTS": "manual",
        "POSTDATE_DATA_DIR": str(data_dir),
        "CELERY_BROKER_URL": broker_url,
    }


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
