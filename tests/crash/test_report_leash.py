"""A report's process never outlives the process that launched it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.platforms import await_that

pytestmark = pytest.mark.crash

CHILD = """
import os, sys, threading
from analytics.jobs.leash import die_with
die_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
threading.Event().wait()
"""
PARENT = """
import os, subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
threading.Event().wait()
"""


def test_it_dies_with_whoever_launched_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        child = Path("/proc") / parent.stdout.readline().strip()
        assert child.exists()
        parent.kill()
    await_that(lambda: not _lives(child), within_s=60, what="the report's process is gone")


def test_it_does_not_start_when_its_launcher_is_dead_already() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "1999999999"], timeout=60, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == -9


def _lives(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
