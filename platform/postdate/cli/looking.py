"""Commands that look: list, levels, wheel, loops, groups, topics, forecast, status."""

from typing import Annotated

import typer
from rich.bar import Bar
from rich.table import Table

from postdate.cli.connecting import connect
from postdate.cli.messages import At, moment_of
from postdate.cli.outcomes import command
from postdate.cli.output import Json, console, show_facts, show_json, show_table, tell
from postdate.client.shapes.consuming import Lag
from postdate.client.shapes.groups import Group
from postdate.client.shapes.messages import Forecast

_NOT_READY = 7


@command
def levels(context: typer.Context, as_json: Json = False) -> None:
    """Show every delay level and how far it is."""
    with connect(context) as client:
        found = client.schedule.levels()
    if as_json:
        show_json(found)
        return
    rows = [
        [one.level, one.delay, one.pending, one.delay_offset, one.max_offset, one.next_due_at,
         one.behind_ms, one.holder, "stuck" if one.stuck else ""]
        for one in found
    ]  # fmt: skip
    columns = [
        "#level",
        "delay",
        "#pending",
        "#offset",
        "#max",
        "next due",
        "#behind ms",
        "holder",
        "",
    ]
    show_table(columns, rows, empty="")


@command
def wheel(context: typer.Context, as_json: Json = False) -> None:
    """Show the timer and how far it is."""
    with connect(context) as client:
        found = client.schedule.wheel()
    if as_json:
        show_json(found)
        return
    show_facts(
        [
            ("engine", found.engine),
            ("pending", found.pending),
            ("behind", f"{found.behind_ms} ms"),
            ("stuck", found.stuck),
            ("holder", found.holder or "nobody"),
            ("slots", f"{found.precision_ms} ms wide, {found.window_ms / 86_400_000:g} days"),
            ("read up to", found.read_time),
            ("last step", found.write_time),
            ("not in it yet", found.enqueue_lag_messages),
            ("read out", found.dequeued),
            ("loaded", found.loaded),
            ("failing", found.failing),
            ("log files", found.log_files),
            ("checkpoint", found.checkpoint_at),
        ]
    )


@command
def loops(context: typer.Context, as_json: Json = False) -> None:
    """Show every loop and who runs it."""
    with connect(context) as client:
        found = client.schedule.loops()
    if as_json:
        show_json(found)
        return
    rows = [
        [one.loop, one.holder or "nobody", one.since, one.last_step_at, one.behind_ms,
         "stuck" if one.stuck else ""]
        for one in found
    ]  # fmt: skip
    show_table(["loop", "holder", "since", "last step", "#behind ms", ""], rows, empty="")


@command
def status(context: typer.Context, as_json: Json = False) -> None:
    """Say whether the platform is in order; exit code 7 if it is not."""
    with connect(context) as client:
        found = client.schedule.readiness()
    if as_json:
        show_json(found)
    else:
        rows = [["ok" if one.ok else "NOT OK", one.name, one.detail] for one in found.checks]
        show_table(["", "check", "detail"], rows, empty="")
    if not found.ready:
        raise typer.Exit(_NOT_READY)


@command
def topics(context: typer.Context, as_json: Json = False) -> None:
    """List topics."""
    with connect(context) as client:
        found = client.topics.list(page_size=1000).items
    if as_json:
        show_json(found)
    else:
        rows = [[one.topic, one.queues, one.created_at] for one in found]
        show_table(["topic", "#queues", "created"], rows, empty="There are no topics.")


