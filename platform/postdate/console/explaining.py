"""Why a message waits, or was late, in sentences that name what an operator can look at."""

from dataclasses import dataclass

from django.utils.html import format_html

from postdate.console.tags import moment
from queues import wires
from queues.durations import format_duration
from queues.selectors.messages import lateness_ms
from queues.store import MessageView
from queues.store.names import SCHEDULE_TOPIC
from queues.wires import LoopState

#: Up to here a hand-over counts as on time.
_ON_TIME_MS = 100
#: A loop looks this often at least; below it nothing is wrong.
_SOON_MS = 1_000


@dataclass(frozen=True, slots=True)
class Why:
    """The state of a message in a sentence."""

    #: `ok`, `info`, `warn` or `bad`.
    tone: str
    text: str


def explain(view: MessageView, now_ms: int) -> Why:
    """The sentence for a message."""
    if view.state == "parked":
        return Why("bad", f"It is parked: {view.parked_reason or 'no reason was written down'}")
    if view.state == "cancelled":
        return _cancelled(view)
    if view.state == "ready":
        return _delivered(view)
    return _waiting(view, now_ms)


def _cancelled(view: MessageView) -> Why:
    for event in reversed(view.timeline):
        if event.event == "cancelled":
            reason = event.detail.get("reason")
            because = f", because: {reason}" if reason else ""
            who = event.by or "someone"
            return Why("info", f"{who} cancelled it{because}. No one receives it.")
    return Why("info", "It was cancelled. No one receives it.")


def _waiting(view: MessageView, now_ms: int) -> Why:
    loop = _loop_of(view)
    where = f"delay level {view.level}" if view.kind == "L" else "the timer wheel"
    if view.due_ms > now_ms:
        if loop is not None and loop.holder is None:
            return Why("bad", f"It waits in {where}, but nobody runs the loop {loop.name}.")
        return Why("info", f"It waits in {where} until it is due.")
    late = format_duration(max(1, now_ms - view.due_ms))
    if loop is None or loop.holder is None:
        return Why("bad", f"It is due since {late}: nobody runs the loop that hands it over.")
    if loop.stuck:
        why = loop.last_error or "its holder does nothing"
        return Why("bad", f"It is due since {late}: the loop {loop.name} is stuck ({why}).")
    if now_ms - view.due_ms < _SOON_MS:
        return Why("info", "It is due and being handed over.")
    return Why(
        "warn",
        f"It is due since {late}; the loop {loop.name} is {format_duration(loop.behind_ms)} behind "
        "or could not hand it over yet and tries again.",
    )


def _loop_of(view: MessageView) -> LoopState | None:
    loops = wires.wiring().get_schedule().loops()
    if view.held_topic != SCHEDULE_TOPIC:
        return next((loop for loop in loops if loop.name == "wheel"), None)
    levels = [loop for loop in loops if loop.name.startswith("levels")]
    return levels[view.held_queue_id % len(levels)] if levels else None


def _delivered(view: MessageView) -> Why:
    late_ms = lateness_ms(view)
    if view.kind == "I":
        return Why("ok", "It was sent without delay and was ready at once.")
    if late_ms is None:
        return Why("ok", "It was handed over.")
    if late_ms <= _ON_TIME_MS:
        return Why("ok", f"It was handed over on time, {late_ms} ms after it was due.")
    text = "It was handed over {} late. {}"
    return Why("warn", format_html(text, format_duration(late_ms), _cause(view)))


def _cause(view: MessageView) -> str:
    """What its own timeline says of the delay."""
    after = [event for event in view.timeline if event.at_ms > view.due_ms]
    for event in after:
        if event.event in ("restored", "released"):
            what = "cancelled" if event.event == "restored" else "parked"
            text = "It was {} when it came due and {} at {}."
            return format_html(text, what, event.event, moment(event.at_ms, "clock"))
    if view.created_ms > view.due_ms:
        return "It was sent after the moment that it was dated to."
    if any(event.event == "moved" for event in after):
        return "It was moved after it had come due."
    return (
        "The loop was busy or not running at that moment; see whether others were due in the same "
        "second, and since when the loop has its holder."
    )
