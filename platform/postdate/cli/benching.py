"""The command `bench` sends through a running platform and consumes what it sent."""

import secrets
import threading
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from postdate.cli.connecting import connect
from postdate.cli.outcomes import REFUSED, STOPPED, command, fail
from postdate.cli.output import Json, progress_bar, show_facts, show_json
from postdate.cli.stopping import stop_at_signal
from postdate.client import Client, NewMessage, ReceivedMessage
from postdate.client.pausing import monotonic

#: No message for so long: something is wrong, and the figures would be of waiting.
_SILENCE_S = 60.0


@dataclass(slots=True)
class _Seen:
    """What the consumers have received, together."""

    ids: set[str] = field(default_factory=set)
    lateness_ms: list[int] = field(default_factory=list)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def note(self, messages: list[ReceivedMessage]) -> int:
        """How many there are now."""
        with self.mutex:
            self.ids.update(message.id for message in messages)
            self.lateness_ms += [message.lateness_ms or 0 for message in messages]
            return len(self.ids)


@command
def bench(
    context: typer.Context,
    messages: Annotated[int, typer.Option(min=1, help="How many.")] = 10_000,
    size: Annotated[int, typer.Option(min=1, help="Bytes of each body.")] = 100,
    batch: Annotated[int, typer.Option(min=1, max=1000, help="Messages a send.")] = 1000,
    delay: Annotated[str | None, typer.Option(help="Dated for later: 5s.")] = None,
    consumers: Annotated[int, typer.Option(min=1, help="Connections that receive.")] = 4,
    receive_batch: Annotated[int, typer.Option(min=1, max=256, help="Messages a receive.")] = 32,
    as_json: Json = False,
) -> None:
    """Measure a running platform: send, receive, acknowledge (scopes send, consume, manage).

    It makes a topic and a group of its own and deletes them at the end.
    """
    name = f"bench-{secrets.token_hex(4)}"
    with connect(context) as client, stop_at_signal() as stopping:
        client.topics.declare(name)
        client.groups.declare(name, [name], start_from="earliest")
        try:
            figures = _measure(
                client, name, messages, size, batch, delay, consumers, receive_batch, stopping
            )
        finally:
            client.group(name).delete(purge=True)
            client.topics.delete(name, purge=True)
    if stopping.is_set():
        raise typer.Exit(STOPPED)
    if as_json:
        show_json(figures)
    else:
        show_facts((word.replace("_", " "), value) for word, value in figures.items())
    if figures["missing"]:
        raise fail(f"{figures['missing']} messages did not come.", code=REFUSED)


def _measure(
    client: Client,
    name: str,
    count: int,
    size: int,
    batch: int,
    delay: str | None,
    consumers: int,
    receive_batch: int,
    stopping: threading.Event,
) -> dict[str, float | int]:
    seen = _Seen()
    with progress_bar() as progress:
        sent_s = _send(
            client, name, progress, stopping, count=count, size=size, batch=batch, delay=delay
        )
        task = progress.add_task("Receiving", total=count)
        began_s = monotonic()
        threads = [
            threading.Thread(
                target=_consume,
                args=(client, name, seen, count, receive_batch, progress, task, stopping),
            )
            for _ in range(consumers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        received_s = monotonic() - began_s
    lateness = sorted(seen.lateness_ms) or [0]
    return {
        "messages": count,
        "sent_per_second": round(count / sent_s),
        "received_and_acked_per_second": round(len(seen.ids) / received_s),
        "missing": count - len(seen.ids),
        "received_twice": len(seen.lateness_ms) - len(seen.ids),
        "lateness_ms_p50": lateness[len(lateness) // 2],
        "lateness_ms_p99": lateness[len(lateness) * 99 // 100],
        "lateness_ms_max": lateness[-1],
    }


def _send(
    client: Client,
    topic: str,
    progress: Progress,
    stopping: threading.Event,
    *,
    count: int,
    size: int,
    batch: int,
    delay: str | None,
) -> float:
    """Seconds that the sends took."""
    task = progress.add_task("Sending", total=count)
    message = NewMessage(body="x" * size, delay=delay)
    began_s = monotonic()
    for first in range(0, count, batch):
        if stopping.is_set():
            break
        results = client.send_many(topic, [message] * min(batch, count - first))
        refused = next((one for one in results if not one.stored), None)
        if refused is not None:
            raise fail(f"{refused.detail} [{refused.code}]", code=REFUSED)
        progress.advance(task, len(results))
    return monotonic() - began_s


def _consume(
    client: Client,
    name: str,
    seen: _Seen,
    count: int,
    batch: int,
    progress: Progress,
    task: TaskID,
    stopping: threading.Event,
) -> None:
    group, heard_s = client.group(name), monotonic()
    while len(seen.ids) < count and monotonic() - heard_s < _SILENCE_S and not stopping.is_set():
        received = group.receive(max_messages=batch, wait_seconds=0.2, lease_seconds=300)
        if received.messages:
            group.ack([message.receipt for message in received.messages])
            progress.update(task, completed=seen.note(received.messages))
            heard_s = monotonic()
