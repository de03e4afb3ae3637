"""Commands for messages: send, get, cancel, restore, move, deliver-now."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import typer

from postdate.cli.connecting import connect
from postdate.cli.outcomes import REFUSED, command, exit_code_of, fail, say, sentence_of
from postdate.cli.output import (
    Json,
    console,
    progress_bar,
    short,
    show_facts,
    show_json,
    show_line,
    show_table,
    tell,
)
from postdate.client import Client, Conflict, Forbidden, InvalidRequest, NewMessage, NotFound
from postdate.client.bignumbers import decode
from postdate.client.errors import Gone
from postdate.client.shapes.messages import Message
from postdate.client.shapes.sending import SentItem

Delay = Annotated[str | None, typer.Option(help="From now: 90s, 1h30m, 2d, PT90S.")]
At = Annotated[str | None, typer.Option(help="RFC 3339 with a zone, or ms since 1970.")]
Level = Annotated[int | None, typer.Option(help="A delay level; `postdate levels` lists them.")]
MessageId = Annotated[str, typer.Argument(help="32 hex digits.")]
#: Refusals that concern one message and not all that are asked for.
_OF_ONE = (InvalidRequest, Forbidden, NotFound, Conflict, Gone)
#: Lines that go to the server together.
_LINES_A_BATCH = 1000

_json = msgspec.json.Decoder()


@command
def send(
    context: typer.Context,
    topic: str,
    body: Annotated[str | None, typer.Argument(help="Text; - reads standard input.")] = None,
    delay: Delay = None,
    at: At = None,
    level: Level = None,
    tag: Annotated[str | None, typer.Option(help="One tag.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="A business key; may be repeated.")] = None,
    property_: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="May be repeated.")
    ] = None,
    sharding_key: Annotated[str | None, typer.Option(help="Chooses the queue.")] = None,
    body_json: Annotated[
        bool, typer.Option("--body-json", help="The body is a JSON value, not text.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(help="The body is this file, as bytes.", exists=True, dir_okay=False),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option(help="Each line of this file is a message; - is standard input."),
    ] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="A repeat is stored once.")] = None,
    as_json: Json = False,
) -> None:
    """Send a message, now or dated for later."""
    if sum(source is not None for source in (body, file, lines)) != 1:
        raise ValueError("Give one body: as an argument, with --file, or with --lines.")
    fields: dict[str, Any] = {
        "delay": delay,
        "deliver_at": moment_of(at),
        "delay_level": level,
        "tag": tag,
        "keys": key or None,
        "properties": _properties(property_),
        "sharding_key": sharding_key,
    }
    with connect(context) as client:
        if lines is not None:
            _send_lines(client, topic, lines, fields, body_json=body_json, as_json=as_json)
            return
        content = _bytes_of(file) if file else _body(body or "", body_json=body_json)
        sent = client.send(topic, content, **fields, idempotency_key=idempotency_key)
    if as_json:
        show_json(sent)
    else:
        console.print(f"{sent.id} {sent.state}, due {tell(sent.due_at)}", highlight=False)


def _send_lines(
    client: Client,
    topic: str,
    path: Path,
    fields: dict[str, Any],
    *,
    body_json: bool,
    as_json: bool,
) -> None:
    refused: list[SentItem] = []
    stored = 0
    with _opened(path) as source, progress_bar() as progress:
        task = progress.add_task(f"Sending to {topic}", total=None)
        for batch in _batches(source, fields, body_json=body_json):
            for item in client.send_many(topic, batch):
                if as_json:
                    show_line(item)
                refused += [] if item.stored else [item]
                stored += item.stored
            progress.advance(task, len(batch))
    if not as_json:
        console.print(f"{stored:,} messages are stored.", highlight=False)
    if refused:
        first = refused[0]
        sentence = f"{len(refused):,} are refused; the first: {first.detail} [{first.code}]"
        raise fail(sentence, code=REFUSED)


def _opened(path: Path) -> IO[str]:
    try:
        return sys.stdin if str(path) == "-" else path.open()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def _batches(
    source: IO[str], fields: dict[str, Any], *, body_json: bool
) -> Iterator[list[NewMessage]]:
    batch: list[NewMessage] = []
    for line in source:
        text = line.rstrip("\n")
        if text:
            body = _decoded(text) if body_json else text
            batch.append(NewMessage(body=body, **fields))
        if len(batch) == _LINES_A_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _body(text: str, *, body_json: bool) -> Any:
    content = sys.stdin.read() if text == "-" else text
    return _decoded(content) if body_json else content


def _decoded(content: str) -> Any:
    try:
        return decode(_json, content.encode())
    except msgspec.DecodeError as error:
        raise ValueError(f"The body is not JSON: {error}") from None


def _properties(written: list[str] | None) -> dict[str, str] | None:
    pairs = [one.partition("=") for one in written or []]
    if any(not separator for _, separator, _ in pairs):
        raise ValueError("Write a property as NAME=VALUE.")
    return {name: value for name, _, value in pairs} or None


def moment_of(written: str | None) -> str | int | None:
    """A moment as it was typed; digits are milliseconds."""
    return int(written) if written is not None and written.isdecimal() else written


@command
def get(context: typer.Context, message_id: MessageId, as_json: Json = False) -> None:
    """Show everything that is known of a message."""
    with connect(context) as client:
        message = client.messages.get(message_id)
    _show(message, as_json=as_json)


@command
def cancel(
    context: typer.Context,
    message_ids: Annotated[list[str], typer.Argument(help="One or more ids.")],
    reason: Annotated[str | None, typer.Option(help="For the message's timeline.")] = None,
    as_json: Json = False,
) -> None:
    """Cancel messages: what is cancelled, no one receives.

    Each is tried, whatever became of those before it; the exit code is the highest of any.
    """
    worst = 0
    with connect(context) as client:
        for message_id in message_ids:
            try:
                outcome = client.messages.cancel(message_id, reason=reason).outcome
            except _OF_ONE as error:
                outcome = error.code
                worst = max(worst, exit_code_of(error))
                say(f"{message_id}: {sentence_of(error)}")
                if not as_json:
                    continue
            if as_json:
                show_line({"id": message_id, "outcome": outcome})
            else:
                console.print(f"{message_id} {outcome}", highlight=False)
    if worst:
        raise typer.Exit(worst)


@command
def restore(context: typer.Context, message_id: MessageId, as_json: Json = False) -> None:
    """Let a cancelled message wait again."""
    with connect(context) as client:
        message = client.messages.restore(message_id)
    _show(message, as_json=as_json)


@command
def move(
    context: typer.Context,
    message_id: MessageId,
    delay: Delay = None,
    at: At = None,
    level: Level = None,
    if_version: Annotated[
        int | None, typer.Option(help="Only if nobody changed it since this version.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a message another due time, counted from now."""
    with connect(context) as client:
        message = client.messages.move(
            message_id,
            delay=delay,
            deliver_at=moment_of(at),
            delay_level=level,
            if_version=if_version,
        )
    _show(message, as_json=as_json)


