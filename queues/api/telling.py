"""Telling: the store's values as the API shows them."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET

from queues.access import Patterns
from queues.api.bodyform import show_body
from queues.api.shapes.messages import (
    FailureShown,
    GroupState,
    MessageDetail,
    MessageSummary,
    PlannedAttempt,
    TimelineEvent,
)
from queues.api.shapes.sending import KIND_WORDS
from queues.moments import format_moment
from queues.selectors.messages import lateness_ms
from queues.selectors.standings import GroupStanding, events_of, standings_of
from queues.store import MessageView
from queues.store.chaintail import Failure
from queues.store.messages import Event
from queues.store.properties import is_reserved


def moment_or_none(moment_ms: int | None) -> str | None:
    """The moment in words, if there is one."""
    return None if moment_ms is None else format_moment(moment_ms)


def tell_summary(view: MessageView) -> MessageSummary:
    """A message without its body."""
    return MessageSummary(**_summary_fields(view))


def tell_message(view: MessageView, groups: Patterns) -> MessageDetail:
    """Everything that is known of a message, and of the groups that the caller may see."""
    record = view.record
    standings = [one for one in standings_of(view) if groups.allow(one.group)]
    events = [event for one in standings for event in events_of(one, view.id)]
    # What the journal has in place of a body are reasons; the timeline shows them.
    gone = view.payload_gone
    body, encoding = (None, UNSET) if gone else show_body(record.decoded_body(), record.flag)
    return MessageDetail(
        **_summary_fields(view),
        body=body,
        encoding=encoding,
        properties=user_properties(record.properties),
        groups=[_tell_standing(one) for one in standings],
        timeline=tell_events([*view.timeline, *events]),
    )


def _tell_standing(one: GroupStanding) -> GroupState:
    state, attempts, _ = one.standing
    next_ms = _next_attempt_ms(one)
    tail = None if one.chain is None else one.chain.tail
    return GroupState(
        group=one.group,
        consumer_id=one.consumer_id or UNSET,
        state=state,
        attempts=attempts,
        next_attempt_at=moment_or_none(next_ms),
        next_attempt_at_ms=next_ms,
        failures=UNSET if tail is None else tell_failures(tail.failures),
        planned_attempts=[
            PlannedAttempt(attempt=attempt, delay_ms=delay_ms) for attempt, delay_ms in one.planned
        ]
        or UNSET,
    )


def _next_attempt_ms(one: GroupStanding) -> int | None:
    """When it is handed out again at the latest; None if it never is.

    A lease that runs out fails its attempt, and the next delay follows; to a consumer of a
    broadcasting group the message is handed again at once.
    """
    until_ms = one.standing.until_ms
    if one.standing.state != "leased" or one.consumer_id is not None or until_ms is None:
        return until_ms
    return until_ms + one.planned[0][1] if one.planned else None


def tell_failures(failures: Sequence[Failure]) -> list[FailureShown]:
    """The attempts that failed."""
    return [
        FailureShown(
            attempt=one.attempt,
            at=format_moment(one.at_ms),
            at_ms=one.at_ms,
            reason=one.reason,
            consumer_id=one.consumer_id,
        )
        for one in failures
    ]


def tell_events(events: Iterable[Event]) -> list[TimelineEvent]:
    """What happened, oldest first."""
    return [
        TimelineEvent(
            at=format_moment(event.at_ms),
            at_ms=event.at_ms,
            event=event.event,
            by=event.by,
            detail=dict(event.detail),
        )
        for event in sorted(events, key=lambda event: event.at_ms)
    ]


def user_properties(properties: dict[str, str]) -> dict[str, str]:
    """What the user set, without what RocketMQ and the store add."""
    return {name: value for name, value in properties.items() if not is_reserved(name)}


def _summary_fields(view: MessageView) -> dict[str, Any]:
    record = view.record
    delivered = view.delivered_ms
    return {
        "id": view.id,
        "topic": view.topic,
        "queue": view.queue_id,
        "state": view.state,
        "kind": KIND_WORDS[view.kind],
        "delay_level": view.level or UNSET,
        "due_at": format_moment(view.due_ms),
        "due_at_ms": view.due_ms,
        "created_at": format_moment(view.created_ms),
        "created_at_ms": view.created_ms,
        "delivered_at": moment_or_none(delivered),
        "delivered_at_ms": delivered,
        "lateness_ms": lateness_ms(view),
        "version": view.version,
        "reschedules": view.reschedules,
        "tag": record.tag,
        "keys": list(record.keys),
        "payload_gone": True if view.payload_gone else UNSET,
        "parked_reason": view.parked_reason if view.parked_reason is not None else UNSET,
    }
