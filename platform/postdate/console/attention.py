"""What needs attention: all that an operator should look at, worst first, with a way to it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.html import format_html

from postdate.console.duebars import HOT_SECOND
from postdate.console.tags import moment
from queues import wires
from queues.selectors.control import cache
from queues.selectors.dueload import Counted
from queues.selectors.operations import list_operations
from queues.wires import LoopState

#: What happened longer ago needs no attention any more.
_RECENT = timedelta(days=1)
_PARKED_SHOWN = 100
_BEHIND_MS = 5_000
_LOW_DISK_BYTES = 2 << 30
_FAILED_SHOWN = 3
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to look at."""

    #: `bad` or `warn`.
    tone: str
    title: str
    detail: str
    #: Where it is dealt with, and what that is called; empty: nowhere.
    address: str = ""
    action: str = ""


def notices(
    loops: list[LoopState], health: dict[str, Any], counters: dict[str, int], seconds: Counted
) -> list[Notice]:
    """Everything, worst first."""
    found = [*_disk(health, counters), *_loops(loops), *_parked(counters), *_dead(), *_clock(loops)]
    found += [*_failed(), *_hot_seconds(seconds)]
    return sorted(found, key=lambda notice: notice.tone != "bad")


def _disk(health: dict[str, Any], counters: dict[str, int]) -> list[Notice]:
    address = reverse("system")
    if health["reason"] == "store_failed":
        detail = "A write or a sync failed. The log of the processes says why; start them anew."
        return [Notice("bad", "The store takes no sends", detail, address, "Look at the disk")]
    if health["reason"] == "store_full":
        detail = "The disk is full. Hand-overs and cancels go on; free space or shorten retention."
        return [Notice("bad", "Sends are refused", detail, address, "Look at the disk")]
    found = []
    if health["free_bytes"] < _LOW_DISK_BYTES:
        detail = f"{health['free_bytes'] >> 20:,} MiB are free. Sends are refused when none is."
        found.append(Notice("warn", "The disk is nearly full", detail, address, "Look at the disk"))
    if counters["damaged"]:
        detail = f"{counters['damaged']:,} records; `manage.py store_verify` says which."
        found.append(Notice("bad", "Damaged records were found", detail, address, "System"))
    return found


def _loops(loops: list[LoopState]) -> list[Notice]:
    address, found = reverse("loops"), []
    for loop in loops:
        if loop.holder is None:
            detail = "Nothing that it does is done. Start a scheduler: manage.py run_scheduler."
            found.append(Notice("bad", f"Nobody runs {loop.name}", detail, address, "Loops"))
        elif loop.stuck:
            detail = loop.last_error or "Its holder lives and does nothing."
            found.append(Notice("bad", f"{loop.name} is stuck", detail, address, "Loops"))
        elif loop.behind_ms > _BEHIND_MS:
            detail = f"What is due waits {loop.behind_ms / 1000:.0f} s already."
            found.append(Notice("warn", f"{loop.name} is behind", detail, address, "Loops"))
    return found


def _parked(counters: dict[str, int]) -> list[Notice]:
    if not counters["parked"]:
        return []  # To look would read the whole journal once.
    parked = len(wires.wiring().get_store().parked(limit=_PARKED_SHOWN))
    if not parked:
        return []
    more = "or more " if parked == _PARKED_SHOWN else ""
    title = f"{parked:,} {more}parked message{'' if parked == 1 else 's'}"
    detail = "They could not be handed over. Each says why; release or discard them."
    return [Notice("bad", title, detail, reverse("parked"), "Look at them")]


def _dead() -> list[Notice]:
    """What died within the day and was not driven again."""
    oldest_ms = wires.wiring().get_clock().now_ms() - _RECENT.total_seconds() * 1000
    lookup = wires.wiring().get_store().chains.lookup
    count, groups = 0, []
    for name in cache.current().groups:
        letters = lookup.letters(name)
        new = int(((letters.died_ms > oldest_ms) & ~letters.redriven).sum())
        if new:
            count += new
            groups.append(name)
    if not count:
        return []
    title = f"{count:,} new dead letter{'' if count == 1 else 's'}"
    detail = f"Of {', '.join(sorted(groups)[:_NAMED])}{' and others' if groups[_NAMED:] else ''}."
    address = reverse("dead") if len(groups) > 1 else reverse("letters", args=groups)
    return [Notice("bad", title, detail, address, "Look at them")]


def _clock(loops: list[LoopState]) -> list[Notice]:
    now = datetime.fromtimestamp(wires.wiring().get_clock().now_ms() / 1000, UTC)
    oldest_ms = (now - _RECENT).timestamp() * 1000
    steps = [
        (loop.clock_step_at_ms, loop.clock_step_ms)
        for loop in loops
        if loop.clock_step_at_ms is not None and loop.clock_step_at_ms > oldest_ms
    ]
    if not steps:
        return []
    at_ms, step_ms = max(steps)
    way = "forward" if (step_ms or 0) > 0 else "back"
    detail = format_html(
        "{} ms {} at {}. Due times go by the wall clock.",
        f"{abs(step_ms or 0):,}", way, moment(at_ms, "clock"),
    )  # fmt: skip
    return [Notice("warn", "The wall clock was set", detail, reverse("loops"), "Loops")]


def _failed() -> list[Notice]:
    """Operations that failed within the day; reports are operations, too."""
    oldest_ms = wires.wiring().get_clock().now_ms() - _RECENT.total_seconds() * 1000
    failed = [
        row
        for row in list_operations(state="failed", limit=_FAILED_SHOWN)
        if row.created_at.timestamp() * 1000 > oldest_ms
    ]
    found = []
    for row in failed:
        what = "A report" if row.kind.startswith("report.") else f"The operation {row.kind}"
        why = row.error.get("detail", "") if isinstance(row.error, dict) else ""
        address = reverse("operation", args=[row.id])
        found.append(Notice("warn", f"{what} failed", why or "It says why.", address, "Look at it"))
    return found


def _hot_seconds(seconds: Counted) -> list[Notice]:
    hot = [
        (count, seconds.start_ms + index * seconds.step_ms)
        for index, count in enumerate(seconds.counts)
        if count >= HOT_SECOND
    ]
    if not hot:
        return []
    count, at_ms = max(hot)
    title = f"{len(hot)} hot second{'' if len(hot) == 1 else 's'} in the next hour"
    detail = format_html(
        "{} messages are due at {}; the last of them will be late.",
        f"{count:,}", moment(at_ms, "clock"),
    )  # fmt: skip
    address = f"{reverse('forecast')}?from={at_ms - 60_000}&span=3m"
    return [Notice("warn", title, detail, address, "See it")]
