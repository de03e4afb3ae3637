"""The backlog: what a group has yet to receive, and what its consumers hold."""

from queues import wires
from queues.selectors.control import GroupView
from queues.store.consuming import QueueLag


def lag_of(group: GroupView) -> list[QueueLag]:
    """One entry for each queue of the group's topics."""
    return wires.wiring().get_consuming().lag(group.name, group.subscriptions)


def in_flight(group: GroupView) -> int:
    """Messages that are leased to consumers of the group."""
    return sum(lag.leased for lag in lag_of(group))