@command
def deliver_now(context: typer.Context, message_id: MessageId, as_json: Json = False) -> None:
    """Hand a waiting message over now."""
    with connect(context) as client:
        message = client.messages.deliver_now(message_id)
    _show(message, as_json=as_json)


def _show(message: Message, *, as_json: bool) -> None:
    if as_json:
        show_json(message)
        return
    show_facts(
        [
            ("id", message.id),
            ("state", message.state),
            ("topic", f"{message.topic} (queue {message.queue})"),
            ("kind", message.kind),
            ("due", message.due_at),
            ("delivered", message.delivered_at),
            ("lateness", None if message.lateness_ms is None else f"{message.lateness_ms} ms"),
            ("created", message.created_at),
            ("version", message.version),
            ("tag", message.tag),
            ("keys", " ".join(message.keys) or None),
            ("properties", message.properties or None),
            ("parked", message.parked_reason),
            ("body", short(tell(message.body), characters=2000)),
        ]
    )
    if message.groups:
        console.print()
        rows = [[one.group, one.state, one.attempts, one.next_attempt_at] for one in message.groups]
        show_table(["group", "state", "#attempts", "next attempt"], rows, empty="")
    console.print()
    events = [[event.at, event.event, event.by, event.detail or ""] for event in message.timeline]
    show_table(["at", "event", "by", "detail"], events, empty="")
