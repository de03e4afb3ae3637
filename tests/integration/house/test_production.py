"""The production form, as docker-compose.yml has it: process by process, PostgreSQL, Redis.

No container is needed: the same commands run here with a PostgreSQL and a Redis of their own.
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from queues.demo.client import Client

pytestmark = [pytest.mark.redis, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
KEY = "a-key-of-the-production-test-" + "0123456789"
POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def needed(what: str, *, is_there: bool) -> None:
    """Skip without the service on a laptop; fail in CI."""
    if not is_there:
        if os.environ.get("CI"):
            pytest.fail(f"{what} is missing")
        pytest.skip(f"{what} is missing")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool], what: str, deadline_s: float = 60) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(command: list[str], **options: object) -> Iterator["subprocess.Popen[bytes]"]:
    running = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    try:
        yield running
    finally:
        running.terminate()
        running.wait(timeout=20)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of its own; yields its URL."""
    assert POSTGRES is not None
    # The server refuses to run as root.
    as_whom: dict[str, object] = {"user": "postgres"} if os.geteuid() == 0 else {}
    if as_whom:
        shutil.chown(folder, "postgres")
    port = free_port()
    subprocess.run(
        [POSTGRES / "initdb", "-D", folder / "data", "-U", "postdate", "--auth=trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **as_whom,  # type: ignore[call-overload]
    )
    command = [POSTGRES / "postgres", "-D", folder / "data", "-p", str(port), "-k", str(folder)]
    with process([*map(str, command), "-h", "127.0.0.1"], cwd="/", **as_whom):
        until(lambda: is_listening(port), "PostgreSQL listens")
        yield f"postgres://postdate@127.0.0.1:{port}/postgres"


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    folder.mkdir()
    port = free_port()
    with process(["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]):
        until(lambda: is_listening(port), "Redis listens")
        yield f"redis://127.0.0.1:{port}/0"


def production(folder: Path, running: ExitStack) -> Client:
    """Start every process of the compose file; return a client of the REST API."""
    port = free_port()
    # Outside pytest's own folders, which no other user may enter.
    server_folder = Path(running.enter_context(TemporaryDirectory(prefix="postdate-postgres-")))
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "POSTDATE_ENV_FILE": "",
        "POSTDATE_DATA_DIR": str(folder / "data"),
        "POSTDATE_BOOTSTRAP_API_KEY": KEY,
        "POSTDATE_SECRET_KEY": "production" * 6,
        "DATABASE_URL": running.enter_context(postgres(server_folder)),
        "CELERY_BROKER_URL": running.enter_context(redis(folder / "redis")),
    }
    manage = [sys.executable, "manage.py", "bootstrap"]
    subprocess.run(manage, cwd=ROOT, env=environment, check=True, capture_output=True)
    granian = ["granian", "--interface", "wsgi", "--port", str(port), "--blocking-threads", "64"]
    for command in (
        ["celery", "-A", "postdate", "worker"],
        ["celery", "-A", "postdate", "beat"],
        [*granian, "--workers-kill-timeout", "10", "postdate.wsgi:application"],
    ):
        running.enter_context(process(command, cwd=folder, env=environment))
    until(lambda: is_listening(port), "the web server listens")
    client = Client(f"http://127.0.0.1:{port}", api_key=KEY, stop=threading.Event())
    running.callback(client.close)
    return client


def test_the_processes_of_the_compose_file_deliver_a_delayed_message(tmp_path: Path) -> None:
    needed("redis-server", is_there=shutil.which("redis-server") is not None)
    needed("PostgreSQL", is_there=POSTGRES is not None)
    with ExitStack() as running:
        api = production(tmp_path, running)
        api.expect("GET", "/readyz")  # repeated while it answers 503: no loop has a holder yet
        group = {"subscriptions": [{"topic": "orders", "tags": "*"}]}
        api.expect("PUT", "/api/v1/groups/billing", group, statuses=(201,))
        message = {"body": {"order": 42}, "delay": "1s"}
        sent = api.expect("POST", "/api/v1/topics/orders/messages", message, statuses=(201,))
        (got,) = api.expect("POST", "/api/v1/groups/billing/receive", {"wait_seconds": 20}).body[
            "messages"
        ]
        assert got["id"] == sent.body["id"]
        assert got["body"] == {"order": 42}
        assert 0 <= got["lateness_ms"] < 1000
