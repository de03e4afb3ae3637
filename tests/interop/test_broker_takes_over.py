"""A real RocketMQ broker starts on our export, and its own client consumes it.

A platform of ours is given messages of every kind over REST, and goes on while it is exported. Then
it stops, a broker starts on what was written, and RocketMQ's push consumers receive.
"""

import base64
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from queues.demo.client import Client
from queues.demo.launching import Running
from queues.store import Outgoing, Store, StoreSettings
from tests.support.platforms import await_that, client_of, running_platform
from tests.support.rocketmq import Cluster, Driver, driver

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
#: How late a broker on a busy machine may be; RocketMQ itself promises about one second.
LATE_MS_MAX = 20_000
#: Until when what is to be overdue waits: it must outlast the export and not the broker's start.
OVERDUE_S, WAITING_S = 25, 75
#: `1m`, and an hour.
LEVEL_WAITING, LEVEL_FAR = 5, 17


@dataclass
class Sent:
    """What was sent, by id."""

    #: The request, and what the answer said.
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Ids by what became of them.
    kinds: dict[str, list[str]] = field(default_factory=dict)

    def ids(self, *kinds: str) -> set[str]:
        return {message_id for kind in kinds for message_id in self.kinds[kind]}


@dataclass
class World:
    """What there was before, and what RocketMQ's consumers received."""

    sent: Sent
    #: Where the groups stood, by topic/queue.
    floors: dict[str, int]
    #: What the export told.
    exported: dict[str, Any]
    broker_started_ms: int
    offsets_before: dict[str, Any]
    audit: list[dict[str, Any]]
    billing: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    paid: list[dict[str, Any]]


class Sender:
    """Sends over REST and takes down what it sent."""

    def __init__(self, client: Client) -> None:
        self.client, self.sent = client, Sent()

    def send(self, kind: str, topic: str = "orders", **fields: Any) -> str:
        number = len(self.sent.messages)
        told = {
            "body": f"Bestellung {number} für Müller, 注文",
            "keys": [f"order-{number}", f"customer-{number % 3}"],
            "tag": ("paid", "open")[number % 2],
            "properties": {"region": "süd", "number": str(number)},
            **fields,
        }
        path = f"/api/v1/topics/{topic}/messages"
        answer = self.client.expect("POST", path, told, statuses=(201,)).body
        self.sent.messages[answer["id"]] = {**told, **answer}
        self.sent.kinds.setdefault(kind, []).append(answer["id"])
        message_id: str = answer["id"]
        return message_id

    def change(self, method: str, message_id: str, what: str = "", body: Any = None) -> None:
        path = f"/api/v1/messages/{message_id}{what}"
        self.client.expect(method, path, body, statuses=(200, 201, 204))


def fill(sender: Sender) -> None:
    """Messages of every kind; those that were handed over have been, on return."""
    client = sender.client
    for topic in ("orders", "again"):
        client.expect("PUT", f"/api/v1/topics/{topic}", {"queues": 2}, statuses=(200, 201))
    for number in range(6):
        sender.send("deleted", "again", queue=number % 2)
    client.expect("DELETE", "/api/v1/topics/again", statuses=(200, 204))
    client.expect("PUT", "/api/v1/topics/again", {"queues": 2}, statuses=(200, 201))
    for group in ("billing", "audit"):
        told = {
            "subscriptions": [{"topic": "orders"}, {"topic": "again"}],
            "start_from": "earliest",
        }
        client.expect("PUT", f"/api/v1/groups/{group}", told, statuses=(200, 201))
    binary = base64.b64encode(bytes(range(256))).decode()
    sender.send("ready", queue=0, body=binary, encoding="base64")
    for number in range(12):
        sender.send("ready", queue=number % 2)
        sender.send("ready", "again", queue=number % 2)
    sender.send("ready", body={"order": 7, "lines": [1, 2]}, queue=1)
    for delay in ("200ms", "900ms"):
        sender.send("delivered", delay=delay, queue=0)
    sender.send("delivered", delay_level=1, queue=1)
    for message_id in sender.sent.kinds["delivered"]:
        path = f"/api/v1/messages/{message_id}"
        await_that(
            lambda path=path: client.expect("GET", path).body["state"] == "ready",
            within_s=60,
            what="the platform handed it over",
        )


