"""Departure: what is done when a web worker is told to stop, and when it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# As in the web server: the application is loaded first, then the server takes the signal.
WORKER = """
import signal, sys, threading
from postdate.departure import arrange_departure
polls_let_go, told_to_stop = threading.Event(), threading.Event()
arrange_departure(on_stop=polls_let_go.set, on_end=lambda: print("store closed"))
signal.signal(signal.SIGTERM, lambda *_: told_to_stop.set())
print("serving", flush=True)
told_to_stop.wait(20)
print("polls let go" if polls_let_go.wait(20) else "polls still wait")
"""


def test_told_to_stop_a_worker_lets_polls_go_and_closes_the_store_last() -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], env=environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "serving\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.stdout.read().splitlines() == ["polls let go", "store closed"]
    assert worker.returncode == 0
