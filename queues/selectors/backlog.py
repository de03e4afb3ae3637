"""The backlog: what a group has yet to receive, and what its consumers hold."""

from dataclasses import replace

from queues import wires
from queues.selectors.control import GroupView
from queues.store.consuming import QueueLag


def lag_of(group: GroupView) -> list[QueueLag]:
    """One entry for each queue of the group's topics; of a broadcasting group for each consumer."""
    consuming = wires.wiring().get_consuming()
    if group.mode != "broadcasting":
        return consuming.lag(group.name, group.sources)
    return [
        replace(lag, consumer_id=member.consumer_id)
        for member in consuming.members.of(group.name)
        for lag in consuming.lag(member.name, group.sources)
    ]


def in_flight(group: GroupView) -> int:
    """Messages that are leased to consumers of the group."""
    return sum(lag.leased for lag in lag_of(group))