def fill_waiting(sender: Sender) -> None:
    """What must still wait when the export is made."""
    for number in range(8):
        sender.send("overdue", delay_ms=OVERDUE_S * 1000 + 37 * number, queue=number % 2)
        sender.send("waiting", delay_ms=WAITING_S * 1000 + 777 * number, queue=number % 2)
    for number in range(6):
        sender.send("level", delay_level=LEVEL_WAITING, queue=number % 2)
    far = [sender.send("far", delay="9h"), sender.send("far", delay="30d")]
    for kind, fields in (
        ("cancelled", {"delay_ms": WAITING_S * 1000}),
        ("cancelled", {"delay_level": LEVEL_WAITING}),
    ):
        sender.change("DELETE", sender.send(kind, **fields))
    restored = sender.send("restored", delay_ms=WAITING_S * 1000)
    sender.change("DELETE", restored)
    sender.change("POST", restored, "/restore")
    for fields in ({"delay": "2h"}, {"delay_level": LEVEL_FAR}):
        moved = sender.send("moved", **fields)
        sender.change("PATCH", moved, body={"delay": "20m"})
        sender.change("PATCH", moved, body={"delay_ms": WAITING_S * 1000})
        told = sender.client.expect("GET", f"/api/v1/messages/{moved}").body
        sender.sent.messages[moved]["due_at_ms"] = told["due_at_ms"]
    assert far


def consume_some(client: Client, count: int) -> None:
    """Receive and acknowledge as group billing."""
    done = 0
    while done < count:
        path = "/api/v1/groups/billing/receive"
        told = client.expect("POST", path, {"max_messages": count - done, "wait_seconds": 5}).body
        receipts = [message["receipt"] for message in told["messages"]]
        client.expect("POST", "/api/v1/groups/billing/ack", {"receipts": receipts})
        done += len(receipts)


def put_retries(data_dir: Path, sent: Sent) -> None:
    """What failures leave behind: a retry that is ready, one that waits, a dead letter."""
    now_ms = time.time_ns() // 1_000_000
    with Store.open(data_dir / "store", StoreSettings()) as store:
        kinds = (("retry ready", "%RETRY%billing", 0), ("retry waiting", "%RETRY%billing", 4))
        for kind, topic, level in (*kinds, ("dead", "%DLQ%billing", 0)):
            message = Outgoing(
                topic=topic, queue_id=0, unique_id=store.new_id(topic, now_ms), born_ms=now_ms,
                body=kind.encode(), level=level, tag="paid", keys=("retry",),
                properties={"RETRY_TOPIC": "orders"},
            )  # fmt: skip
            store.send([message])
            sent.messages[message.unique_id] = {
                "body": kind, "keys": ["retry"], "tag": "paid", "properties": {},
                "due_at_ms": now_ms, "topic": "orders", "queue": 0,
            }  # fmt: skip
            sent.kinds.setdefault(kind, []).append(message.unique_id)


def export(running: Running, target: Path) -> dict[str, Any]:
    """Run the command as an operator does, beside the running platform."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "postdate.settings",
        "POSTDATE_DATA_DIR": str(running.data_dir),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }
    command = [sys.executable, "manage.py", "rocketmq_export", str(target), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def floors_of(target: Path) -> dict[str, int]:
    table = json.loads((target / "config" / "consumerOffset.json").read_text())["offsetTable"]
    return {
        f"{name.removesuffix('@billing')}/{queue}": offset
        for name, offsets in table.items()
        if name.endswith("@billing")
        for queue, offset in offsets.items()
    }


@pytest.fixture(scope="module")
def world(cluster: Cluster, folder: Path) -> Iterator[World]:
    target = folder / "export"
    with running_platform(folder) as running, client_of(running) as client:
        sender = Sender(client)
        fill(sender)
        consume_some(client, 9)
        put_retries(running.data_dir, sender.sent)
        fill_waiting(sender)
        exported = export(running, target)
    sent = sender.sent
    overdue_ms = max(sent.messages[one]["due_at_ms"] for one in sent.ids("overdue"))
    await_that(
        lambda: time.time_ns() // 1_000_000 > overdue_ms, within_s=OVERDUE_S + 10, what="overdue"
    )
    started_ms = time.time_ns() // 1_000_000
    cluster.start_broker(target / "broker.conf")
    with driver(cluster) as client_of_theirs:
        yield listen(client_of_theirs, sent, exported, floors_of(target), started_ms)


def listen(
    client: Driver, sent: Sent, exported: dict[str, Any], floors: dict[str, int], started_ms: int
) -> World:
    """Have RocketMQ's consumers receive all that is to come, and a while longer."""
    before = client.ask("offsets", group="billing")
    for group, topics in (("audit", ["orders", "again"]), ("billing", ["orders", "again"])):
        client.ask("subscribe", group=group, topics=topics, tags="*")
    client.ask("subscribe", group="reader", topics=["%DLQ%billing"], tags="*")
    client.ask("subscribe", group="payers", topics=["orders"], tags="paid")
    wanted = len(sent.ids("ready", "delivered", "overdue", "waiting", "level", "restored", "moved"))
    client.await_count("audit", wanted, within_s=WAITING_S + 120)
    client.await_count("billing", wanted - 9 + 2, within_s=60)
    client.await_count("reader", 1, within_s=60)
    # What would come twice, or was cancelled, had the same due times: it would be here by now.
    settled = time.monotonic() + 5
    await_that(lambda: time.monotonic() > settled, within_s=10, what="a while")
    return World(
        sent, floors, exported, started_ms, before, client.of_group("audit"),
        client.of_group("billing"), client.of_group("reader"), client.of_group("payers"),
    )  # fmt: skip


