"""The schedule's pages: delay levels, the timer wheel, the loops."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from postdate.console import drawing
from postdate.console.pages import Context, page
from queues.selectors.dueload import Counted, DueLoad, Span, due_load
from queues.wires import LoopState
from scheduler import selectors
from scheduler.selectors import LevelState

#: A loop this far behind is shown as behind.
BEHIND_MS = 1_000
_LOOK = "queues.view_message"
_LOOP_WORK = {
    "levels": "Hands over what comes due in the delay levels.",
    "wheel": "Turns the timer wheel and hands over timed messages.",
    "housekeeping": "Flush, retention, lease expiry, operations and report starts.",
}
#: The wheel's rings, from the outside: seconds, minutes, hours.
_RINGS = (
    (Span(1_000, 60), "the next minute, by second", 232, 188),
    (Span(60_000, 60), "the next hour, by minute", 182, 138),
    (Span(3_600_000, 168), "the next 7 days, by hour", 132, 96),
)
_CENTER = 240
_SECONDS = 60
#: From this many due in one second a slot is drawn as hot.
_HOT_SLOT = 10_000


@page("console/levels.html", permission=_LOOK)
def levels_page(request: HttpRequest) -> Context:
    """Every delay level and how far it is."""
    del request
    states = selectors.level_states()
    return {
        "title": "Delay levels",
        "lead": "Each level is a queue in due order. Its offset passes a message when it has been "
        "handed over, cancelled or parked.",
        "levels": [
            {"level": state, "passed": _passed(state), "tone": _level_tone(state)}
            for state in states
        ],
        "pending": sum(state.pending for state in states),
        "busy": sum(state.pending > 0 for state in states),
        "behind_ms": max((state.behind_ms for state in states), default=0),
    }


@page("console/wheel.html", permission=_LOOK)
def wheel_page(request: HttpRequest) -> Context:
    """The timer wheel, drawn as one."""
    del request
    load = due_load(*(ring[0] for ring in _RINGS), kind="timed")
    detail = selectors.wheel_detail()
    return {
        "title": "Timer wheel",
        "lead": "Messages dated to a moment lie in slots of one second each; the hand reads them "
        "out just ahead of their time.",
        "load": load,
        "rings": [_ring(counted, ring) for counted, ring in zip(load.spans, _RINGS, strict=True)],
        "hands": _hands(load, detail),
        "detail": detail,
        "loop": selectors.wheel_loop(),
        "stages": _stages(detail),
        "center": _CENTER,
    }


@page("console/loops.html", permission=_LOOK)
def loops_page(request: HttpRequest) -> Context:
    """Who runs what, and how it goes."""
    del request
    return {
        "title": "Loops",
        "lead": "A loop is run by one process at a time; its standby takes over at once when that "
        "process dies.",
        "loops": [loop_row(state) for state in selectors.loop_states()],
    }


def loop_row(state: LoopState) -> dict[str, Any]:
    """One loop with a word for how it is."""
    if state.holder is None:
        word = "not running"
    elif state.stuck:
        word = "stuck"
    else:
        word = "behind" if state.behind_ms > BEHIND_MS else "running"
    failing = state.detail.get("failing") or {}
    kind = state.name.partition("-")[0]
    return {"loop": state, "word": word, "work": _LOOP_WORK.get(kind, ""), "failing": failing}


def _passed(state: LevelState) -> int:
    """How many of the level's messages are behind its offset or settled."""
    return max(0, state.max_offset - state.pending)


def _level_tone(state: LevelState) -> str:
    return "bad" if state.behind_ms > BEHIND_MS else ""


@dataclass(frozen=True, slots=True)
class _Slot:
    path: str
    shade: str
    count: int
    start_ms: int
    end_ms: int


def _ring(counted: Counted, ring: tuple[Span, str, int, int]) -> dict[str, Any]:
    _, words, outer, inner = ring
    top = max(counted.counts, default=0)
    count = len(counted.counts)
    slots = []
    for index, load in enumerate(counted.counts):
        start_ms = counted.start_ms + index * counted.step_ms
        # The place on the dial is the time's own: a second has its place on the minute.
        place = start_ms // counted.step_ms % count
        is_hot = counted.step_ms == _RINGS[0][0].step_ms and load >= _HOT_SLOT
        slots.append(
            _Slot(
                path=drawing.sector(_CENTER, inner, outer, place / count, (place + 1) / count),
                shade="l5" if is_hot else drawing.shade(load, top),
                count=load,
                start_ms=start_ms,
                end_ms=start_ms + counted.step_ms,
            )
        )
    return {"slots": slots, "words": words, "total": sum(counted.counts), "peak": top}


def _hands(load: DueLoad, detail: Any) -> dict[str, Any]:
    """Where the hand, the read and the write time stand on the minute's dial."""
    minute_ms = _SECONDS * 1000

    def on_rim(at_ms: int | None) -> tuple[float, float] | None:
        if not at_ms or abs(at_ms - load.at_ms) > minute_ms:
            return None
        return drawing.spoke(_CENTER, 236, at_ms % minute_ms / minute_ms)

    return {
        "now": drawing.spoke(_CENTER, 236, load.at_ms % minute_ms / minute_ms),
        "tail": drawing.spoke(_CENTER, 74, load.at_ms % minute_ms / minute_ms),
        "read": on_rim(detail.get("read_ahead_ms")),
        "write": on_rim(detail.get("write_time_ms")),
    }


_STAGE_WORDS = {
    "scan": ("Scan", "not looked at yet"),
    "enqueue": ("Enqueue", "not placed yet"),
    "dequeue": ("Dequeue", "in slots that are due to be read"),
    "load": ("Load", "read out, not loaded"),
    "hand_over": ("Hand over", "loaded, in due order"),
}


def _stages(detail: Any) -> list[dict[str, Any]]:
    """The five stages with what lies before each."""
    return [
        {
            "name": _STAGE_WORDS.get(stage["stage"], (stage["stage"], ""))[0],
            "value": stage["messages"],
            "note": _STAGE_WORDS.get(stage["stage"], ("", ""))[1],
            "lag_ms": stage["lag_ms"],
        }
        for stage in detail.get("stages", [])
    ]
