"""Standings: how far each group is with a delivered message."""

from dataclasses import dataclass

from queues import wires
from queues.selectors.control import groups_of_topic
from queues.store import MessageView
from queues.store.consuming import Subscription
from queues.store.standing import Standing


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """One group's."""

    group: str
    standing: Standing
    #: Of a broadcasting group: its consumer.
    consumer_id: str | None = None


def standings_of(view: MessageView) -> list[GroupStanding]:
    """The standing of every group that the message is for, by name; none before the hand-over."""
    if view.delivered_offset is None:
        return []
    wiring = wires.wiring()
    consuming, now_ms = wiring.get_consuming(), wiring.get_clock().now_ms()
    found = []
    for group in groups_of_topic(view.topic):
        if not any(_takes(one, view) for one in group.subscriptions):
            continue
        names: list[tuple[str, str | None]] = [(group.name, None)]
        if group.mode == "broadcasting":
            members = consuming.members.of(group.name)
            names = [(member.name, member.consumer_id) for member in members]
        for name, consumer_id in names:
            standing = consuming.standing(
                name, view.topic, view.queue_id, view.delivered_offset, now_ms
            )
            if standing is not None:
                found.append(GroupStanding(group.name, standing, consumer_id))
    return found


def _takes(subscription: Subscription, view: MessageView) -> bool:
    if subscription.topic != view.topic:
        return False
    tags = [tag.strip() for tag in subscription.tags.split("||")]
    return "*" in tags or view.record.tag in tags
