"""Purging: what waits for a topic or a group that is deleted, or emptied, is cancelled.

Few messages are cancelled at once; many by an operation, which covers what was stored when it was
begun. So a topic or group that is made anew under the name loses nothing of its own. What someone
moves while it is purged is left alone; without its topic it is parked when it is due.
"""

from typing import Any

from queues import wires
from queues.limits import PURGED_AT_ONCE_MAX
from queues.models import Operation
from queues.selectors.listing import Filter
from queues.selectors.matching import matches, select
from queues.selectors.scheduled import ANYTHING, Window, count_waiting
from queues.services.bulkrunners import CancelRunner, Run
from queues.services.operations import begin, new_id
from queues.services.retries import purge_chains
from queues.store.names import DEAD_LETTER_PREFIX, JOURNAL_TOPIC, RETRY_PREFIX, TIMER_TOPIC
from queues.wires import OperationRunner, Progress

_REASONS = {"topics.purge": "topic purged", "groups.purge": "group purged"}
#: Dead letters that are given up between two looks for an abort.
_DISCARDS = 500


def purge_topic(name: str, *, by: str) -> Operation | None:
    """Cancel what waits for a topic: at once, or by the operation that is returned."""
    if count_waiting(name) > PURGED_AT_ONCE_MAX:
        return _begin("topics.purge", name, {"topic": name}, by=by)
    for units in matches(select(_waiting(name), ANYTHING)):
        bulk = wires.wiring().get_store().bulk
        bulk.cancel(units, by=by, reason=_REASONS["topics.purge"])
    return None


def purge_group(name: str, *, by: str) -> Operation | None:
    """Cancel a group's waiting retries and give its dead letters up, in the same way."""
    store = wires.wiring().get_store()
    letters = len(store.chains.lookup.letters(name).units)
    if count_waiting(RETRY_PREFIX + name) + letters <= PURGED_AT_ONCE_MAX:
        purge_chains(name, by=by)
        return None
    end = store.queue_bounds(DEAD_LETTER_PREFIX + name, 0).max_offset
    request = {"group": name, "letters_end": end}
    return _begin("groups.purge", RETRY_PREFIX + name, request, by=by)


def _waiting(topic: str) -> Filter:
    return Filter(Window(topic=topic, retries=topic.startswith(RETRY_PREFIX)))


def _begin(kind: str, topic: str, request: dict[str, Any], *, by: str) -> Operation:
    wiring = wires.wiring()
    store, now_ms = wiring.get_store(), wiring.get_clock().now_ms()
    operation_id = new_id(now_ms)
    count = count_waiting(topic)
    whole = {
        **request,
        "plan_id": operation_id,
        "selection": select(_waiting(topic), ANYTHING).as_json(),
        "count": count,
        "reason": _REASONS[kind],
        "journal_from": store.queue_bounds(JOURNAL_TOPIC, 0).max_offset,
        "timer_from": store.queue_bounds(TIMER_TOPIC, 0).max_offset,
    }
    return begin(kind, whole, by=by, now_ms=now_ms, total=count, operation_id=operation_id)


class _PurgeRunner:
    """Cancels as a bulk cancel does; there is nothing to take it back into."""

    kind = ""
    at_once = 1

    def __init__(self) -> None:
        self._cancel = CancelRunner()

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Cancel what waited when it was begun."""
        return self._cancel.run(request, progress)


class TopicPurgeRunner(_PurgeRunner):
    """Cancels what waits for a topic."""

    kind = "topics.purge"


class GroupPurgeRunner(_PurgeRunner):
    """Cancels a group's waiting retries and gives its dead letters up."""

    kind = "groups.purge"

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """The retries first: what is handed over meanwhile would die once more."""
        result = self._cancel.run(request, progress)
        chains = Run(request, progress).store.chains
        by, group = f"operation:{request['plan_id']}", request["group"]
        units = chains.lookup.letters(group).units
        units = units[units < request["letters_end"]].tolist()
        discarded = 0
        for first in range(0, len(units), _DISCARDS):
            if progress.aborted:
                break
            some = units[first : first + _DISCARDS]
            discarded += chains.discard_units(group, some, by=by, reason=request["reason"])
        return {**result, "discarded": discarded}


def purge_runners() -> tuple[OperationRunner, ...]:
    """Both, for the wiring."""
    return TopicPurgeRunner(), GroupPurgeRunner()