@command
def groups(
    context: typer.Context,
    group: Annotated[str | None, typer.Argument(help="One of them, queue by queue.")] = None,
    as_json: Json = False,
) -> None:
    """List groups and what waits for each, or one group queue by queue."""
    with connect(context) as client:
        if group is not None:
            _show_group(client.group(group).get(), client.group(group).lag(), as_json=as_json)
            return
        found = client.groups.list(page_size=1000).items
        lags = [client.group(one.group).lag() for one in found]
    if as_json:
        show_json([{"group": one, "lag": lag} for one, lag in zip(found, lags, strict=True)])
        return
    rows = [
        [one.group, ", ".join(each.topic for each in one.subscriptions), one.mode,
         lag.ready, lag.leased, lag.retrying, lag.dead, "paused" if one.paused else ""]
        for one, lag in zip(found, lags, strict=True)
    ]  # fmt: skip
    columns = ["group", "topics", "mode", "#ready", "#leased", "#retrying", "#dead", ""]
    show_table(columns, rows, empty="There are no groups.")


def _show_group(group: Group, lag: Lag, *, as_json: bool) -> None:
    if as_json:
        show_json({"group": group, "lag": lag})
        return
    show_facts(
        [
            ("group", group.group),
            ("subscriptions", ", ".join(f"{o.topic} ({o.tags})" for o in group.subscriptions)),
            ("mode", group.mode + (", ordered" if group.ordered else "")),
            ("paused", group.paused),
            ("retries", f"{group.max_retries}, {tell(group.retry_policy)}"),
            ("retrying", lag.retrying),
            ("dead", lag.dead),
        ]
    )
    console.print()
    rows = [[q.topic, q.queue, q.ready, q.leased, q.oldest_ready_at] for q in lag.queues]
    columns = ["topic", "#queue", "#ready", "#leased", "oldest ready"]
    show_table(columns, rows, empty="It has no queues yet.")


@command
def messages(
    context: typer.Context,
    topic: Annotated[str | None, typer.Option()] = None,
    key: Annotated[str | None, typer.Option()] = None,
    tag: Annotated[str | None, typer.Option()] = None,
    state: Annotated[str | None, typer.Option()] = "scheduled",
    due_after: At = None,
    due_before: At = None,
    limit: Annotated[int, typer.Option(help="At most so many, up to 1000.")] = 50,
    as_json: Json = False,
) -> None:
    """List messages; what waits comes in due order."""
    with connect(context) as client:
        page = client.messages.list(
            topic=topic,
            key=key,
            tag=tag,
            state=state or None,
            due_after=moment_of(due_after),
            due_before=moment_of(due_before),
            page_size=limit,
        )
    if as_json:
        show_json(page)
        return
    rows = [[one.id, one.topic, one.state, one.kind, one.due_at, one.tag, " ".join(one.keys)]
            for one in page.items]  # fmt: skip
    show_table(["id", "topic", "state", "kind", "due", "tag", "keys"], rows, empty="None.")
    if page.count is not None or page.count_at_least is not None:
        least = "" if page.count is not None else "at least "
        console.print(f"{least}{page.count or page.count_at_least or 0:,} in all", highlight=False)


@command
def forecast(
    context: typer.Context,
    from_: Annotated[str | None, typer.Option("--from", help="Default: now.")] = None,
    to: Annotated[str | None, typer.Option(help="RFC 3339 with a zone, or ms.")] = None,
    step: Annotated[str | None, typer.Option(help="The width of a bucket: 1m, 1h.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only what goes there.")] = None,
    as_json: Json = False,
) -> None:
    """Show what will come due, step by step."""
    with connect(context) as client:
        found = client.schedule.forecast(
            from_=moment_of(from_), to=moment_of(to), step=step, topic=topic
        )
    if as_json:
        show_json(found)
    else:
        _show_bars(found)


def _show_bars(found: Forecast) -> None:
    highest = max((bucket.count for bucket in found.buckets), default=0)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("from")
    table.add_column("messages", justify="right")
    table.add_column("", ratio=1)
    for bucket in found.buckets:
        bar = Bar(size=max(highest, 1), begin=0, end=bucket.count, color="blue")
        table.add_row(tell(bucket.start), f"{bucket.count:,}", bar)
    console.print(table, highlight=False)
    console.print(f"{sum(bucket.count for bucket in found.buckets):,} in all", highlight=False)
