"""Real platforms for tests: the supervisor and its children, found by what they are."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queues.demo.client import Client
from queues.demo.launching import Running, launched

ROOT = Path(__file__).resolve().parents[2]
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a platform."""

    pid: int
    #: "web" or "scheduler".
    role: str


@contextmanager
def running_platform(folder: Path, **settings: str) -> Iterator[Running]:
    """A platform with its data below a folder, stopped at the end."""
    own = {"DJANGO_SETTINGS_MODULE": "postdate.settings"}
    with launched(folder / "var", settings={**own, **settings}) as running:
        yield running


@contextmanager
def client_of(running: Running) -> Iterator[Client]:
    client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
    yield client
    client.close()


def processes_of(running: Running) -> list[Process]:
    """The web and scheduler processes that live now, workers of the web server included."""
    roles = {"granian": "web", "run_scheduler": "scheduler"}
    found = []
    for pid in _descendants(running.process.pid):
        command = _read(PROC / str(pid) / "cmdline")
        found += [Process(pid, role) for word, role in roles.items() if word in command]
    return found


def send_signal(pid: int, number: signal.Signals) -> bool:
    """Whether the process was still there to be signalled."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def await_that(condition: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """The first true value of the condition; fails the test when there is none in time."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"within {within_s} s: {what}")


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.glob("[0-9]*"):
        # The parent is the second field after the name, which may itself hold spaces.
        fields = _read(entry / "stat").rpartition(")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, unseen = [], [pid]
    while unseen:
        unseen += children.get(unseen.pop(), [])
        found += [child for child in unseen if child not in found]
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
