"""Renewing under load: what it costs the log that a waiting message outlives its segment.

    .venv/bin/python benchmarks/renewing.py [--quick] [--out FILE]

Messages due in 40 days are sent; then the clock goes through the days, a quarter at a time, with
ordinary messages coming in and housekeeping doing its steps. Write amplification is the bytes that
the log took for the waiting messages, divided by those of their sends.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import Report, run

from queues.store import Outgoing, Store, StoreSettings
from queues.store.settings import Sizes

START_MS = 1_700_000_000_000
DAY_MS = 86_400_000
RETENTION_MS = 3 * DAY_MS
DAYS = 40


class Turning:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.wall_ms


def send(store: Store, clock: Turning, count: int, due_ms: int | None) -> None:
    """Send messages of 200 bytes."""
    for first in range(0, count, 1_000):
        number = min(1_000, count - first)
        ids = store.new_ids("orders", clock.wall_ms, number)
        store.send(
            [Outgoing("orders", 0, id_, b"x" * 200, clock.wall_ms, due_ms=due_ms) for id_ in ids]
        )


def live_on(store: Store, clock: Turning, traffic: int) -> dict[str, float]:
    """Forty days; what renewing wrote, and how fast it was."""
    spent, steps = 0.0, 0
    for _ in range(DAYS * 4 - 2):
        clock.wall_ms += DAY_MS // 4
        send(store, clock, traffic, None)
        while True:
            before = store.counters()["renewed"]
            began = time.perf_counter()
            store.housekeep(clock.wall_ms)
            spent += time.perf_counter() - began
            steps += 1
            if store.counters()["renewed"] == before:
                break
    return {"renewed": store.counters()["renewed"], "spent_s": spent, "steps": steps}


def measure(report: Report) -> None:
    """Fill the report."""
    waiting, traffic = (200, 2_000) if report.quick else (5_000, 20_000)
    sizes = Sizes(segment_bytes=(1 if report.quick else 8) << 20)
    report.settings = {"waiting": waiting, "traffic_a_quarter": traffic, "days": DAYS}
    with tempfile.TemporaryDirectory() as folder:
        clock = Turning()
        settings = StoreSettings(sizes=sizes, retention_ms=RETENTION_MS, ballast_bytes=1 << 20)
        with Store.open(Path(folder), settings, clock=clock) as store:
            send(store, clock, waiting, START_MS + DAYS * DAY_MS)
            found: dict[str, Any] = live_on(store, clock, traffic)
            assert store.count_waiting("rmq_sys_wheel_timer", 0) == waiting
            kept = store.health()["log_bytes"]
    report.add("written", "times a message", [1 + found["renewed"] / waiting], lower=True)
    report.add("renewing", "messages/s", [found["renewed"] / max(found["spent_s"], 1e-9)])
    report.add("log kept", "MiB", [kept / (1 << 20)], lower=True)


if __name__ == "__main__":
    run("renewing", measure, __doc__)
