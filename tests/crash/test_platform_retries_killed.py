"""SIGKILL to web and scheduler processes while messages fail, die and are driven again.

Whoever loses an answer asks again, so the account is exact: each message is acknowledged once, or
is one dead letter.
"""

import itertools
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from queues.demo.client import Client
from queues.demo.launching import Running
from tests.crash.test_platform_killed import killing
from tests.support.platforms import await_that, client_of, running_platform

SEED = int(os.environ.get("CRASH_SEED", "1"))
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
MESSAGES, CONSUMERS, LEASE_S = 400, 2, 10
#: A quick machine has sent its messages before anybody is killed: it sends on until so many are.
KILLS, PAUSE_S = 3, 0.01
GROUP = "/api/v1/groups/billing"

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


class Consumer(threading.Thread):
    """Receives, and acknowledges, fails or gives up by chance; drives dead letters again."""

    def __init__(self, client: Client, chance: random.Random, stop: threading.Event) -> None:
        super().__init__()
        self.acked: Counter[str] = Counter()
        self._client, self._chance, self._ended = client, chance, stop

    def run(self) -> None:
        while not self._ended.is_set():
            self.round()

    def round(self, *, drives: bool = True) -> int:
        wanted = {"max_messages": 16, "wait_seconds": 1, "lease_seconds": LEASE_S}
        messages = self._client.expect("POST", f"{GROUP}/receive", wanted).body["messages"]
        shares: dict[str, list[dict[str, str]]] = {"ack": [], "retry": [], "dead-letter": []}
        for message in messages:
            shares[self._chance.choices(list(shares), (6, 3, 1))[0]].append(message)
        for verb, share in shares.items():
            if share:
                self.settle(verb, share)
        if drives and self._chance.random() < 0.3:
            body = {"all": True}
            self._client.expect("POST", f"{GROUP}/dead-letters/redrive", body, statuses=(200, 202))
        return len(messages)

    def settle(self, verb: str, messages: list[dict[str, str]]) -> None:
        body = {"receipts": [message["receipt"] for message in messages]}
        results = self._client.expect("POST", f"{GROUP}/{verb}", body).body["results"]
        for message, result in zip(messages, results, strict=True):
            self.acked[message["id"]] += result["outcome"] == "acked"


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_each_message_is_acknowledged_once_or_one_dead_letter(tmp_path: Path, seed: int) -> None:
    with running_platform(tmp_path, POSTDATE_REPORTS="manual") as running:
        with client_of(running) as client:
            declare(client)
            with killing(running, seed, roles={"web", "scheduler"}) as killed:
                consumers, sent = consume(running, client, seed, killed)
            assert killed.total() >= KILLS, killed
            last = Consumer(client, random.Random(seed), threading.Event())
            await_that(lambda: is_over(client, last), within_s=120, what="everything has an end")
            dead = dead_letters(client)
        acked = sum((each.acked for each in (*consumers, last)), Counter())
        acked = +acked
        assert max(acked.values()) == 1, "acknowledged once"
        assert not set(acked) & set(dead), "what was acknowledged did not die"
        assert len(dead) == len(set(dead)), "one dead letter a message"
        assert set(acked) | set(dead) == sent, "none is lost"


def declare(client: Client) -> None:
    body = {
        "subscriptions": [{"topic": "orders"}],
        "start_from": "earliest",
        "max_retries": 2,
        "retry_policy": {"type": "custom", "delays": ["200ms"]},
    }
    client.expect("PUT", GROUP, body, statuses=(200, 201))


def consume(
    running: Running, client: Client, seed: int, killed: Counter[str]
) -> tuple[list[Consumer], set[str]]:
    """Send while consumers work and processes die; the consumers, and what was sent."""
    stop, sent = threading.Event(), set()
    clients = [
        Client(running.base_url, api_key=running.api_key, stop=threading.Event())
        for _ in range(CONSUMERS)
    ]
    chances = [random.Random(f"{seed} {number}") for number in range(CONSUMERS)]
    consumers = [Consumer(one, chance, stop) for one, chance in zip(clients, chances, strict=True)]
    for consumer in consumers:
        consumer.start()
    try:
        for number in itertools.count():
            if number >= MESSAGES:
                if killed.total() >= KILLS:
                    break
                time.sleep(PAUSE_S)
            # An answer that was lost makes a second message; its key makes them one.
            path = "/api/v1/topics/orders/messages/batch"
            item = {"body": number, "idempotency_key": f"{seed}-{number}"}
            answer = client.expect("POST", path, {"messages": [item]})
            sent.add(answer.body["results"][0]["id"])
    finally:
        stop.set()
        for consumer in consumers:
            consumer.join()
        for one in clients:
            one.close()
    return consumers, sent


def is_over(client: Client, last: Consumer) -> bool:
    """Whether nothing is ready, leased or waiting any more; takes what there is."""
    while last.round(drives=False):
        pass
    lag = client.expect("GET", f"{GROUP}/lag").body
    return not lag["retrying"] and not any(one["ready"] + one["leased"] for one in lag["queues"])


def dead_letters(client: Client) -> list[str]:
    """Ids of the dead letters that were not driven again."""
    found, token = [], ""
    while True:
        path = f"{GROUP}/dead-letters?page_size=1000&page_token={token}"
        page = client.expect("GET", path).body
        found += [one["id"] for one in page["items"] if one["redriven_at"] is None]
        token = page["next_page_token"]
        if not token:
            return found
