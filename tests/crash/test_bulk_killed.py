"""SIGKILL to whoever carries a bulk change out: what it should change is changed, and once."""

import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from queues.demo.client import Client
from queues.demo.launching import Running
from queues.store import Store, StoreSettings
from queues.store.disk import Disk
from queues.store.names import JOURNAL_TOPIC, TIMER_TOPIC
from queues.store.scan import Parsed, parse
from scheduler.status import read_status
from tests.support.platforms import await_that, client_of, running_platform, send_signal

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
SEEDS = range(1, 1 + ROUNDS)
MESSAGES = 5_000
KILLS = 3
HOUR_MS = 3_600_000

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400)]


def send(client: Client, count: int, topic: str = "many") -> None:
    for first in range(0, count, 1000):
        messages = [
            {"body": "x", "delay_ms": HOUR_MS + first + number}
            for number in range(min(1000, count - first))
        ]
        client.expect("POST", f"/api/v1/topics/{topic}/messages/batch", {"messages": messages})


def ask(client: Client, method: str, path: str, body: Any = None) -> Any:
    return client.expect(method, f"/api/v1/{path}", body, statuses=(200, 202)).body


def finished(client: Client, running: Running, operation_id: str, chance: random.Random) -> Any:
    """The operation once it is done; whoever runs it is killed on the way."""
    kills, seen = 0, -1

    def look() -> Any:
        nonlocal kills, seen
        told = ask(client, "GET", f"operations/{operation_id}")
        done = told["progress"]["done"]
        if kills < KILLS and told["state"] == "running" and done != seen and chance.random() < 0.7:
            seen = done
            kills += kill_housekeeper(running)
        return told if told["done"] else None

    return await_that(look, within_s=150, what="the operation ends")


def kill_housekeeper(running: Running) -> bool:
    page = running.data_dir / "store" / "postdate" / "leases" / "housekeeping.status"
    status = read_status(Disk(), page)
    return status is not None and send_signal(status.process_id, signal.SIGKILL)


def records(data_dir: Path, topic: str) -> list[Parsed]:
    with Store.open(data_dir / "store", StoreSettings()) as store:
        units = store.read_units(topic, 0, 0, 1_000_000)
        return [parse(raw) for raw in store.read_records(units) if raw is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bulk_cancel_and_its_undo_survive_the_death_of_whoever_runs_them(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with running_platform(tmp_path) as running, client_of(running) as client:
        send(client, MESSAGES)
        look = {"filter": {"topic": "many"}, "dry_run": True}
        plan = ask(client, "POST", "bulk/cancel", look)
        assert plan["count"] >= MESSAGES
        planned = plan["count"]
        send(client, 10)
        send(client, 10, topic="other")
        begin = {"plan_id": plan["plan_id"]}
        client.request("POST", "/api/v1/bulk/cancel", begin)
        told = finished(client, running, plan["plan_id"], chance)
        assert (told["state"], told["result"]["changed"]) == ("succeeded", planned), told
        waiting = ask(client, "GET", "messages?state=scheduled&topic=many")
        assert waiting["count"] == 10
        cancels = [one for one in records(running.data_dir, JOURNAL_TOPIC) if one.letter == "C"]
        assert Counter(one.unique_id for one in cancels).most_common(1)[0][1] == 1
        assert len(cancels) == planned

        undo = ask(client, "POST", f"operations/{plan['plan_id']}/undo", {})
        told = finished(client, running, undo["id"], chance)
        assert (told["state"], told["result"]["changed"]) == ("succeeded", planned), told
        waiting = ask(client, "GET", "messages?state=scheduled&topic=many")
        assert waiting["count"] == planned + 10
        held = [one for one in records(running.data_dir, TIMER_TOPIC) if one.letter in "NS"]
        dues = {one.unique_id: one.due_ms for one in held if one.letter == "N"}
        restored = [one for one in held if one.letter == "S"]
        assert Counter(one.unique_id for one in restored).most_common(1)[0][1] == 1
        assert all(one.due_ms == dues[one.unique_id] for one in restored)
