"""Commands for dead letters: list, show, redrive, export, discard."""

import sys
from typing import Annotated, Literal

import typer

from postdate.cli.connecting import connect
from postdate.cli.messages import At, moment_of
from postdate.cli.outcomes import NO_SUCH, command, fail
from postdate.cli.output import (
    Json,
    console,
    progress_bar,
    short,
    show_facts,
    show_json,
    show_table,
    tell,
)
from postdate.client import Client
from postdate.client.shapes.consuming import Redrive
from postdate.client.shapes.control import Operation

app = typer.Typer(no_args_is_help=True, help="Look at dead letters, and have them tried again.")

Topic = Annotated[str | None, typer.Option(help="Only those of this topic.")]
Key = Annotated[str | None, typer.Option(help="Only those with this key.")]
Reason = Annotated[str | None, typer.Option(help="Only those that died of this.")]


@app.command("list")
@command
def list_(
    context: typer.Context,
    group: str,
    topic: Topic = None,
    key: Key = None,
    reason: Reason = None,
    died_after: At = None,
    died_before: At = None,
    limit: Annotated[int, typer.Option(help="At most so many, up to 1000.")] = 50,
    as_json: Json = False,
) -> None:
    """List a group's dead letters."""
    with connect(context) as client:
        page = client.group(group).dead_letters.list(
            topic=topic,
            key=key,
            reason=reason,
            died_after=moment_of(died_after),
            died_before=moment_of(died_before),
            page_size=limit,
        )
    if as_json:
        show_json(page)
        return
    rows = [
        [
            one.id,
            one.topic,
            one.died_at,
            one.failure_count,
            short(one.reason or "-"),
            one.redriven_at,
        ]
        for one in page.items
    ]
    columns = ["id", "topic", "died", "#failures", "reason", "redriven"]
    show_table(columns, rows, empty="There are no dead letters.")


@app.command()
@command
def show(context: typer.Context, group: str, message_id: str, as_json: Json = False) -> None:
    """Show everything that is known of a dead letter."""
    with connect(context) as client:
        letter = client.group(group).dead_letters.get(message_id)
    if as_json:
        show_json(letter)
        return
    show_facts(
        [
            ("id", letter.id),
            ("topic", letter.topic),
            ("died", letter.died_at),
            ("failures", letter.failure_count),
            ("reason", letter.reason),
            ("redriven", letter.redriven_at),
            ("tag", letter.tag),
            ("keys", " ".join(letter.keys) or None),
            ("properties", letter.properties or None),
            ("body", short(tell(letter.body), characters=2000)),
        ]
    )
    console.print()
    tried = [[one.attempt, one.at, one.consumer_id, one.reason] for one in letter.failures]
    show_table(["#attempt", "failed", "consumer", "reason"], tried, empty="")
    if letter.lineage:
        console.print()
        died = [[one.died_at, one.attempts, one.reason, one.redriven_at] for one in letter.lineage]
        show_table(["died before", "#attempts", "reason", "redriven"], died, empty="")


@app.command()
@command
def redrive(
    context: typer.Context,
    group: str,
    message_ids: Annotated[list[str] | None, typer.Argument(help="Which ones.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are not marked.")] = False,
    topic: Topic = None,
    key: Key = None,
    reason: Reason = None,
    again: Annotated[bool, typer.Option(help="Those that were redriven before, too.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only say how many.")] = False,
    rate: Annotated[float | None, typer.Option(help="At most so many a second.")] = None,
    stop_after: Annotated[
        int | None, typer.Option(help="Stop when so many have failed again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Have the group try dead letters again: by id, by filter, or all of them."""
    filter_ = _chosen(message_ids, topic, key, reason, everything=everything)
    with connect(context) as client:
        done = client.group(group).dead_letters.redrive(
            message_ids or None,
            filter_=filter_,
            everything=everything,
            again=again,
            dry_run=dry_run,
            messages_per_second=rate,
            stop_after_failures=stop_after,
        )
        if done.id is not None:
            operation = wait_for(client, done.id, "Redriving")
            show_json(operation) if as_json else console.print(tell(operation.result))
            return
    _show_redrive(done, as_json=as_json)


def _show_redrive(done: Redrive, *, as_json: bool) -> None:
    if as_json:
        show_json(done)
    elif done.count is not None:
        console.print(f"{done.count:,} would be tried again.", highlight=False)
    else:
        rows = [[one.id, one.outcome] for one in done.results]
        show_table(["id", "outcome"], rows, empty="There was nothing to redrive.")
    if any(one.outcome == "not_found" for one in done.results):
        raise typer.Exit(NO_SUCH)


def wait_for(client: Client, operation_id: str, what: str) -> Operation:
    """The operation once it is done, with a bar until then."""
    with progress_bar() as progress:
        task = progress.add_task(what, total=None)

        def show_progress(operation: Operation) -> None:
            at = operation.progress
            progress.update(task, completed=at.done, total=at.total)

        return client.operations.wait(operation_id, on_progress=show_progress)


@app.command()
@command
def export(
    context: typer.Context,
    group: str,
    topic: Topic = None,
    key: Key = None,
    reason: Reason = None,
    format_: Annotated[
        Literal["ndjson", "csv"], typer.Option("--format", help="One object, or one row, a line.")
    ] = "ndjson",
) -> None:
    """Write a group's dead letters to the standard output, as the server exports them."""
    with connect(context) as client:
        letters = client.group(group).dead_letters
        sys.stdout.write(letters.export(format_, topic=topic, key=key, reason=reason))


@app.command()
@command
def reasons(
    context: typer.Context, group: str, topic: Topic = None, key: Key = None, as_json: Json = False
) -> None:
    """Count a group's dead letters by what they died of."""
    with connect(context) as client:
        found = client.group(group).dead_letters.reasons(topic=topic, key=key)
    if as_json:
        show_json(found)
        return
    rows = [[one.count, one.last_died_at, one.reason, one.sample_id] for one in found.items]
    columns = ["#count", "last died", "reason", "id"]
    show_table(columns, rows, empty="There are no dead letters.")


@app.command()
@command
def discard(
    context: typer.Context,
    group: str,
    message_ids: Annotated[list[str] | None, typer.Argument(help="Which ones.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    topic: Topic = None,
    key: Key = None,
    reason: Reason = None,
) -> None:
    """Discard dead letters for good: by id, by filter, or all of them."""
    filter_ = _chosen(message_ids, topic, key, reason, everything=everything)
    with connect(context) as client:
        done = client.group(group).dead_letters.purge(
            message_ids or None, filter_=filter_, everything=everything
        )
        if done.id is not None:
            console.print(tell(wait_for(client, done.id, "Discarding").result))
        else:
            discarded = done.discarded or 0
            console.print(f"{discarded:,} are discarded.", highlight=False)
            missing = len(set(message_ids or ())) - discarded
            if missing > 0:
                raise fail(f"{missing:,} of the ids are no dead letters there.", code=NO_SUCH)


def _chosen(
    ids: list[str] | None,
    topic: str | None,
    key: str | None,
    reason: str | None,
    *,
    everything: bool,
) -> dict[str, str] | None:
    """The filter, if there is one; exactly one way of choosing is given."""
    filters = {"topic": topic, "key": key, "reason": reason}
    filter_ = {name: value for name, value in filters.items() if value is not None} or None
    if sum((bool(ids), everything, filter_ is not None)) != 1:
        raise ValueError("Give ids, or --all, or a filter.")
    return filter_
