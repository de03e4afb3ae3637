"""Bulk changes in the engine: how many a second, how long a hold is, and what others feel of it.

Messages of 100 bytes that wait an hour are cancelled and moved in holds of 100, as an operation
does it. What others feel is measured by a process that sends one message every 2 ms while another
process cancels, resting after each hold as long as that took; and the same without the other.
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measuring import Report, quantiles, run

from queues.store import Outgoing, Store, StoreSettings
from queues.store.bulkchanges import BULK_RECORDS_MAX, HeldUnit, Rehold
from queues.store.held import take_apart
from queues.store.names import TIMER_TOPIC
from queues.store.outlook import Wanted

HOUR_MS = 3_600_000
PAUSE_S = 0.002


def main(report: Report) -> None:
    """All figures over one store."""
    messages, sends = (4_000, 200) if report.quick else (100_000, 2_500)
    report.settings = {"messages": messages, "hold_records": BULK_RECORDS_MAX, "sends": sends}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        with Store.open(root, StoreSettings()) as store:
            fill(store, messages)
            change(report, store, "move", messages)
            change(report, store, "cancel", messages)
            fill(store, messages)
            alone = quantiles(send_some(store, sends))
            command = [sys.executable, __file__, "--cancel", str(root)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
                assert other.stdout is not None
                other.stdout.readline()  # It is there.
                beside = quantiles(send_some(store, sends))
                other.communicate()
        for name in ("p50", "p99"):
            report.add(f"a send alone, {name}", "ms", [alone[name]], lower=True)
            report.add(f"a send beside a bulk cancel, {name}", "ms", [beside[name]], lower=True)


def fill(store: Store, count: int) -> None:
    """Send what waits an hour."""
    now_ms = store.clock.now_ms()
    for first in range(0, count, 1000):
        ids = store.new_ids("orders", now_ms, 1000)
        store.send(
            [
                Outgoing("orders", n % 8, one, bytes(100), now_ms, due_ms=now_ms + HOUR_MS + first)
                for n, one in enumerate(ids)
            ]
        )


def change(report: Report, store: Store, verb: str, count: int) -> None:
    """Change everything that waits, without a rest."""
    holds: list[float] = []
    began = time.perf_counter()
    for units in waiting(store):
        at = time.perf_counter()
        if verb == "cancel":
            store.bulk.cancel(units, by="benchmark", reason=None)
        else:
            moved = [
                Rehold(unit, take_apart(unit.record.raw), unit.record.due_ms + 1000, 2, b"T")
                for unit in units
            ]
            store.bulk.hold_again(moved, b"M", by="benchmark", counter="moved")
        holds.append((time.perf_counter() - at) * 1000)
    report.add(f"{verb}", "messages/s", [count / (time.perf_counter() - began)])
    found = quantiles(holds)
    report.add(f"{verb}, encoding and one hold, p50", "ms", [found["p50"]], lower=True)
    report.add(f"{verb}, encoding and one hold, p99", "ms", [found["p99"]], lower=True)


def waiting(store: Store) -> list[list[HeldUnit]]:
    """What waits now, in portions of one hold."""
    queue = store.outlook.queue(TIMER_TOPIC, 0)
    return [
        list(store.bulk.load(queue, found.offsets[at : at + size], found.words[at : at + size]))
        for size in (BULK_RECORDS_MAX,)
        for found in list(store.outlook.units(queue, Wanted()))
        for at in range(0, len(found.offsets), size)
    ]


def send_some(store: Store, count: int) -> list[float]:
    """Send single messages at a steady pace; how long each took, ms."""
    took, pause = [], threading.Event()
    for _ in range(count):
        now_ms = store.clock.now_ms()
        message = Outgoing("mail", 0, store.new_id("mail", now_ms), bytes(100), now_ms)
        began = time.perf_counter()
        store.send([message])
        took.append((time.perf_counter() - began) * 1000)
        pause.wait(PAUSE_S)
    return took


def cancel_beside(root: Path) -> None:
    """The other process: cancel everything, resting as an operation does."""
    with Store.open(root, StoreSettings()) as store:
        portions, pause = waiting(store), threading.Event()
        print("here", flush=True)
        for units in portions:
            began = time.perf_counter()
            store.bulk.cancel(units, by="benchmark", reason=None)
            pause.wait(time.perf_counter() - began)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cancel"]:
        cancel_beside(Path(sys.argv[2]))
    else:
        run("bulk", main, __doc__)
