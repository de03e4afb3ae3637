"""Positions: where a group begins in each queue, decided once and kept with the group's ledger.

Queues that exist when a group first subscribes begin at their end (`latest`) or their beginning
(`earliest`); queues that come later begin at 0, so that nothing sent meanwhile is missed.
"""

from collections.abc import Sequence

from queues import wires
from queues.selectors.control import find_topic
from queues.store.consuming import Subscription


def keep_positions(group: str, subscriptions: Sequence[Subscription], *, latest: bool) -> None:
    """Keep a start position for every queue of the group's topics that has none yet."""
    wiring = wires.wiring()
    store, consuming = wiring.get_store(), wiring.get_consuming()
    for subscription in subscriptions:
        topic = find_topic(subscription.topic)
        declared = range(topic.queues) if topic else range(0)
        for queue_id in {*declared, *store.queue_ids(subscription.topic)}:
            bounds = store.queue_bounds(subscription.topic, queue_id)
            first = topic.first_offsets.get(queue_id, 0) if topic else 0
            start = bounds.max_offset if latest else max(bounds.min_offset, first)
            consuming.ensure_group(group, subscription.topic, queue_id, start)
