"""Launching starts a platform of one's own, as `make up` does: bootstrap, then the supervisor.

The platform is a child in a session of its own, so that Ctrl-C reaches the caller alone, which then
stops the platform in its own time. Its output goes to `platform.log` beside the data directory.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO

from queues.store.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]
#: The first start makes a database and a store; a busy machine takes its time.
READY_S_MAX = 90
STOP_S_MAX = 15
POLL_S = 0.1
LOG_TAIL_BYTES = 4_000


class LaunchFailedError(Exception):
    """The platform did not become ready."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(f"{reason}\n{log}")
        self.reason = reason
        self.log = log


@dataclass(frozen=True, slots=True)
class Running:
    """A platform that answers."""

    #: Where it listens, without a trailing slash.
    base_url: str
    #: A key with all scopes.
    api_key: str
    #: Its POSTDATE_DATA_DIR; the store lies in `store` below.
    data_dir: Path
    #: The supervisor; the other processes are its children.
    process: subprocess.Popen[bytes]
    #: When the supervisor was started, after the bootstrap, in epoch milliseconds.
    started_ms: int


@contextlib.contextmanager
def launched(data_dir: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A running platform on a free port for the length of a `with` block; stopped at its end.

    Raises LaunchFailedError with the end of the platform's own log.
    """
    key, port = secrets.token_hex(24), free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
        "POSTDATE_HOST": "127.0.0.1",
        "POSTDATE_PORT": str(port),
        "POSTDATE_DATA_DIR": str(data_dir),
        "POSTDATE_BOOTSTRAP_API_KEY": key,
        "POSTDATE_REPORTS": "manual",
        "POSTDATE_ANALYTICS_INSTALL": "false",
        **(settings or {}),
    }
    log_path = data_dir.parent / "platform.log"
    with log_path.open("ab") as log:
        bootstrap = _start(["manage.py", "bootstrap"], environment, log)
        if bootstrap.wait() != 0:
            raise LaunchFailedError(f"bootstrap ended with {bootstrap.returncode}", _tail(log_path))
        started_ms = SystemClock().now_ms()
        process = _start(["-m", "postdate.supervisor"], environment, log)
    running = Running(f"http://127.0.0.1:{port}", key, data_dir, process, started_ms)
    try:
        wait_ready(running, log_path)
        yield running
    finally:
        stop(process)


def _start(
    arguments: list[str], environment: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- the commands are this product's own
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_ready(running: Running, log_path: Path) -> None:
    """Return once `/readyz` says 200; raises LaunchFailedError when it ends or time is up."""
    clock = SystemClock()
    give_up_ms = clock.monotonic_ms() + READY_S_MAX * 1000
    pause = threading.Event()
    while not is_ready(running.base_url):
        if running.process.poll() is not None:
            raise LaunchFailedError(f"it ended with {running.process.returncode}", _tail(log_path))
        if clock.monotonic_ms() > give_up_ms:
            raise LaunchFailedError(f"not ready within {READY_S_MAX} s", _tail(log_path))
        pause.wait(POLL_S)


def is_ready(base_url: str) -> bool:
    """Whether the platform at this address says that it can serve."""
    try:
        with urllib.request.urlopen(f"{base_url}/readyz", timeout=2) as answer:  # noqa: S310 -- ours, http
            return bool(answer.status == HTTPStatus.OK)
    except (OSError, urllib.error.URLError):
        return False


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ask the supervisor to stop everything and wait; after STOP_S_MAX it is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _tail(log_path: Path) -> str:
    return log_path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
