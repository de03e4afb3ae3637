"""Closers are the consumer group: what reaches them was not paid in time and is closed."""

import threading
from typing import Any

from queues.demo.accounts import Accounts, Arrival
from queues.demo.client import Client, UnexpectedAnswerError
from queues.store.clock import SystemClock

MESSAGES_A_RECEIVE = 256
WAIT_SECONDS = 2


def open_group(client: Client, group: str, topic: str) -> None:
    """Make the group before the first order, so that it starts before every message."""
    subscription = {"topic": topic, "tags": "*"}
    body = {"subscriptions": [subscription], "start_from": "earliest"}
    client.expect("PUT", f"/api/v1/groups/{group}", body, statuses=(200, 201))


def close_orders(
    client: Client,
    group: str,
    *,
    accounts: Accounts,
    closing: threading.Event,
    lease_seconds: int,
    same_clock: bool,
) -> None:
    """Receive, write down and ack until `closing` is set and nothing more comes.

    With `same_clock` an arrival before the due time counts as early by this machine's clock too.
    """
    clock = SystemClock()
    asked = {
        "max_messages": MESSAGES_A_RECEIVE,
        "wait_seconds": WAIT_SECONDS,
        "lease_seconds": lease_seconds,
    }
    while True:
        was_closing = closing.is_set()
        answer = client.expect("POST", f"/api/v1/groups/{group}/receive", asked)
        arrived_ms = clock.now_ms() if same_clock else None
        messages = answer.body["messages"]
        for message in messages:
            accounts.receive(_arrival(message, arrived_ms=arrived_ms))
        if messages:
            _ack(client, group, messages)
        elif was_closing:
            return


def _arrival(message: dict[str, Any], *, arrived_ms: int | None) -> Arrival:
    return Arrival(
        message_id=message["id"],
        attempt=message["attempt"],
        due_ms=message["due_at_ms"],
        delivered_ms=message["delivered_at_ms"],
        arrived_ms=arrived_ms,
    )


def _ack(client: Client, group: str, messages: list[dict[str, Any]]) -> None:
    path = f"/api/v1/groups/{group}/ack"
    answer = client.expect("POST", path, {"receipts": [message["receipt"] for message in messages]})
    for result in answer.body["results"]:
        if result["outcome"] == "invalid":
            raise UnexpectedAnswerError("POST", path, answer)
