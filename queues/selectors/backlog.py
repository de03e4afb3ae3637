"""The backlog: what a group has yet to receive, and what its consumers hold."""

from dataclasses import dataclass, replace

from queues import wires
from queues.selectors.control import GroupView
from queues.selectors.scheduled import count_waiting
from queues.store.consuming import QueueLag
from queues.store.names import RETRY_PREFIX


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


@dataclass(frozen=True, slots=True)
class Kept:
    """What a group has in flight, waiting and given up."""

    leased: int
    #: Retries that wait for their time.
    retrying: int
    #: Dead letters that were not driven again.
    dead: int

    @property
    def anything(self) -> bool:
        """Whether there is any of it."""
        return bool(self.leased or self.retrying or self.dead)


def kept_of(group: GroupView) -> Kept:
    """What a group would give up if it were deleted."""
    return Kept(in_flight(group), count_retrying(group.name), count_dead(group.name))


def tries_again(group: GroupView) -> bool:
    """Whether consumers hold messages of the group, or retries wait or are ready for them."""
    lags = lag_of(group)
    return (
        any(lag.leased for lag in lags)
        or any(lag.ready for lag in lags if lag.topic.startswith(RETRY_PREFIX))
        or count_retrying(group.name) > 0
    )


def count_retrying(group: str) -> int:
    """The retries of a group that wait for their time."""
    return count_waiting(RETRY_PREFIX + group)


def count_dead(group: str) -> int:
    """The dead letters of a group that were not driven again."""
    letters = wires.wiring().get_store().chains.lookup.letters(group)
    return len(letters.units) - int(letters.redriven.sum())


def in_flight(group: GroupView) -> int:
    """Messages that are leased to consumers of the group."""
    return sum(lag.leased for lag in lag_of(group))
