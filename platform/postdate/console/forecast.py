"""The forecast: what will come due, from 15 minutes to 40 days, and which seconds are hot."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse

from postdate.console import duebars
from postdate.console.duebars import HOT_SECOND
from postdate.console.messages import topic_names
from postdate.console.pages import Context, page
from queues import wires
from queues.admin.pages import read_moment
from queues.problems import Problem
from queues.selectors.dueload import Counted, Span, due_load

_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1_000, 60_000, 3_600_000
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Zoom:
    """One width of the window."""

    name: str
    label: str
    step_ms: int
    count: int
    #: What a click on a step leads to; empty: the messages themselves.
    closer: str


ZOOMS = {
    zoom.name: zoom
    for zoom in (
        Zoom("3m", "3 minutes", _SECOND_MS, 180, ""),
        Zoom("15m", "15 minutes", 10 * _SECOND_MS, 90, "3m"),
        Zoom("1h", "1 hour", _MINUTE_MS, 60, "3m"),
        Zoom("6h", "6 hours", 5 * _MINUTE_MS, 72, "15m"),
        Zoom("24h", "24 hours", 15 * _MINUTE_MS, 96, "1h"),
        Zoom("7d", "7 days", 2 * _HOUR_MS, 84, "6h"),
        Zoom("40d", "40 days", 12 * _HOUR_MS, 80, "24h"),
    )
}
_SHOWN_AT_FIRST = "1h"
_HOT_SHOWN = 20
#: Hot seconds are looked for in this much, from the window's beginning.
_HOT_WINDOW_S = 3_600


@page("console/forecast.html", permission="queues.view_message")
def forecast_page(request: HttpRequest) -> Context:
    """The histogram of one window, and its hot seconds."""
    now_ms = wires.wiring().get_clock().now_ms()
    zoom = ZOOMS.get(request.GET.get("span", ""), ZOOMS[_SHOWN_AT_FIRST])
    topic = request.GET.get("topic", "").strip()
    begin_ms = _begin_ms(request)
    load = due_load(
        Span(zoom.step_ms, zoom.count),
        Span(_SECOND_MS, _HOT_WINDOW_S),
        topic=topic or None,
        from_ms=begin_ms,
    )
    counted, seconds = load.spans
    return {
        "title": "Forecast",
        "lead": "What will be handed over when: delay levels and timed messages together. "
        "Choose a bar to look closer.",
        "zoom": zoom,
        "zooms": [(one, _address(one, begin_ms, topic)) for one in ZOOMS.values()],
        "topic": topic,
        "topics": topic_names(),
        "begin_ms": begin_ms,
        "load": load,
        "counted": counted,
        "drawn": duebars.draw(counted, now_ms, addresses=_closer(counted, zoom, topic)),
        "later": _address(zoom, counted.end_ms, topic),
        "earlier": _earlier(counted, zoom, topic, now_ms),
        "hot": _hot(seconds),
        "hot_limit": HOT_SECOND,
        "hot_end_ms": seconds.end_ms,
    }


def _begin_ms(request: HttpRequest) -> int | None:
    begin = request.GET.get("from", "")
    if begin.isdecimal() and len(begin) < len("9" * 15):
        return int(begin)
    try:
        return read_moment(request.GET, "from_at")
    except Problem as problem:
        messages.warning(request, problem.detail)
        return None


def _address(zoom: Zoom, from_ms: int | None, topic: str) -> str:
    query: dict[str, object] = {"span": zoom.name}
    if from_ms is not None:
        query["from"] = from_ms
    if topic:
        query["topic"] = topic
    return f"{reverse('forecast')}?{urlencode(query)}"


def _closer(counted: Counted, zoom: Zoom, topic: str) -> list[str]:
    addresses = []
    for index, count in enumerate(counted.counts):
        start_ms = counted.start_ms + index * counted.step_ms
        if not count:
            addresses.append("")
        elif zoom.closer:
            addresses.append(_address(ZOOMS[zoom.closer], start_ms, topic))
        else:
            query = {"due_after_ms": start_ms, "due_before_ms": start_ms + counted.step_ms}
            more = {"topic": topic} if topic else {}
            addresses.append(f"{reverse('messages')}?{urlencode({**query, **more})}")
    return addresses


def _earlier(counted: Counted, zoom: Zoom, topic: str, now_ms: int) -> str:
    """The window before, or none when this one holds now."""
    if counted.start_ms <= now_ms:
        return ""
    before_ms = counted.start_ms - zoom.step_ms * zoom.count
    return _address(zoom, None if before_ms <= now_ms else before_ms, topic)


def _hot(seconds: Counted) -> list[tuple[int, int]]:
    """The hottest seconds: when, and how many."""
    hot = [
        (seconds.start_ms + index * _SECOND_MS, count)
        for index, count in enumerate(seconds.counts)
        if count >= HOT_SECOND
    ]
    return sorted(hot, key=lambda one: -one[1])[:_HOT_SHOWN]
