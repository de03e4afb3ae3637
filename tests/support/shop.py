"""A shop's platform on a busy day: what waits, fails, lags, is parked and is being worked on."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from queues.demo.client import Client
from queues.demo.launching import Running
from queues.store import Outgoing, Store, StoreSettings
from queues.store.clock import SystemClock
from tests.support.browsing import call
from tests.support.platforms import ROOT, await_that, client_of

BATCH = 500
HOUR_MS = 3_600_000
HOT = 12_000
REASONS = ("carrier timeout", "address unknown", "502 from the carrier's gateway")
DEATHS = ("no such order", "no such order", "card refused", "payload is not JSON: line 1 column 1")
KEYS = (
    ("shop", "--scope", "send", "--topics", "orders,payments", "--messages-per-second", "200"),
    ("billing worker", "--scope", "consume", "--groups", "billing*", "--expires", "30d"),
    ("grafana", "--scope", "inspect", "--requests-per-second", "10"),
)
WAIT_S = 90


def furnish(running: Running, count: int = 40_000) -> None:
    """Fill it, until everything that shall be seen has happened."""
    chance = random.Random(7)
    with client_of(running) as client:
        _wait_for_much(client, chance, count)
        _fail(client)
        _give_up(client)
        _work_on_many(client)
    _put_beside(running)
    for arguments in KEYS:
        _manage(running, "create_api_key", *arguments)
    _manage(running, "revoke_api_key", "3")


def _wait_for_much(client: Client, chance: random.Random, count: int) -> None:
    """Reminders soon, payments around an hour, mails over a month, something in each level."""
    for start in range(0, count, BATCH):
        items = [_item(chance, number) for number in range(start, start + BATCH)]
        topic = chance.choice(["reminders", "payments", "mails"])
        call(client, "POST", f"/topics/{topic}/messages/batch", {"messages": items})
    for level in range(5, 19):
        for number in range(chance.randrange(4, 40)):
            body = {"body": f"level {level}, {number}", "delay_level": level}
            call(client, "POST", "/topics/retries-of-ours/messages", body)


def _item(chance: random.Random, number: int) -> dict[str, Any]:
    delay_ms = chance.choice([
        chance.expovariate(1 / 900_000), chance.uniform(0, 6e5), abs(chance.gauss(2.4e6, 2e5)),
        chance.uniform(0, 30 * 24 * HOUR_MS),
    ])  # fmt: skip
    return {
        "body": {"order": number}, "delay_ms": int(delay_ms) + 1000, "keys": [f"order-{number}"],
        "tag": chance.choice(["due", "paid", "mail"]),
    }  # fmt: skip


def _fail(client: Client) -> None:
    """A group whose messages are tried again, some for the second time, and one that lags."""
    _group(client, "shipping", "shipments")
    _group(client, "newsletter", "mails")
    for number in range(40):
        body = {"body": {"parcel": number}, "keys": [f"parcel-{number}"], "tag": "dhl"}
        call(client, "POST", "/topics/shipments/messages", body)
    for attempt in (1, 2):
        got = _receive(client, "shipping", 20 // attempt)
        for number, one in enumerate(got):
            fields: dict[str, Any] = {"receipts": [one["receipt"]], "reason": REASONS[number % 3]}
            if attempt == 1:
                fields["delay"] = "500ms" if number % 2 else f"{number + 5}m"
            call(client, "POST", "/groups/shipping/retry", fields)
    _receive(client, "shipping", 6)


def _give_up(client: Client) -> None:
    """Dead letters of several reasons, one of them driven again and dead again."""
    _group(client, "payouts", "payout-requests")
    for number in range(36):
        body = {"body": {"payout": number, "iban": "DE02…"}, "keys": [f"payout-{number}"]}
        call(client, "POST", "/topics/payout-requests/messages", body)
    for number, one in enumerate(_receive(client, "payouts", 36)):
        reason = DEATHS[number % len(DEATHS)]
        body = {"receipts": [one["receipt"]], "reason": reason}
        call(client, "POST", "/groups/payouts/dead-letter", body)


def _work_on_many(client: Client) -> None:
    """A bulk change that is done, one that was undone, a redrive that is under way."""
    for tag, verb, more in (("due", "cancel", {}), ("paid", "reschedule", {"to": {"shift": "1h"}})):
        body = {"filter": {"topic": "payments", "tag": tag}, "dry_run": True, **more}
        plan = call(client, "POST", f"/bulk/{verb}", body)["plan_id"]
        done = call(client, "POST", f"/bulk/{verb}", {"plan_id": plan})["id"]
        _await_end(client, done)
    _await_end(client, call(client, "POST", f"/operations/{done}/undo", {})["id"])
    body = {"filter": {"reason": "card refused"}, "messages_per_second": 0.01}
    call(client, "POST", "/groups/payouts/dead-letters/redrive", body)


def _await_end(client: Client, operation: str) -> None:
    def is_done() -> bool:
        return bool(call(client, "GET", f"/operations/{operation}")["done"])

    await_that(is_done, within_s=WAIT_S, what="an operation ends")


def _put_beside(running: Running) -> None:
    """What the API refuses: messages for a topic that is gone, and a second that is too full."""
    store = Store.open(running.data_dir / "store", StoreSettings())
    now_ms = SystemClock().now_ms()
    gone = [(f"invoice {number}".encode(), now_ms + 1500) for number in range(3)]
    second_ms = now_ms // 1000 * 1000 + 25 * 60_000
    hot = [(b"The sale begins", second_ms + number % 1000) for number in range(HOT)]
    for topic, messages in (("former-invoices", gone), ("reminders", hot)):
        for start in range(0, len(messages), BATCH):
            some = messages[start : start + BATCH]
            ids = store.new_ids(topic, now_ms, len(some))
            store.send([
                Outgoing(topic=topic, queue_id=0, unique_id=one, body=body, born_ms=now_ms,
                         due_ms=due_ms)
                for one, (body, due_ms) in zip(ids, some, strict=True)
            ])  # fmt: skip
    store.close()


def _manage(running: Running, *arguments: str) -> None:
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "POSTDATE_ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "postdate.settings", "POSTDATE_DATA_DIR": str(running.data_dir),
    }  # fmt: skip
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def _group(client: Client, name: str, topic: str) -> None:
    body = {"subscriptions": [{"topic": topic, "tags": "*"}], "start_from": "earliest"}
    call(client, "PUT", f"/groups/{name}", body)


def _receive(client: Client, group: str, count: int) -> list[Any]:
    got: list[Any] = []

    def more() -> bool:
        body = {"max_messages": count - len(got), "consumer_id": f"{group}-1", "wait_seconds": 1}
        got.extend(call(client, "POST", f"/groups/{group}/receive", body)["messages"])
        return len(got) >= count

    await_that(more, within_s=WAIT_S, what=f"{group} receives {count}")
    return got


@contextmanager
def trade(running: Running) -> Iterator[None]:
    """Orders come in, fall due after seconds, and are consumed, as long as the block lasts."""
    stop = threading.Event()

    def go_on() -> None:
        chance = random.Random(11)
        with client_of(running) as client:
            _group(client, "notify", "carts")
            while not stop.wait(0.2):
                items = [
                    {"body": {"cart": one}, "delay_ms": int(chance.uniform(200, 20_000))}
                    for one in range(chance.randrange(2, 14))
                ]
                call(client, "POST", "/topics/carts/messages/batch", {"messages": items})
                body = {"max_messages": 64, "consumer_id": "notify-1"}
                got = call(client, "POST", "/groups/notify/receive", body)["messages"]
                if got:
                    receipts = {"receipts": [one["receipt"] for one in got]}
                    call(client, "POST", "/groups/notify/ack", receipts)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
