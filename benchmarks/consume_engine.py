"""Consuming in the engine: leases, acks, and how soon a waiting receive is woken.

One message is 100 bytes of body in one of eight queues. A figure is the rate of receive and ack
together: the ledgers are written for both, receipts are made and checked, records are read and
verified. A wake is timed from the start of a send of one message, `async`, to the return of the
receive that waited for it, among 200 that wait.
"""

import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
from measuring import Report, rate, run

from queues.store import Outgoing, Store, StoreSettings
from queues.store.clock import SystemClock
from queues.store.consuming import Consuming, Subscription
from queues.store.waiting import ReadyWatch

QUEUE_COUNT = 8
BODY = bytes(100)
LEASE_MS = 60_000
TOPIC = "orders"
SUBSCRIPTIONS = [Subscription(TOPIC)]
SECRET = b"a benchmark keeps no secrets"
WAITERS = 200


def main(report: Report) -> None:
    """All figures over one store; each round of a rate is a group of its own."""
    messages, rounds, wakes = (4_000, 1, 50) if report.quick else (100_000, 5, 500)
    report.settings = {
        "body_bytes": len(BODY),
        "queues": QUEUE_COUNT,
        "messages": messages,
        "rounds": rounds,
        "waiting_receives": WAITERS,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder), StoreSettings()) as store,
    ):
        consuming = Consuming(store, SECRET)
        fill(store, messages)
        consume(report, store, consuming, messages, rounds)
        wake(report, store, consuming, wakes)
        consuming.close()


def fill(store: Store, count: int) -> None:
    """Send what every group consumes."""
    now_ms = store.clock.now_ms()
    ids = store.new_ids(TOPIC, now_ms, count)
    for first in range(0, count, 1_000):
        store.send(
            [
                Outgoing(TOPIC, first // 1_000 % QUEUE_COUNT, unique_id, BODY, now_ms)
                for unique_id in ids[first : first + 1_000]
            ]
        )


def consume(report: Report, store: Store, consuming: Consuming, messages: int, rounds: int) -> None:
    """Receive and ack everything, in batches of several sizes."""
    for batch, count in ((256, messages), (32, messages // 4), (1, messages // 50)):
        work = partial(drain, consuming, batch=batch, count=count)
        values = [rate(count, partial(work, group=f"b{batch}-{n}")) for n in range(rounds)]
        report.add(f"receive and ack, batches of {batch}", "messages/s", values)
    traced(report, store, consuming, messages, rounds)
    told = report.figures["receive and ack, batches of 256, traced"].median
    report.at_least("receive and ack in batches, traced, messages/s", told, 150_000)


def traced(report: Report, store: Store, consuming: Consuming, messages: int, rounds: int) -> None:
    """The same with a trace record for each receive and each ack, beside a round without."""
    name = "receive and ack, batches of 256"
    values: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for leaves, found in values.items():
            consuming.tracer = store.traces if leaves else None
            group = f"traced-{leaves}-{number}"
            work = partial(drain, consuming, group=group, batch=256, count=messages)
            found.append(rate(messages, work))
    consuming.tracer = None
    report.add(f"{name}, in turns", "messages/s", values[False])
    report.add(f"{name}, traced", "messages/s", values[True])
    report.compare("traced / not traced", f"{name}, traced", f"{name}, in turns")


def drain(consuming: Consuming, *, group: str, batch: int, count: int) -> None:
    """Consume `count` messages."""
    clock, done = SystemClock(), 0
    while done < count:
        received = consuming.receive(
            group,
            SUBSCRIPTIONS,
            max_messages=min(batch, count - done),
            lease_ms=LEASE_MS,
            now_ms=clock.now_ms(),
        )
        receipts = [delivery.receipt for delivery in received.deliveries]
        consuming.ack(group, receipts, clock.now_ms())
        done += len(receipts)


def wake(report: Report, store: Store, consuming: Consuming, count: int) -> None:
    """Send one message at a time to receives that wait."""
    watch = ReadyWatch(store, store.bell, consuming, SystemClock())
    received: list[float] = []
    arrived = threading.Semaphore(0)
    stopping = threading.Event()
    waiters = [
        threading.Thread(target=wait, args=(watch, consuming, received, arrived, stopping))
        for _ in range(WAITERS)
    ]
    drain_all(consuming, "waiting")
    for thread in waiters:
        thread.start()
    time.sleep(0.5)
    lateness = []
    for unique_id in store.new_ids(TOPIC, store.clock.now_ms(), count):
        sent = time.perf_counter()
        store.send([Outgoing(TOPIC, 0, unique_id, BODY, store.clock.now_ms())])
        arrived.acquire()
        lateness.append((received[-1] - sent) * 1000)
        time.sleep(0.002)
    stopping.set()
    watch.close()
    for thread in waiters:
        thread.join()
    for name, share in (("p50", 50), ("p99", 99)):
        value = float(np.percentile(lateness, share))
        report.add(f"send to receive, {WAITERS} waiting, {name}", "ms", [value], lower=True)
    report.at_most("send to a waiting receive, p99 ms", value, 50, aim=5)


def drain_all(consuming: Consuming, group: str) -> None:
    """Consume whatever is there."""
    while consuming.receive(
        group, SUBSCRIPTIONS, max_messages=256, lease_ms=LEASE_MS, now_ms=SystemClock().now_ms()
    ).deliveries:
        pass


def wait(
    watch: ReadyWatch,
    consuming: Consuming,
    received: list[float],
    arrived: threading.Semaphore,
    stopping: threading.Event,
) -> None:
    """Receive one message after another, waiting for each."""
    while not stopping.is_set():
        if not watch.wait("waiting", SUBSCRIPTIONS, 10.0):
            continue
        found = consuming.receive(
            "waiting",
            SUBSCRIPTIONS,
            max_messages=1,
            lease_ms=LEASE_MS,
            now_ms=SystemClock().now_ms(),
        )
        if found.deliveries:
            received.append(time.perf_counter())
            arrived.release()


if __name__ == "__main__":
    run("consume_engine", main, __doc__)
