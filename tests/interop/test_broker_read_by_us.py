"""RocketMQ's client writes to a real broker, and our tools read the broker's directory.

They read it while the broker runs, after it was killed, and after it ended in order.
"""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.rocketmq import Cluster, Driver, await_that, driver

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
BATCHES, FLOOD = 6, 20_000


class Broker:
    """The broker's directory, and what its client sent."""

    def __init__(self, root: Path, cluster: Cluster, client: Driver) -> None:
        self.root, self.cluster, self.client = root, cluster, client
        #: What was sent and accepted, by id.
        self.sent: dict[str, dict[str, Any]] = {}

    def send(self) -> None:
        """One message of each kind."""
        now_ms = time.time_ns() // 1_000_000
        number = len(self.sent)
        plain = {
            "topic": "mixed",
            "tag": f"tag{number % 3}",
            "keys": f"key{number} other",
            "properties": {"wo": "Zürich", "number": str(number)},
        }
        kinds: list[dict[str, Any]] = [
            {},
            {"level": 1},
            {"level": 3},
            {"level": 18},
            {"deliver_ms": now_ms + 2_345},
            {"delay_ms": 4_000},
            {"delay_seconds": 3_600},
            {"body": bytes(range(256)) * 64},
            {"body": b"long " * 20_000},
        ]
        told = [{"body": f"no. {number} 注文".encode(), **plain, **kind} for kind in kinds]
        for message, placed in zip(told, self.client.send(*told), strict=True):
            assert placed["status"] == "SEND_OK"
            self.sent[placed["id"]] = message


def command(name: str, root: Path, *more: str) -> tuple[int, str]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "postdate.settings",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }
    ended = subprocess.run(
        [sys.executable, "manage.py", name, str(root), *more],
        capture_output=True, text=True, env=environment, cwd=ROOT,
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, ended.stdout


def verify(root: Path) -> dict[str, int]:
    code, out = command("store_verify", root, "--json")
    told = json.loads(out)
    assert told["findings"] == []
    assert (code, told["sound"], told["kind"]) == (0, True, "rocketmq")
    counts: dict[str, int] = told["counts"]
    return counts


def dump(root: Path) -> list[dict[str, Any]]:
    code, out = command("store_dump", root, "--json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def broker(cluster: Cluster, folder: Path) -> Iterator[Broker]:
    root = folder / "broker-store"
    conf = folder / "broker.conf"
    conf.write_text(
        "brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerId=0\n"
        f"storePathRootDir={root}\nstorePathCommitLog={root / 'commitlog'}\n"
    )
    cluster.start_broker(conf)
    with driver(cluster) as client:
        client.ask("topic", broker=cluster.address, name="mixed", queues=4)
        client.ask("topic", broker=cluster.address, name="flood", queues=4)
        yield Broker(root, cluster, client)


def test_what_a_client_wrote_is_read_while_the_broker_runs_and_after_it_was_killed(
    broker: Broker,
) -> None:
    for _ in range(BATCHES):
        broker.send()
    read_while_running(broker)
    read_while_written(broker)
    assert broker.cluster.broker is not None
    broker.cluster.broker.kill()
    counts = verify(broker.root)
    assert counts["records"] > FLOOD
    broker.cluster.start_broker(broker.root.parent / "broker.conf")
    broker.cluster.broker.stop()
    assert not (broker.root / "abort").exists()
    counts = verify(broker.root)
    assert counts["units"] == counts["records"]
    assert counts["entries"] > len(broker.sent)
    ids = {record["msg_id"] for record in dump(broker.root)}
    assert broker.sent.keys() <= ids


def read_while_running(broker: Broker) -> None:
    """Every message as it was sent; those that were due stand in their topic as well."""

    def all_due_came() -> bool:
        found = dump(broker.root)
        came = {record["msg_id"] for record in found if record["topic"] == "mixed"}
        return due <= came

    far = {"level": 18, "delay_seconds": 3_600}
    due = {
        message_id
        for message_id, told in broker.sent.items()
        if not any(told.get(name) == value for name, value in far.items())
    }
    await_that(all_due_came, within_s=90, what="the broker delivered what was due")
    waiting = set(broker.sent) - due
    first: dict[str, dict[str, Any]] = {}
    for record in dump(broker.root):
        first.setdefault(record["msg_id"], record)
        if record["msg_id"] in waiting:
            assert record["topic"] in ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer")
    for message_id, told in broker.sent.items():
        record = first[message_id]
        assert base64.b64decode(record["body_base64"]) == told["body"]
        assert record["properties"]["KEYS"] == told["keys"]
        assert record["properties"]["TAGS"] == told["tag"]
        assert told["properties"].items() <= record["properties"].items()
    verify(broker.root)


def read_while_written(broker: Broker) -> None:
    """Verify again and again while the client floods the broker; nothing looks damaged."""
    for number in range(3):
        span = {"from_ms": time.time_ns() // 1_000_000 + 3_000, "span_ms": 4_000}
        load = {"topic": "flood", "count": FLOOD // 2, "threads": 2, "body_bytes": 100}
        broker.client.tell("load", **load, rate=3_000, **{"async": True}, **span)
        for _ in range(2):
            verify(broker.root)
        told = broker.client.answer(within_s=120)
        assert told["accepted"] > 0, number
