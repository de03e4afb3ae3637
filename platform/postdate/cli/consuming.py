"""Commands that consume: receive, tail."""

import secrets
import threading
from typing import Annotated

import typer

from postdate.cli.connecting import connect
from postdate.cli.outcomes import STOPPED, command
from postdate.cli.output import (
    Json,
    console,
    short,
    show_json,
    show_line,
    show_table,
    tell,
    visible,
)
from postdate.cli.stopping import stop_at_signal
from postdate.client import Client, Subscription
from postdate.client.shapes.consuming import ReceivedMessage

#: How long one poll of `tail` waits: so long does Ctrl-C take at most.
_POLL_S = 1.0
_LEASE_S = 30


@command
def receive(
    context: typer.Context,
    group: str,
    max_messages: Annotated[int, typer.Option("--max", help="At most so many.")] = 32,
    wait: Annotated[float, typer.Option(help="Wait so long for the first one, s (up to 20).")] = 0,
    lease: Annotated[float, typer.Option(help="Hold them so long, s (10 or more).")] = 60,
    ack: Annotated[
        bool, typer.Option(help="Acknowledge them once they are shown; else they come again.")
    ] = True,
    consumer_id: Annotated[str | None, typer.Option(help="For a broadcasting group.")] = None,
    as_json: Json = False,
) -> None:
    """Receive messages for a group and show them."""
    with connect(context) as client:
        handle = client.group(group)
        received = handle.receive(
            max_messages=max_messages,
            wait_seconds=wait,
            lease_seconds=lease,
            consumer_id=consumer_id,
        )
        if as_json:
            show_json(received)
        else:
            empty = "The group is paused." if received.paused else "Nothing is ready."
            rows = [_row(message) for message in received.messages]
            show_table(["id", "topic", "#attempt", "#late ms", "tag", "body"], rows, empty=empty)
        if ack and received.messages:
            handle.ack([message.receipt for message in received.messages])


def _row(message: ReceivedMessage) -> list[object]:
    body = short(tell(message.body))
    topic, tag = message.topic, message.tag
    return [message.id, topic, message.attempt, message.lateness_ms, tag, body]


@command
def tail(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="What arrives here from now on.")] = None,
    tags: Annotated[str, typer.Option(help="TagA || TagB; * for all.")] = "*",
    group: Annotated[
        str | None, typer.Option(help="Consume for this group instead; it shares with others.")
    ] = None,
    earliest: Annotated[bool, typer.Option(help="Begin with what is there already.")] = False,
    count: Annotated[int | None, typer.Option(help="End after so many.")] = None,
    as_json: Json = False,
) -> None:
    """Show messages as they become ready, until Ctrl-C.

    Without --group it makes a group of its own and deletes it at the end (scope `manage`), so that
    nobody else misses a message.
    """
    if (topic is None) == (group is None):
        raise ValueError("Name a topic, or a group with --group.")
    with connect(context) as client, stop_at_signal() as stopping:
        if group is not None:
            _follow(client, group, stopping, count, as_json=as_json)
        else:
            wanted = Subscription(topic or "", tags)
            _follow_alone(client, wanted, stopping, count, earliest=earliest, as_json=as_json)
    if stopping.is_set():
        raise typer.Exit(STOPPED)


def _follow_alone(
    client: Client,
    subscription: Subscription,
    stopping: threading.Event,
    count: int | None,
    *,
    earliest: bool,
    as_json: bool,
) -> None:
    """With a group of its own, that is deleted at the end."""
    name = f"tail-{secrets.token_hex(6)}"
    start = "earliest" if earliest else "latest"
    client.groups.declare(name, [subscription], start_from=start)  # type: ignore[arg-type]
    try:
        _follow(client, name, stopping, count, as_json=as_json)
    finally:
        client.group(name).delete(purge=True)


def _follow(
    client: Client, name: str, stopping: threading.Event, count: int | None, *, as_json: bool
) -> None:
    group, shown = client.group(name), 0
    while not stopping.is_set() and (count is None or shown < count):
        most = 32 if count is None else min(32, count - shown)
        received = group.receive(max_messages=most, wait_seconds=_POLL_S, lease_seconds=_LEASE_S)
        for message in received.messages:
            if as_json:
                show_line(message)
            else:
                _show_one(message)
        shown += len(received.messages)
        if received.messages:
            group.ack([message.receipt for message in received.messages])
        if received.paused:
            stopping.wait(_POLL_S)


def _show_one(message: ReceivedMessage) -> None:
    late = "" if message.lateness_ms is None else f" +{message.lateness_ms} ms"
    tag = f" {message.tag}" if message.tag else ""
    console.print(
        visible(f"{tell(message.delivered_at)}{late} {message.topic}{tag} {message.id}"),
        highlight=False, markup=False, style="bold",
    )  # fmt: skip
    console.print(f"  {short(tell(message.body), characters=400)}", highlight=False, markup=False)
