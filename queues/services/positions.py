"""Positions: where a group begins in each queue, decided once and kept with the group's ledger.

Queues that exist when a group first subscribes begin at their end (`latest`) or their beginning
(`earliest`); queues that come later begin at 0, so that nothing sent meanwhile is missed.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from queues import wires
from queues.codes import Code
from queues.moments import parse_moment
from queues.problems import Problem
from queues.selectors.control import find_topic
from queues.store.consuming import Subscription
from queues.store.seeking import first_at


class Start(NamedTuple):
    """Where a group begins in a queue."""

    topic: str
    queue: int
    offset: int


def starts_of(subscriptions: Sequence[Subscription], to: str | int) -> list[Start]:
    """Where `earliest`, `latest` or a moment lies in every queue of the topics.

    Raises `field_invalid` for what is none of them.
    """
    at_ms = None if to in ("earliest", "latest") else parse_moment(to)
    if at_ms is None and to not in ("earliest", "latest"):
        detail = "Write earliest, latest, RFC 3339 with a zone, or milliseconds since 1970."
        raise Problem(Code.FIELD_INVALID, detail, pointer="/to")
    store = wires.wiring().get_store()
    starts = []
    for topic, queue_id, first in _queues_of(subscriptions):
        bounds = store.queue_bounds(topic, queue_id)
        if at_ms is not None:
            offset = first_at(store, topic, queue_id, at_ms)
        else:
            offset = bounds.max_offset if to == "latest" else bounds.min_offset
        starts.append(Start(topic, queue_id, max(offset, first)))
    return starts


def _queues_of(subscriptions: Sequence[Subscription]) -> Iterator[tuple[str, int, int]]:
    """Every queue of the topics, declared or found, and the first offset that is the topic's."""
    store = wires.wiring().get_store()
    for subscription in subscriptions:
        topic = find_topic(subscription.topic)
        declared = range(topic.queues) if topic else range(0)
        for queue_id in sorted({*declared, *store.queue_ids(subscription.topic)}):
            yield subscription.topic, queue_id, topic.first_offsets.get(queue_id, 0) if topic else 0


def keep_positions(
    group: str,
    subscriptions: Sequence[Subscription],
    *,
    latest: bool,
    known: Collection[str] = (),
) -> None:
    """Keep a start position for every queue of the group's topics that has none yet.

    Of topics that are `known`, because the group subscribes to them already, and of those in which
    it stands anywhere, such a queue came later: it begins at its beginning.
    """
    consuming = wires.wiring().get_consuming()
    for one in subscriptions:
        is_new = latest and one.topic not in known and not consuming.stands_in(group, one.topic)
        for start in starts_of([one], "latest" if is_new else "earliest"):
            consuming.ensure_group(group, *start)
