"""The overview: how it goes now, how it went this hour, what comes in the next one."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from postdate.console import duebars
from postdate.console.attention import notices
from postdate.console.drawing import curve, grid, is_spiky, nice_maximum
from postdate.console.pages import Context, page
from postdate.console.schedule import loop_row
from postdate.wiring import lease_directory
from queues import wires
from queues.selectors.dueload import Counted, Span, due_load
from queues.wires import LoopState
from scheduler.history import Rates, read_rates
from scheduler.selectors import loop_states

_MINUTE_MS = 60_000
_HOUR_SECONDS = 3_600
#: The curve's height in its own units, its span, and how wide a step is.
_HEIGHT = 160.0
_CURVE_MINUTES = 60
_CURVE_STEP_MS = 15_000
#: What the current rates are averaged over.
_NOW_STEP_MS = 10_000


@page("console/overview.html", permission="queues.view_message")
def overview_page(request: HttpRequest) -> Context:
    """The overview."""
    del request
    wiring = wires.wiring()
    store = wiring.get_store()
    load = due_load(Span(1_000, _HOUR_SECONDS))
    seconds = load.spans[0]
    loops, health, counters = loop_states(), store.health(), store.counters()
    path = lease_directory() / "history"
    rates = read_rates(store.disk, path, load.at_ms, minutes=_CURVE_MINUTES, step_ms=_CURVE_STEP_MS)
    latest = read_rates(store.disk, path, load.at_ms, minutes=1, step_ms=_NOW_STEP_MS)
    minutes = _by_minute(seconds)
    return {
        "title": "Overview",
        "load": load,
        "late_ms": max((loop.lateness_p99_ms or 0 for loop in loops), default=0),
        "late_p50_ms": max((loop.lateness_p50_ms or 0 for loop in loops), default=0),
        "any_late": any(loop.lateness_p99_ms is not None for loop in loops),
        "latest": latest[-1] if latest else None,
        "next_hour": sum(minutes.counts),
        "due": duebars.draw(minutes, load.at_ms, addresses=_closer(minutes)),
        "flow": _flow(rates, load.at_ms),
        "loops": [loop_row(loop) for loop in loops],
        "health": health,
        "counters": counters,
        "notices": notices(loops, health, counters, seconds),
        "held_ms": _longest_behind(loops),
    }


def _by_minute(seconds: Counted) -> Counted:
    counts = seconds.counts
    return Counted(
        seconds.start_ms,
        _MINUTE_MS,
        tuple(sum(counts[at : at + 60]) for at in range(0, len(counts), 60)),
    )


def _closer(minutes: Counted) -> list[str]:
    """Each minute leads to itself, by seconds."""
    address = reverse("forecast")
    return [
        f"{address}?from={minutes.start_ms + index * _MINUTE_MS}&span=3m" if count else ""
        for index, count in enumerate(minutes.counts)
    ]


def _longest_behind(loops: list[LoopState]) -> int:
    return max((loop.behind_ms for loop in loops), default=0)


def _flow(rates: list[Rates], now_ms: int) -> dict[str, Any] | None:
    """The hour's curves, or None before there are two points."""
    if len(rates) < len("ab"):
        return None
    span_ms = _CURVE_MINUTES * _MINUTE_MS
    begin_ms = now_ms - span_ms

    def points(value: Callable[[Rates], float]) -> list[tuple[float, float]]:
        return [((one.at_ms - begin_ms) / span_ms, value(one)) for one in rates]

    rows = [value for one in rates for value in (one.sent, one.handed_over)]
    top, root = nice_maximum(max(rows)), is_spiky(rows)
    sent = curve(points(lambda one: one.sent), height=_HEIGHT, top=top, root=root)
    first, last = sent.split(" ")[0].split(",")[0], sent.split(" ")[-1].split(",")[0]
    return {
        "sent": sent,
        "area": f"{first},{_HEIGHT:g} {sent} {last},{_HEIGHT:g}",
        "handed": curve(points(lambda one: one.handed_over), height=_HEIGHT, top=top, root=root),
        "lines": grid(top, height=_HEIGHT, root=root),
        "root": root,
        "height": _HEIGHT,
        "ticks": [begin_ms + span_ms * part // 6 for part in range(7)],
        "peak": max(one.sent for one in rates),
    }