def test_every_live_message_comes_once_and_no_other(world: World) -> None:
    kinds = ("ready", "delivered", "overdue", "waiting", "level", "restored", "moved")
    times = Counter(message["id"] for message in world.audit)
    assert times == Counter(world.sent.ids(*kinds))


def test_none_that_was_cancelled_deleted_or_is_still_far_comes(world: World) -> None:
    absent = world.sent.ids("cancelled", "deleted", "far")
    seen = {message["id"] for message in (*world.audit, *world.billing)}
    assert seen & absent == set()


def test_bodies_keys_tags_and_properties_are_as_they_were_sent(world: World) -> None:
    for message in (*world.audit, *world.billing, *world.dead):
        told = world.sent.messages[message["id"]]
        assert message["body"] == body_of(told)
        assert message["keys"] == " ".join(told["keys"])
        assert message["tag"] == told["tag"]
        assert told["properties"].items() <= message["properties"].items()


def body_of(told: dict[str, Any]) -> bytes:
    if told.get("encoding") == "base64":
        return base64.b64decode(told["body"])
    body = told["body"]
    if isinstance(body, str):
        return body.encode()
    return json.dumps(body, separators=(", ", ": ")).encode()


def test_what_was_ready_keeps_its_queue_its_offset_and_its_order(world: World) -> None:
    places: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for message in world.audit:
        place = message["topic"], message["queue"]
        places.setdefault(place, []).append((message["queue_offset"], message["id"]))
    for (topic, queue), came in places.items():
        assert came == sorted(came)
        ready = [
            message_id
            for message_id in world.sent.kinds["ready"]
            if (world.sent.messages[message_id]["topic"], world.sent.messages[message_id]["queue"])
            == (topic, queue)
        ]
        assert [message_id for _, message_id in came][: len(ready)] == ready
        # Three messages of the topic that was deleted lie before those of its successor.
        assert came[0][0] == (3 if topic == "again" else 0)


def test_each_group_goes_on_where_it_stood(world: World) -> None:
    assert sum(world.floors.values()) == 9 + 2 * 3
    for name, told in world.offsets_before.items():
        if not name.startswith("%"):
            assert told["group"] == world.floors[name]
    for message in world.billing:
        if message["properties"].get("RETRY_TOPIC") is None:
            floor = world.floors[f"{message['topic']}/{message['queue']}"]
            assert message["queue_offset"] >= floor
    of_audit = {message["id"] for message in world.audit}
    of_billing = [message["id"] for message in world.billing]
    assert len(of_billing) == len(set(of_billing))
    assert len(of_audit - set(of_billing)) == 9


def test_waiting_messages_come_on_rocketmqs_time_and_overdue_ones_at_once(world: World) -> None:
    due_ms = {one: told["due_at_ms"] for one, told in world.sent.messages.items()}
    waiting = world.sent.ids("waiting", "level", "restored", "moved")
    for message in world.audit:
        late_ms = message["store_ms"] - due_ms[message["id"]]
        if message["id"] in waiting:
            assert 0 <= late_ms < LATE_MS_MAX
        elif message["id"] in world.sent.ids("overdue"):
            assert 0 <= message["store_ms"] - world.broker_started_ms < LATE_MS_MAX + 60_000


def test_retries_reach_their_group_and_dead_letters_can_be_read(world: World) -> None:
    own = {message["id"] for message in world.billing}
    assert world.sent.ids("retry ready", "retry waiting") <= own
    # RocketMQ's client shows a retry under the topic that it came from.
    assert {message["topic"] for message in world.billing} == {"orders", "again"}
    assert [message["id"] for message in world.dead] == world.sent.kinds["dead"]


def test_the_brokers_tag_filter_agrees_with_our_tags(world: World) -> None:
    assert {message["tag"] for message in world.paid} == {"paid"}
    paid = {
        message["id"]
        for message in world.audit
        if message["tag"] == "paid" and message["topic"] == "orders"
    }
    assert {message["id"] for message in world.paid} == paid


def test_the_command_told_what_went_along(world: World) -> None:
    ready = len(world.sent.ids("ready", "delivered"))
    timed = len(world.sent.ids("overdue", "waiting", "restored", "moved", "far"))
    levels = len(world.sent.ids("level", "retry waiting"))
    kept = world.exported["kept"]
    assert kept == {"ready": ready, "timed": timed, "levels": levels, "retrying": 1, "dead": 1}
