"""Standings: how far each group is with a delivered message."""

from dataclasses import dataclass

from queues import wires
from queues.limits import PLANNED_ATTEMPTS_MAX
from queues.models import Group
from queues.selectors.control import GroupView, groups_of_topic
from queues.selectors.rules import rule_of
from queues.store import MessageView
from queues.store.chainlookup import ChainState
from queues.store.consuming import Subscription
from queues.store.messages import Event
from queues.store.standing import Standing


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """One group's."""

    group: str
    standing: Standing
    #: Of a broadcasting group: its consumer.
    consumer_id: str | None = None
    #: How it goes on since its first attempt failed; None if none did.
    chain: ChainState | None = None
    #: Attempts that are still to come if each one fails: number, and the delay before it in ms.
    planned: tuple[tuple[int, int], ...] = ()


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
                found.append(_with_chain(group, view.id, standing, consumer_id))
    return found


def _with_chain(
    group: GroupView, message_id: str, standing: Standing, consumer_id: str | None
) -> GroupStanding:
    """The standing with what is known of the retries."""
    if group.mode == Group.Mode.BROADCASTING:
        return GroupStanding(group.name, standing, consumer_id)
    chain = None
    if standing.state == "retrying":
        chain = wires.wiring().get_store().chains.lookup.state(group.name, message_id)
    if chain is not None:
        standing = Standing(chain.state, chain.attempts, chain.next_ms)  # type: ignore[arg-type]
    planned: tuple[tuple[int, int], ...] = ()
    if standing.state in ("ready", "leased", "retrying"):
        planned = _planned(group, standing)
    return GroupStanding(group.name, standing, None, chain, planned)


def _planned(group: GroupView, standing: Standing) -> tuple[tuple[int, int], ...]:
    """The attempts after the one that comes next or is under way."""
    current = max(1, standing.attempts + (standing.state != "leased"))
    delays = rule_of(group).plan(current)[:PLANNED_ATTEMPTS_MAX]
    return tuple((current + 1 + number, delay_ms) for number, delay_ms in enumerate(delays))


def events_of(one: GroupStanding, message_id: str) -> tuple[Event, ...]:
    """What happened to the message in the group since it first failed there."""
    if one.chain is None:
        return ()
    return wires.wiring().get_store().chains.lookup.timeline(one.group, message_id)


def _takes(subscription: Subscription, view: MessageView) -> bool:
    if subscription.topic != view.topic:
        return False
    tags = [tag.strip() for tag in subscription.tags.split("||")]
    return "*" in tags or view.record.tag in tags
