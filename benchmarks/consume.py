"""Consuming over REST: receive and ack in batches of 32, with the Python client included.

The platform runs as `up` runs it (two web processes, the scheduler pair beside it) with two more
addresses: bare DRF views that parse the same JSON and answer the same bytes as a `receive` and an
`ack` of 32 messages. Ours and theirs are asked in turns, in the same server, by the same client:
threads of one process over `postdate.client`, as a consumer's program would be.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from measuring import ROOT, Report, run
from platforms import running_platform

from postdate.client import Client, NewMessage
from postdate.client.calls import Call
from postdate.client.shapes.consuming import ReceiptResults, Received
from queues.demo.launching import Running

TOPIC, GROUP = "orders", "billing"
BODY = {"order": 1, "note": "x" * 60}
BATCH = 32
THREADS = 4
ROUNDS = 5

_received = msgspec.json.Decoder(Received)
_results = msgspec.json.Decoder(ReceiptResults)
#: One turn of a thread; how many messages it settled, 0 when there are no more.
Turn = Callable[[], int]


def main(report: Report) -> None:
    """Rounds of ours and of the bare views, in turns."""
    messages, rounds = (1_600, 1) if report.quick else (40_000, ROUNDS)
    report.settings = {
        "batch": BATCH,
        "client_threads": THREADS,
        "messages_a_round": messages,
        "rounds": rounds,
    }
    path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT), str(ROOT / "platform")])
    settings = {"DJANGO_SETTINGS_MODULE": "bare_settings", "PYTHONPATH": path}
    with (
        running_platform(settings) as running,
        Client(running.base_url, running.api_key, timeout_s=60) as client,
    ):
        client.topics.declare(TOPIC, queues=8)
        client.groups.declare(GROUP, [TOPIC])
        measure(report, client, messages, rounds)
        _note_traces(report, running)
    ratio = report.compare("receive and ack / bare views", "receive and ack", "bare views")
    report.at_least("receive and ack, share of the bare views", ratio, 0.6)
    rate = report.figures["receive and ack"].median
    report.at_least("receive and ack over REST, messages/s", rate, 10_000)


def measure(report: Report, client: Client, messages: int, rounds: int) -> None:
    """Fill, consume, ask the bare views, and again."""
    ours: list[float] = []
    bare: list[float] = []
    fill(client, BATCH * THREADS * 4)
    drain(lambda: consume(client))  # Connections are open, and the server has seen it all once.
    for _ in range(rounds):
        fill(client, messages)
        ours.append(drain(lambda: consume(client)))
        bare.append(drain(Bare(client, messages)))
    report.add("receive and ack", "messages/s", ours)
    report.add("bare views", "messages/s", bare)


def fill(client: Client, count: int) -> None:
    """Send what the group will receive."""
    message = NewMessage(body=BODY, tag="order-timeout", keys=("order-1",))
    results = client.send_many(TOPIC, [message] * count)
    assert all(result.stored for result in results)


def consume(client: Client) -> int:
    """Receive a batch and acknowledge it."""
    group = client.group(GROUP)
    messages = group.receive(max_messages=BATCH, lease_seconds=300).messages
    if messages:
        results = group.ack([message.receipt for message in messages])
        assert all(result.outcome == "acked" for result in results)
    return len(messages)


class Bare:
    """The same through the bare views, a fixed number of times."""

    def __init__(self, client: Client, messages: int) -> None:
        self._transport: Any = client.groups._transport  # noqa: SLF001 (the same way for both)
        self._left = messages
        self._mutex = threading.Lock()

    def __call__(self) -> int:
        with self._mutex:
            if self._left <= 0:
                return 0
            self._left -= BATCH
        asked = {"max_messages": BATCH, "lease_seconds": 300}
        received = self._post("/bare/receive", _received, asked)
        receipts = [message.receipt for message in received.messages]
        self._post("/bare/ack", _results, {"receipts": receipts})
        return len(receipts)

    def _post(self, path: str, decoder: Any, body: Any) -> Any:
        return self._transport.run(Call(method="POST", path=path, decoder=decoder, body=body))


def drain(turn: Turn) -> float:
    """Messages a second, by several threads, until there are no more."""
    done: list[int] = []

    def work() -> None:
        while count := turn():
            done.append(count)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


def _note_traces(report: Report, running: Running) -> None:
    setting = os.environ.get("POSTDATE_TRACE_CONSUMPTION", "on")
    report.settings["consumption_traces"] = setting
    report.settings["data_directory"] = running.data_dir.name


if __name__ == "__main__":
    run("consume", main, __doc__)
