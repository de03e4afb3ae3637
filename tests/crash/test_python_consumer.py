"""The Python client's consumer over a real platform, which dies under it meanwhile."""

import asyncio
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from postdate.client import (
    AsyncClient,
    AsyncConsumer,
    Client,
    Consumer,
    NewMessage,
    Patience,
    ReceivedMessage,
    RetryLater,
)
from queues.demo.launching import Running
from tests.support.platforms import await_that, processes_of, running_platform, send_signal

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
COUNT = 300


def connect(running: Running) -> Client:
    return Client(running.base_url, running.api_key, patience=Patience(total_s=120))


def send(client: Client, **fields: Any) -> list[str]:
    """Immediate and delayed ones, in turns."""
    messages = [
        NewMessage(body=number, delay="1s" if number % 2 else None, **fields)
        for number in range(COUNT)
    ]
    results = client.send_many("orders", messages)
    assert all(result.stored for result in results)
    return [result.id or "" for result in results]


def test_every_message_is_handled_and_acked_though_web_processes_are_killed(tmp_path: Path) -> None:
    handled: Counter[str] = Counter()
    mutex = threading.Lock()

    def handle(message: ReceivedMessage) -> None:
        with mutex:
            handled[message.id] += 1
        if message.attempt == 1 and message.body % 10 == 0:
            raise RetryLater("not yet", delay="1s")

    with running_platform(tmp_path) as running, connect(running) as client:
        client.groups.declare("billing", ["orders"])
        ids = send(client)
        consumer = Consumer(client, "billing", handle, concurrency=4, poll_seconds=1,
                            lease_seconds=10)  # fmt: skip
        thread = threading.Thread(target=consumer.run)
        thread.start()
        await_that(lambda: len(handled) > COUNT // 4, within_s=60, what="some are handled")
        for process in processes_of(running):
            if process.role == "web":
                send_signal(process.pid, signal.SIGKILL)

        def all_settled() -> bool:
            lag = client.group("billing").lag()
            nothing_left = lag.ready + lag.leased + lag.retrying == 0
            return nothing_left and set(handled) == set(ids)

        await_that(all_settled, within_s=120, what="all are handled and settled")
        consumer.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert set(handled) == set(ids)
    # Not each of them: where an answer died with its process, nobody saw the first attempt.
    assert max(handled[one] for number, one in enumerate(ids) if number % 10 == 0) >= 2
    assert consumer.figures.dead == 0


def test_what_a_stopped_consumer_had_not_begun_goes_to_another_at_once(tmp_path: Path) -> None:
    with running_platform(tmp_path) as running, connect(running) as client:
        client.groups.declare("billing", ["orders"])
        ids = [client.send("orders", number).id for number in range(20)]
        gate = threading.Event()
        first: list[str] = []

        def hold(message: ReceivedMessage) -> None:
            first.append(message.id)
            assert gate.wait(60)

        holder = Consumer(client, "billing", hold, concurrency=2, prefetch=18, poll_seconds=1,
                          lease_seconds=3600)  # fmt: skip
        thread = threading.Thread(target=holder.run)
        thread.start()
        await_that(lambda: len(first) == 2, within_s=60, what="two are at work")
        await_that(
            lambda: client.group("billing").lag().leased == 20, within_s=60, what="all are leased"
        )
        holder.stop()
        gate.set()
        thread.join(60)
        assert (holder.figures.acked, holder.figures.released) == (2, 18)
        # The leases would have lasted an hour: only a release lets another have them now.
        second = asyncio.run(consume_all(running, 20 - holder.figures.acked))
    assert sorted(first + second) == sorted(ids)


async def consume_all(running: Running, count: int) -> list[str]:
    """Handle so many with the asynchronous consumer."""
    seen: list[tuple[str, int]] = []
    async with AsyncClient(running.base_url, running.api_key) as client:

        async def handle(message: ReceivedMessage) -> None:
            seen.append((message.id, message.attempt))
            if len(seen) == count:
                consumer.stop()

        consumer = AsyncConsumer(client, "billing", handle, concurrency=8, poll_seconds=1)
        await asyncio.wait_for(consumer.run(), 120)
    assert consumer.figures.acked == count
    assert {attempt for _, attempt in seen} == {1}, "a release counts no attempt"
    return [one for one, _ in seen]
