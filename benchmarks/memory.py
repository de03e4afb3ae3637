"""Memory and restart with ten million messages waiting, and memory while ten million come due at
once.

1. Ten million timed messages wait, due over the next ten days: the own memory of each process. 2.
Restart to first hand-over, after a clean stop and after SIGKILL to every process: some messages
come due while nothing runs; the time is from the start of the supervisor to their hand-over (their
records' STORETIMESTAMP). 3. Ten million due within the same second: the most that any process
takes while they are handed over.
"""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import Report, run
from platforms import make_topic, running_platform
from processes import command_of, family, memory_of
from waiting import QUEUES, await_delivered, delivered, now_ms, opened, send_timed

from queues.demo.client import Client
from queues.demo.launching import Running, launched, stop

TEN_DAYS_MS = 10 * 86_400_000
CLEAN_STOP_S_MAX = 12
KILL_AFTER_S = 2
PROBES = 10


def main(report: Report) -> None:
    """Waiting, restarting, and coming due."""
    count = 100_000 if report.quick else 10_000_000
    report.settings = {"messages": count}
    with tempfile.TemporaryDirectory(prefix="postdate-") as folder:
        data_dir = Path(folder) / "var"
        wait_in_memory(report, data_dir, count)
        took_s = restart(report, data_dir, "clean stop", kill=False)
        report.at_most("restart to first hand-over after a clean stop, s", took_s, 5.0)
        took_s = restart(report, data_dir, "kill -9", kill=True)
        report.at_most("restart to first hand-over after kill -9, s", took_s, 20.0)
    come_due(report, count)


def wait_in_memory(report: Report, data_dir: Path, count: int) -> None:
    """Fill, let the wheel take everything in, look."""
    with launched(data_dir) as running:
        make_topic(running, "waiting", queues=QUEUES)
        with opened(data_dir) as store:
            began = time.perf_counter()
            send_timed(store, "waiting", count, from_ms=now_ms() + 3_600_000, span_ms=TEN_DAYS_MS)
            report.add("filling", "messages/s", [count / (time.perf_counter() - began)])
        await_enqueued(running)
        add_memory(report, "waiting", running)
        largest = max(memory_of(pid).own_mb for pid in family(running.process.pid))
    report.at_most(f"{count:,} waiting, MB of own memory of the largest process", largest, 300.0)


def restart(report: Report, data_dir: Path, name: str, *, kill: bool) -> float:
    """Seconds from starting the platform to the first hand-over of what came due meanwhile."""
    topic = "probe-killed" if kill else "probe-stopped"
    with launched(data_dir) as running:
        make_topic(running, topic, queues=QUEUES)
        due_ms = now_ms() + (KILL_AFTER_S if kill else CLEAN_STOP_S_MAX) * 1000
        with opened(data_dir) as store:
            send_timed(store, topic, PROBES, from_ms=due_ms, span_ms=1)
        if kill:
            kill_family(running.process.pid)
        else:
            stop(running.process)
    time.sleep(max(0.0, due_ms / 1000 - time.time()) + 0.1)
    called_ms = now_ms()
    with launched(data_dir) as running, opened(data_dir) as store:
        await_delivered(store, topic, PROBES, within_s=60)
        came = delivered(store, topic)
    first_ms, started_ms = int(came.delivered_ms.min()), running.started_ms
    if first_ms < started_ms:
        report.notes.append(f"{name}: the probes were handed over before the platform was down")
    took_s = (first_ms - started_ms) / 1000
    report.add(f"restart after {name}", "s", [took_s], lower=True)
    with_bootstrap_s = (first_ms - called_ms) / 1000
    report.add(f"restart after {name}, bootstrap included", "s", [with_bootstrap_s], lower=True)
    return took_s


def come_due(report: Report, count: int) -> None:
    """All due within one second: the peak of each process, and how long it takes."""
    with running_platform() as running, opened(running.data_dir) as store:
        make_topic(running, "burst", queues=QUEUES)
        from_ms = now_ms() + 20_000 + count // 40
        send_timed(store, "burst", count, from_ms=from_ms, span_ms=1000)
        report.settings["burst_filled_before_due_s"] = round(from_ms / 1000 - time.time(), 1)
        with watched(running.process.pid) as peaks:
            within_s = from_ms / 1000 - time.time() + 60 + count / 50_000
            done = await_delivered(store, "burst", count, within_s=within_s)
        took_s = (now_ms() - from_ms) / 1000
    report.add("all due in one second, handed over in", "s", [took_s], lower=True)
    report.add("handed over", "messages", [done])
    report.add("all due in one second, peak", "MB", [max(peaks.values())], lower=True)
    report.settings["peaks_mb"] = {str(pid): round(value) for pid, value in peaks.items()}
    what = f"{count:,} due in one second, MB of own memory of the largest process"
    report.at_most(what, max(peaks.values()), 300.0)


def await_enqueued(running: Running) -> None:
    """Wait until the wheel has read everything that waits."""
    client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
    while client.expect("GET", "/api/v1/timer-wheel").body["enqueue_lag_messages"] > 0:
        time.sleep(0.5)
    client.close()


def add_memory(report: Report, name: str, running: Running) -> None:
    """The memory of each process, in the settings; the largest, as a figure."""
    members = family(running.process.pid)
    report.settings[f"{name}_processes"] = [
        {"command": command_of(pid), "own_mb": round(memory_of(pid).own_mb, 1),
         "file_mb": round(memory_of(pid).file_mb, 1)}
        for pid in members
    ]  # fmt: skip
    own_mb = [memory_of(pid).own_mb for pid in members]
    report.add(f"{name}, largest process", "MB", [max(own_mb)], lower=True)
    report.add(f"{name}, all processes", "MB", [sum(own_mb)], lower=True)


@contextlib.contextmanager
def watched(pid: int) -> Iterator[dict[int, float]]:
    """The most own memory of each process of a family, looked at twice a second."""
    peaks: dict[int, float] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            for member in family(pid):
                peaks[member] = max(peaks.get(member, 0.0), memory_of(member).own_mb)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def kill_family(pid: int) -> None:
    """SIGKILL to every process of a platform, the supervisor first so that it restarts nothing."""
    for member in family(pid):
        with contextlib.suppress(ProcessLookupError):  # Some end with the supervisor.
            os.kill(member, signal.SIGKILL)


if __name__ == "__main__":
    run("memory", main, __doc__)
