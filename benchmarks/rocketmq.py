"""Postdate beside Apache RocketMQ 5.3.3: the same loads, in one run, on one machine.

| Load | RocketMQ | Postdate |
|---|---|---|
| sends | its Java client: 1 thread, 16, asynchronously | REST: 1 connection, 16, batches of 100 |
| 1,000 and 10,000 due a second | timed, at random ms; then level 2 at an even pace | the same |
| all due within one second | timed | timed |
| kill -9 | the broker, amid 2,000 due a second; started at once | all processes, the same |

Both run one after the other, never at once, with the disk flushed in the background (their
defaults). Lateness, doubles and losses are read from the logs themselves, RocketMQ's and ours with
the same reader: a delivered record's STORETIMESTAMP less the time that was asked for (of a level:
the holding record's STORETIMESTAMP and the delay). Nothing is consumed meanwhile.
Needs Java and Maven (`make interop` fetches RocketMQ); says what is missing and ends well without.
"""

import contextlib
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from measuring import Report, quantiles, run
from platforms import make_topic
from processes import family
from waiting import QUEUES, now_ms, opened, send_level_paced, send_timed

from queues.demo.client import Client
from queues.demo.launching import Running, launched
from queues.store.disk import Disk
from queues.store.inspection.findings import Report as Findings
from queues.store.inspection.layout import find_layout
from queues.store.inspection.log import LogWalk
from queues.store.inspection.units import QueueFiles
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.record import STORE_MS_AT
from tests.support import rocketmq

