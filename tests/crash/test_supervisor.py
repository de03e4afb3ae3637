"""The supervisor over real processes: small ones that do as they are told."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.crash

ROOT = Path(__file__).resolve().parents[2]

SUPERVISE = """
import json, logging, os, sys
from pathlib import Path
from postdate.supervisor.child import ChildPlan
from postdate.supervisor.supervisor import Supervisor

folder = Path(sys.argv[1])
logging.basicConfig(level=logging.INFO)

def held():
    try:
        return {"append": (int((folder / "holder").read_text()), 1)}
    except (FileNotFoundError, ValueError):
        return {}

plans = [
    ChildPlan(name=f"child-{n}", command=[sys.executable, "-c", sys.argv[2], str(folder), str(n)],
              environment=os.environ, directory=folder)
    for n in (1, 2)
]
Supervisor(plans, held).run(lambda supervisor: None)
"""

CHILD = """
import os, signal, sys
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with (folder / f"starts-{name}").open("a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""


class Family:
    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    def starts(self, name: int) -> list[int]:
        path = self.folder / f"starts-{name}"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def until(condition: Callable[[], bool], deadline_s: float = 20) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the deadline passed"
        time.sleep(0.02)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process_id}/stat").read_text().split(")")[1].split()[0] != "Z"


@contextmanager
def family(folder: Path) -> Iterator[Family]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])}
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(folder), CHILD], env=environment
    )
    started = Family(folder, process)
    try:
        until(lambda: bool(started.starts(1) and started.starts(2)))
        yield started
    finally:
        process.kill()
        process.wait()


def test_a_child_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with family(tmp_path) as it:
        os.kill(it.starts(1)[0], signal.SIGKILL)
        until(lambda: len(it.starts(1)) == 2)
        assert len(it.starts(2)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_stops_its_children_and_exits_0(tmp_path: Path, number: int) -> None:
    with family(tmp_path) as it:
        it.process.send_signal(number)
        assert it.process.wait(timeout=10) == 0
        assert not any(is_alive(process_id) for process_id in it.starts(1) + it.starts(2))


def test_children_do_not_outlive_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with family(tmp_path) as it:
        it.process.kill()
        it.process.wait()
        until(lambda: not any(is_alive(process_id) for process_id in it.starts(1) + it.starts(2)))


def test_a_stopped_child_that_holds_a_lock_is_killed_and_started_again(tmp_path: Path) -> None:
    with family(tmp_path) as it:
        stopped = it.starts(2)[0]
        os.kill(stopped, signal.SIGSTOP)
        (tmp_path / "holder").write_text(str(stopped))
        begun = time.monotonic()
        until(lambda: len(it.starts(2)) == 2)
        assert 4 < time.monotonic() - begun < 9
        assert len(it.starts(1)) == 1


def test_a_stopped_child_that_holds_nothing_is_left_alone_and_still_stops_in_time(
    tmp_path: Path,
) -> None:
    with family(tmp_path) as it:
        os.kill(it.starts(1)[0], signal.SIGSTOP)
        it.process.terminate()
        assert it.process.wait(timeout=10) == 0
