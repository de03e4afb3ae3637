"""Spreading: what is due in one second is moved evenly over the time that follows.

A hot second holds more than can be handed over in it. The messages keep their order; none becomes
earlier than it was promised. It is an operation, `messages.spread`; a run that is taken up again
spreads what is still due in the second, over the same time.
"""

from typing import Any

from queues import wires
from queues.codes import Code
from queues.durations import parse_duration
from queues.models import Operation
from queues.problems import Problem
from queues.selectors.scheduled import (
    Window,
    message_id,
    nearest_places,
    wanted_of,
)
from queues.services.operations import begin
from queues.wires import Progress

KIND = "messages.spread"
SECOND_MS = 1_000
_OVER_MS_MAX = 24 * 3_600_000
#: Messages of one second that are spread in one operation.
_SPREAD_MAX = 1_000_000
#: How often progress is told.
_TOLD_EVERY = 100


def spread_second(*, at_ms: int, over: str, topic: str | None, by: str, now_ms: int) -> Operation:
    """Begin the operation; raises `delay_invalid`, `out_of_bounds`."""
    over_ms = parse_duration(over)
    if over_ms is None:
        raise Problem(Code.DELAY_INVALID, "Write a duration such as 30s or 2m.")
    if not 2 * SECOND_MS <= over_ms <= _OVER_MS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, "A second is spread over 2 seconds to a day.")
    at_ms = at_ms // SECOND_MS * SECOND_MS
    count = count_due(at_ms, topic)
    if not count:
        raise Problem(Code.FIELD_INVALID, "Nothing is due in this second any more.")
    request: dict[str, Any] = {"at_ms": at_ms, "over_ms": over_ms}
    if topic is not None:
        request["topic"] = topic
    return begin(KIND, request, by=by, now_ms=now_ms, total=count)


def count_due(at_ms: int, topic: str | None) -> int:
    """How many messages are due in the second."""
    wanted = wanted_of(_window(at_ms, topic))
    return 0 if wanted is None else wires.wiring().get_store().outlook.count(wanted)


def _window(at_ms: int, topic: str | None) -> Window:
    return Window(topic=topic, due_from_ms=at_ms, due_before_ms=at_ms + SECOND_MS)


class SpreadRunner:
    """Carries it out."""

    kind = KIND
    #: Two of them would move the same messages.
    at_once = 1

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Move each message to its new moment."""
        store = wires.wiring().get_store()
        at_ms, over_ms = request["at_ms"], request["over_ms"]
        places, _ = nearest_places(
            _window(at_ms, request.get("topic")), after=None, limit=_SPREAD_MAX
        )
        outcomes: dict[str, int] = {}
        for number, place in enumerate(places):
            if number % _TOLD_EVERY == 0:
                progress.report(number, len(places))
                if progress.aborted:
                    break
            due_ms = max(place.due_ms, at_ms + over_ms * number // len(places))
            found = message_id(place)
            if due_ms == place.due_ms or found is None:
                outcome = "unchanged"
            else:
                outcome = store.move(found, due_ms, by="operation:spread").outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        progress.report(sum(outcomes.values()), len(places))
        return outcomes
