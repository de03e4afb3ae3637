"""Failed attempts: tried again by the group's rule, or ended; and the retries that wait.

A waiting retry belongs to its group: it is cancelled, moved and tried now there, with the outcomes
that messages have.
"""

from collections.abc import Sequence

from queues import wires
from queues.codes import Code
from queues.models import Group
from queues.problems import Problem
from queues.selectors.control import GroupView
from queues.selectors.listing import Filter
from queues.selectors.matching import matches, select
from queues.selectors.rules import rule_of
from queues.selectors.scheduled import (
    ANYTHING,
    Place,
    Window,
    nearest_places,
    waiting_view,
)
from queues.services.changes import refusal
from queues.services.delays import resolve_delay
from queues.services.receiving import drop
from queues.store import Decision, MessageView
from queues.store.failing import Failed, Verdict, dead_letter
from queues.store.names import RETRY_PREFIX
from queues.store.retryrules import Wait


def retry(
    *,
    group: GroupView,
    receipts: Sequence[str],
    delay_level: int | None,
    delay: str | None,
    reason: str | None,
) -> list[Failed]:
    """Try again after the rule's delay, or the one that is asked for; `delay_level` -1 ends it."""
    if delay_level is not None and delay_level < 0:
        return _fail(group, receipts, dead_letter(reason))
    wait = None
    wiring = wires.wiring()
    now_ms, rules = wiring.get_clock().now_ms(), wiring.get_rules()
    if delay_level or delay is not None:
        due = resolve_delay(
            delay_level=delay_level,
            delay=delay,
            delay_ms=None,
            delay_seconds=None,
            deliver_at=None,
            now_ms=now_ms,
            rules=rules,
        )
        if due is not None:
            delay_ms = 0 if due.due_ms is None else due.due_ms - now_ms
            wait = Wait(level=due.level, delay_ms=delay_ms)
    return _fail(group, receipts, Verdict(reason, wait))


def give_up(*, group: GroupView, receipts: Sequence[str], reason: str | None) -> list[Failed]:
    """Put messages among the dead letters, whatever the rule says."""
    return _fail(group, receipts, dead_letter(reason))


def _fail(group: GroupView, receipts: Sequence[str], verdict: Verdict) -> list[Failed]:
    if group.mode == Group.Mode.BROADCASTING:
        dropped = drop(group=group, receipts=receipts, reason=verdict.reason)
        return [Failed(outcome) for outcome in dropped]  # type: ignore[arg-type]
    wiring = wires.wiring()
    failing, now_ms = wiring.get_consuming().failing, wiring.get_clock().now_ms()
    return failing.fail(group.name, receipts, rule_of(group), verdict, now_ms)


# -- waiting retries


def get_retry(*, group: GroupView, message_id: str) -> MessageView:
    """The message's newest retry in the group; raises `message_not_found`."""
    view = wires.wiring().get_store().chains.find_retry(group.name, message_id)
    if view is None:
        raise Problem(Code.MESSAGE_NOT_FOUND, f"{message_id[:64]!r} has no retry in this group.")
    return view


def cancel_retry(*, group: GroupView, message_id: str, by: str, reason: str | None) -> Decision:
    """The group never receives it again; raises `too_late`, `message_not_found`."""
    chains = wires.wiring().get_store().chains
    decision = found = chains.cancel_retry(group.name, message_id, by=by, reason=reason)
    while found.outcome == "cancelled":  # Since a reset two of its retries may wait.
        found = chains.cancel_retry(group.name, message_id, by=by, reason=reason)
    if decision.outcome not in ("cancelled", "already_cancelled"):
        raise refusal(decision)
    return decision


def move_retry(
    *, group: GroupView, message_id: str, due_ms: int, by: str, expected_version: int | None = None
) -> MessageView:
    """Try it at another time; raises `too_late`, `message_cancelled`, `version_mismatch`."""
    chains = wires.wiring().get_store().chains
    decision = chains.move_retry(
        group.name, message_id, due_ms, by=by, expected_version=expected_version
    )
    if decision.outcome != "moved" or decision.view is None:
        raise refusal(decision)
    return decision.view


def list_retries(
    *, group: GroupView, after: Place | None, limit: int
) -> tuple[list[MessageView], Place | None, int]:
    """A page of the group's waiting retries in due order, where it goes on, and how many wait."""
    window = Window(topic=RETRY_PREFIX + group.name, retries=True)
    places, count = nearest_places(window, after=after, limit=limit + 1)
    views = [view for place in places[:limit] if (view := waiting_view(place)) is not None]
    return views, places[limit - 1] if len(places) > limit else None, count


def cancel_waiting(group: str, *, by: str, reason: str) -> int:
    """Cancel the group's waiting retries; how many there were.

    Each by its own unit: since a reset two retries of one message may wait.
    """
    bulk, topic = wires.wiring().get_store().bulk, RETRY_PREFIX + group
    cancelled = 0
    while True:
        before = cancelled
        for units in matches(select(Filter(Window(topic=topic, retries=True)), ANYTHING)):
            cancelled += len(units) - len(bulk.cancel(units, by=by, reason=reason))
        if cancelled == before:
            return cancelled  # What is left was handed over or parked meanwhile.


def purge_chains(group: str, *, by: str) -> None:
    """Cancel the group's waiting retries and give up its dead letters."""
    cancel_waiting(group, by=by, reason="group purged")
    wires.wiring().get_store().chains.discard_all(group, by=by)
