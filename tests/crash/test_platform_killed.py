"""SIGKILL to web and scheduler processes while orders come in, are paid and come due.

`CRASH_ROUNDS` says how many rounds of each (1 by default, as CI runs it; `make crash` asks for
more), `CRASH_SEED` what their chance begins with. Every round has its own seed, named in its
test's id.
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queues.demo.launching import Running, is_ready
from queues.demo.run import Outcome, Run, RunSettings
from queues.store import Store, StoreSettings
from queues.store.disk import Disk
from queues.store.record import Record, decode_record
from scheduler.status import read_status
from tests.support.platforms import (
    await_that,
    client_of,
    processes_of,
    running_platform,
    send_signal,
)

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "1"))
SEEDS = range(FIRST_SEED, FIRST_SEED + ROUNDS)
ORDERS = 1_500
DEADLINE_MS_MAX = 10_000
#: A consumer's lease of a lost `receive` answer has to run out within the run.
LEASE_SECONDS = 10
DELAY_MS_MAX = 1_000
GROUPS = ("levels", "wheel")

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


@contextmanager
def killing(running: Running, seed: int, *, roles: set[str]) -> Iterator[Counter[str]]:
    """Kill a random process of these roles every 0.5 to 3 s; how many of each were killed.

    A web server that does not answer yet is left to start: killed again and again before it ever
    answered, it would prove nothing but the supervisor's patience.
    """
    chance = random.Random(seed)
    ended, killed = threading.Event(), Counter[str]()

    def kill_on() -> None:
        while not ended.wait(chance.uniform(0.5, 3.0)):
            living = [each for each in processes_of(running) if each.role in roles]
            if living and is_ready(running.base_url):
                victim = chance.choice(living)
                killed[victim.role] += send_signal(victim.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_on)
    killer.start()
    try:
        yield killed
    finally:
        ended.set()
        killer.join()


def play(running: Running, seed: int) -> Outcome:
    settings = RunSettings(
        base_url=running.base_url,
        api_key=running.api_key,
        orders=ORDERS,
        seed=seed,
        same_clock=True,
        lease_seconds=LEASE_SECONDS,
        deadline_ms_max=DEADLINE_MS_MAX,
        patience_s=120,
        grace_s=30,
    )
    return Run(settings, report=lambda _: None).play()


def delivered_records(data_dir: Path, topic: str) -> list[Record]:
    """Every record that was handed over to a topic, read from the store itself."""
    with Store.open(data_dir / "store", StoreSettings()) as store:
        return [
            decode_record(record)
            for queue_id in store.queue_ids(topic)
            for record in store.read_records(store.read_units(topic, queue_id, 0, 1_000_000))
            if record is not None
        ]


@pytest.mark.parametrize("engine", ["wheel", "rocksdb"])
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_processes_lose_double_and_hurry_nothing(
    seed: int, engine: str, tmp_path: Path
) -> None:
    with running_platform(tmp_path, POSTDATE_TIMER_ENGINE=engine) as running:
        with killing(running, seed, roles={"web", "scheduler"}) as killed:
            outcome = play(running, seed)
        records = delivered_records(running.data_dir, outcome.topic)

    assert killed.total() >= 3, killed
    assert outcome.summary.accepted == ORDERS
    assert outcome.summary.faults == 0, outcome.summary
    handed_over = Counter(record.unique_id for record in records)
    assert max(handed_over.values()) == 1
    assert len(handed_over) >= outcome.summary.closed
    early = [record for record in records if record.store_ms < int(record.properties["PD_DUE"])]
    assert early == []


def test_one_web_process_that_dies_is_replaced_while_the_other_goes_on(tmp_path: Path) -> None:
    with running_platform(tmp_path) as running:
        server, *workers = await_that(lambda: web_of(running, 3), within_s=30, what="two workers")
        send_signal(workers[0], signal.SIGKILL)
        path = "/api/v1/topics/orders/messages"
        with client_of(running) as client:
            for _ in range(20):
                client.expect("POST", path, {"body": "x"}, statuses=(201,))
        back = await_that(
            lambda: web_of(running, 3, without=workers[0]), within_s=30, what="two workers again"
        )
        assert {server, workers[1]} <= set(back), "nobody else was started again"


def web_of(running: Running, count: int, *, without: int = 0) -> list[int]:
    """The web server and its workers, once there are so many that can answer."""
    found = [each.pid for each in processes_of(running) if each.role == "web"]
    return sorted(found) if len(found) == count and without not in found else []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_loop_holder_delays_nothing_by_more_than_a_second(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with running_platform(tmp_path) as running, client_of(running) as client:
        await_standbys(running)
        messages = [{"body": "x", "delay_ms": delay_ms} for delay_ms in range(2_000, 8_000, 10)]
        messages += [{"body": "x", "delay_level": 2}] * 100
        path = "/api/v1/topics/steady/messages/batch"
        client.expect("POST", path, {"messages": messages})
        threading.Event().wait(chance.uniform(3.0, 5.0))
        victim = holder_of(running, chance.choice(GROUPS))
        assert victim is not None
        send_signal(victim, signal.SIGKILL)
        records = await_that(
            lambda: whole(delivered_records(running.data_dir, "steady"), len(messages)),
            within_s=20,
            what="everything is handed over",
        )
    lateness_ms = [record.store_ms - int(record.properties["PD_DUE"]) for record in records]
    assert min(lateness_ms) >= 0
    assert max(lateness_ms) <= DELAY_MS_MAX


def whole(records: list[Record], count: int) -> list[Record]:
    """The records, once there are so many."""
    return records if len(records) >= count else []


def holder_of(running: Running, group: str, *, standby: bool = False) -> int | None:
    """The process that holds a loop's lease, or waits for it."""
    name = f"{group}.standby.status" if standby else f"{group}.status"
    status = read_status(Disk(), running.data_dir / "store" / "postdate" / "leases" / name)
    return status.process_id if status else None


def await_standbys(running: Running) -> None:
    """Wait until each loop has a holder and another process that waits for its place."""
    await_that(
        lambda: all(
            holder_of(running, group) and holder_of(running, group, standby=True)
            for group in GROUPS
        ),
        within_s=20,
        what="each loop has a holder and a standby",
    )