LEVEL, LEVEL_MS = 2, 5_000
BODY_BYTES = 100
KILL_RATE = 2_000
_HOLDING = {SCHEDULE_TOPIC.encode(), TIMER_TOPIC.encode()}
_ID = re.compile(rb"UNIQ_KEY\x01([^\x02]+)")
_DUE = re.compile(rb"(?:^|\x02)(?:PD_DUE|TIMER_DELIVER_MS)\x01(\d+)")
_REAL = re.compile(rb"\x02REAL_TOPIC\x01([^\x02]+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a log says of the messages of one topic."""

    #: STORETIMESTAMP of each first delivery less the time asked for, ms.
    lateness_ms: npt.NDArray[np.int64]
    #: The last delivery, ms since the epoch.
    last_ms: int
    accepted: int
    doubled: int

    @property
    def lost(self) -> int:
        return self.accepted - len(self.lateness_ms)


def outcome(root: Path, topic: str) -> Outcome:
    """Read a store, ours or a broker's."""
    name, dues, came, doubled, last_ms = (
        topic.encode(),
        dict[bytes, int](),
        dict[bytes, int](),
        0,
        0,
    )
    for records in LogWalk(find_layout(Disk(), root), Findings()).runs():
        for at, of, properties in zip(records.ats, records.topics, records.properties, strict=True):
            if of != name and of not in _HOLDING:
                continue
            found = _ID.search(properties)
            if found is None:
                continue
            place = at + STORE_MS_AT
            store_ms = int.from_bytes(records.view[place : place + 8], "big")
            if of == name:
                doubled += found[1] in came
                came.setdefault(found[1], store_ms)
                last_ms = max(last_ms, store_ms)
            elif (real := _REAL.search(properties)) is not None and real[1] == name:
                due = _DUE.search(properties)
                dues[found[1]] = int(due[1]) if due else store_ms + LEVEL_MS
    late = [came[one] - due_ms for one, due_ms in dues.items() if one in came]
    return Outcome(np.array(late, np.int64), last_ms, len(dues), doubled)


class Contender(Protocol):
    """One of the two."""

    name: str

    @property
    def root(self) -> Path: ...
    def make_topic(self, topic: str) -> None: ...
    def send_rates(self, report: Report, count: int) -> None: ...
    def send_timed(self, topic: str, count: int, *, from_ms: int, span_ms: int) -> None: ...
    def send_paced(self, topic: str, *, per_second: int, seconds: int) -> None: ...
    def kill_and_start_again(self) -> None: ...


class Broker:
    """A RocketMQ broker with its Java client."""

    name = "RocketMQ"

    def __init__(self, folder: Path, cluster: rocketmq.Cluster) -> None:
        self.root, self._cluster = folder / "broker-store", cluster
        self._conf = folder / "broker.conf"
        self._conf.write_text(
            "brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerId=0\n"
            f"storePathRootDir={self.root}\nstorePathCommitLog={self.root / 'commitlog'}\n"
        )
        cluster.start_broker(self._conf)
        self._driver = rocketmq.Driver(cluster.name_server, folder)

    def close(self) -> None:
        self._driver.close()

    def make_topic(self, topic: str) -> None:
        address = self._cluster.address
        self._driver.ask("topic", broker=address, name=topic, queues=QUEUES)

    def _load(self, topic: str, count: int, **more: Any) -> dict[str, Any]:
        load = {"topic": topic, "count": count, "body_bytes": BODY_BYTES, "threads": 1, **more}
        told: dict[str, Any] = self._driver.ask("load", within_s=1_800, **load)
        return told

    def send_rates(self, report: Report, count: int) -> None:
        self.make_topic("sends")
        far = {"from_ms": now_ms() + 3_600_000 * 10, "span_ms": 3_600_000}
        for name, more, size in (
            ("1 thread", {}, count // 10),
            ("16 threads", {"threads": 16}, count),
            ("async", {"threads": 4, "async": True}, count),
        ):
            for kind, delay in (("immediate", {}), ("timed", far), ("level", {"level": 18})):
                told = self._load("sends", size, **more, **delay)
                rate = told["accepted"] / told["seconds"]
                report.add(f"RocketMQ sends {kind}, {name}", "messages/s", [rate])
                if told["refused"]:
                    report.notes.append(f"RocketMQ refused {told['refused']} ({kind}, {name})")

    def send_timed(self, topic: str, count: int, *, from_ms: int, span_ms: int) -> None:
        more = {"threads": 4, "async": True, "from_ms": from_ms, "span_ms": span_ms}
        self._load(topic, count, **more)

    def send_paced(self, topic: str, *, per_second: int, seconds: int) -> None:
        more = {"threads": 2, "async": True, "level": LEVEL, "rate": per_second}
        self._load(topic, per_second * seconds, **more)

    def kill_and_start_again(self) -> None:
        assert self._cluster.broker is not None
        self._cluster.broker.kill()
        self._cluster.start_broker(self._conf)


class Postdate:
    """A platform with its default configuration, filled as `benchmarks/lateness.py` does."""

    name = "Postdate"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._running = self._launch()

    def _launch(self) -> Running:
        return self._stack.enter_context(launched(self._folder / "var"))

    @property
    def root(self) -> Path:
        return self._folder / "var" / "store"

    def close(self) -> None:
        self._stack.close()

    def make_topic(self, topic: str) -> None:
        make_topic(self._running, topic, queues=QUEUES)

    def send_rates(self, report: Report, count: int) -> None:
        self.make_topic("sends")
        far: dict[str, Any] = {"delay": "10h"}
        for name, connections, batch, size in (
            ("1 connection", 1, 1, count // 20),
            ("16 connections", 16, 1, count // 10),
            ("batches of 100", 4, 100, count),
        ):
            for kind, delay in (("immediate", {}), ("timed", far), ("level", {"delay_level": 18})):
                rate = self._send_rate(connections, batch, size, delay)
                report.add(f"Postdate sends {kind}, {name}", "messages/s", [rate])

    def _send_rate(self, connections: int, batch: int, count: int, delay: dict[str, Any]) -> float:
        message = {"body": "x" * BODY_BYTES, **delay}
        path = "/api/v1/topics/sends/messages" + ("/batch" if batch > 1 else "")
        body = {"messages": [message] * batch} if batch > 1 else message
        rounds = max(1, count // connections // batch)

        def send() -> None:
            client = Client(
                self._running.base_url, api_key=self._running.api_key, stop=threading.Event()
            )
            for _ in range(rounds):
                client.expect("POST", path, body, statuses=(200, 201))
            client.close()

        began = time.perf_counter()
        with ThreadPoolExecutor(connections) as pool:
            for done in [pool.submit(send) for _ in range(connections)]:
                done.result()
        return rounds * batch * connections / (time.perf_counter() - began)

    def send_timed(self, topic: str, count: int, *, from_ms: int, span_ms: int) -> None:
        with opened(self._running.data_dir) as store:
            send_timed(store, topic, count, from_ms=from_ms, span_ms=span_ms)

    def send_paced(self, topic: str, *, per_second: int, seconds: int) -> None:
        with opened(self._running.data_dir) as store:
            send_level_paced(store, topic, level=LEVEL, per_second=per_second, seconds=seconds)

    def kill_and_start_again(self) -> None:
        for pid in family(self._running.process.pid):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd(pid), signal.SIGKILL)
        self._running.process.wait()
        self._running = self._launch()


def pidfd(pid: int) -> int:
    """A descriptor of a process: it never means another one."""
    import os  # noqa: PLC0415 -- used here alone

    return os.pidfd_open(pid)


def main(report: Report) -> None:
    """All loads on the one, then all on the other."""
    reason = rocketmq.why_not()
    if reason is not None:
        report.notes.append(f"RocketMQ cannot be had here: {reason}")
        return
    quick = report.quick
    sizes = {
        "sends": 2_000 if quick else 100_000,
        "seconds": 3 if quick else 20,
        "burst": 10_000 if quick else 1_000_000,
        "killed": 4_000 if quick else 40_000,
    }
    report.settings = sizes | {
        "RocketMQ": {
            "version": rocketmq.VERSION,
            "broker memory": list(rocketmq.BROKER_MEMORY),
            "broker settings": "its defaults: ASYNC_FLUSH, ASYNC_MASTER, timerPrecisionMs 1000",
            "client": "DefaultMQProducer, no retries, 10 s timeout, 2,000 in flight",
        },
        "Postdate": "its defaults: POSTDATE_FLUSH=async, wheel, two web, two schedulers",
        "body_bytes": BODY_BYTES,
        "queues": QUEUES,
    }
    for contender in (run_broker, run_postdate):
        with (
            tempfile.TemporaryDirectory(prefix="beside-rocketmq-") as folder,
            contender(Path(folder)) as one,
        ):
            measure(report, one, sizes)
    compare(report)


@contextlib.contextmanager
def run_broker(folder: Path) -> Iterator[Contender]:
    """A broker for as long as it is measured."""
    with rocketmq.cluster(folder) as cluster:
        broker = Broker(folder, cluster)
        try:
            yield broker
        finally:
            broker.close()


@contextlib.contextmanager
def run_postdate(folder: Path) -> Iterator[Contender]:
    """A platform for as long as it is measured."""
    platform = Postdate(folder)
    try:
        yield platform
    finally:
        platform.close()


def measure(report: Report, one: Contender, sizes: dict[str, int]) -> None:
    """Every load, one after the other."""
    one.send_rates(report, sizes["sends"])
    for per_second in (1_000, 10_000):
        steady(report, one, per_second, sizes["seconds"])
    burst(report, one, sizes["burst"])
    killed(report, one, sizes["killed"])


def steady(report: Report, one: Contender, per_second: int, seconds: int) -> None:
    """Timed, then levels, each at a steady rate."""
    timed, levels, count = f"timed-{per_second}", f"levels-{per_second}", per_second * seconds
    for topic in (timed, levels):
        one.make_topic(topic)
    from_ms = now_ms() + 3_000 + count // 10
    one.send_timed(timed, count, from_ms=from_ms, span_ms=seconds * 1000)
    await_settled(one, timed, count, from_ms + seconds * 1000)
    one.send_paced(levels, per_second=per_second, seconds=seconds)
    await_settled(one, levels, count, now_ms() + LEVEL_MS)
    for kind, topic in (("timed", timed), ("levels", levels)):
        add_lateness(report, f"{one.name} {per_second:,}/s {kind}", outcome(one.root, topic))


def burst(report: Report, one: Contender, count: int) -> None:
    """Everything due within one second."""
    one.make_topic("burst")
    from_ms = now_ms() + 5_000 + count // 10
    one.send_timed("burst", count, from_ms=from_ms, span_ms=1_000)
    report.settings[f"{one.name} burst filled before due, s"] = (from_ms - now_ms()) / 1000
    await_settled(one, "burst", count, from_ms + 1_000)
    found = outcome(one.root, "burst")
    add_lateness(report, f"{one.name} burst", found)
    took_s = (found.last_ms - from_ms) / 1000
    report.add(f"{one.name} burst, first due to last stored", "s", [took_s], lower=True)


def killed(report: Report, one: Contender, count: int) -> None:
    """Killed in the middle of falling due, and started again at once."""
    one.make_topic("killed")
    span_ms = count * 1000 // KILL_RATE
    from_ms = now_ms() + 4_000 + count // 10
    one.send_timed("killed", count, from_ms=from_ms, span_ms=span_ms)
    wait_until(from_ms + span_ms // 2)
    began = time.perf_counter()
    one.kill_and_start_again()
    report.add(f"{one.name} killed, up again", "s", [time.perf_counter() - began], lower=True)
    await_settled(one, "killed", count, from_ms + span_ms)
    found = outcome(one.root, "killed")
    add_lateness(report, f"{one.name} killed", found)
    report.add(f"{one.name} killed, handed over twice", "messages", [found.doubled], lower=True)
    report.add(f"{one.name} killed, lost", "messages", [found.lost], lower=True)


def await_settled(one: Contender, topic: str, count: int, after_ms: int) -> None:
    """Wait until so many are in a topic, or nothing more came for ten seconds."""
    wait_until(after_ms)
    seen, quiet_since = -1, time.monotonic()
    while time.monotonic() - quiet_since < 10:
        files = QueueFiles(find_layout(Disk(), one.root))
        ends = [files.bounds(topic, queue)[1] for name, queue in files.queues() if name == topic]
        files.close()
        if sum(ends) >= count:
            return
        if sum(ends) != seen:
            seen, quiet_since = sum(ends), time.monotonic()
        time.sleep(0.25)


def wait_until(time_ms: int) -> None:
    """Sleep until a time of the wall clock."""
    time.sleep(max(0, time_ms - now_ms()) / 1000)


def add_lateness(report: Report, name: str, found: Outcome) -> None:
    """Quantiles of the lateness, and whether all came."""
    if len(found.lateness_ms):
        for quantile, value in quantiles(found.lateness_ms.tolist()).items():
            report.add(f"{name} {quantile}", "ms", [value], lower=True)
    if found.lost or found.doubled:
        report.notes.append(f"{name}: {found.lost:,} missing, {found.doubled:,} twice")


def compare(report: Report) -> None:
    """Ours through RocketMQ's, where both have a figure of the same name."""
    for name in list(report.figures):
        what = name.removeprefix("Postdate ")
        peer = report.figures.get(f"RocketMQ {what}")
        if what != name and peer is not None and peer.median:
            report.compare(what, name, f"RocketMQ {what}")


if __name__ == "__main__":
    run("rocketmq", main, __doc__)
