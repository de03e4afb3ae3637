"""What can be done with groups: declare, pause and resume, reset, delete."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction

from queues import wires
from queues.codes import Code
from queues.durations import parse_duration
from queues.limits import (
    CUSTOM_DELAYS_MAX,
    RETRIES_MAX,
    RETRY_QUEUES_MAX,
    SUBSCRIPTIONS_MAX,
    TAGS_MAX,
)
from queues.models import Group, Operation, SeenConsumer
from queues.naming import check_group_name, check_topic_name
from queues.problems import Problem
from queues.selectors import control
from queues.selectors.backlog import kept_of, tries_again
from queues.selectors.control import GroupView
from queues.services.audit import now, record_change
from queues.services.broadcasting import forget_members, names_of
from queues.services.positions import Start, keep_positions, starts_of
from queues.services.purging import purge_group
from queues.services.retries import cancel_waiting, purge_chains
from queues.store.consuming import Subscription
from queues.store.names import RETRY_PREFIX

#: What a group that already waits for messages may not become in passing.
_FIXED_IN_FLIGHT = ("mode", "ordered")
#: What a declaration decides.
_DECLARED = (
    "subscriptions",
    "mode",
    "ordered",
    "max_retries",
    "retry_queues",
    "retry_policy",
    "start_from",
)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group as it is to be."""

    subscriptions: Sequence[Subscription]
    mode: str
    ordered: bool
    max_retries: int
    retry_queues: int
    retry_policy: dict[str, Any]
    start_from: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What became of a declaration."""

    group: GroupView
    #: It was not there before.
    created: bool


def declare_group(*, name: str, plan: GroupPlan, by: str) -> Declared:
    """Make the group or replace it; its start positions are kept before this returns."""
    check_group_name(name)
    _check_plan(plan)
    try:
        created = _keep(name, plan, by=by)
    except IntegrityError:
        created = _keep(name, plan, by=by)  # Another process made it at the same moment.
    return Declared(control.get_group(name), created=created)


def set_paused(*, name: str, paused: bool, by: str) -> GroupView:
    """Pause the group (receives come back empty) or let it go on."""
    group = control.get_group(name)
    if group.paused != paused:
        with transaction.atomic():
            changed = Group.objects.filter(name=name, paused=not paused).update(paused=paused)
            if changed:
                action = "group.pause" if paused else "group.resume"
                before, after = {"paused": not paused}, {"paused": paused}
                record_change(by=by, action=action, subject=name, before=before, after=after)
    return control.get_group(name)


@dataclass(frozen=True, slots=True)
class Reset:
    """What a reset did."""

    starts: list[Start]
    #: Waiting retries that were cancelled.
    cancelled: int


def reset_group(*, name: str, to: str | int, by: str, cancel_retries: bool = False) -> Reset:
    """Let the group begin anew at a time, the beginning or the end of its queues.

    Leases are void, receipts of before `expired`, and attempts start at 1. Retries go on, unless
    they are to be cancelled, those that wait and those that are ready.
    """
    group = control.get_group(name)
    starts = starts_of(group.subscriptions, to)
    with transaction.atomic():
        # A declaration at the same moment waits for its turn.
        list(Group.objects.select_for_update().filter(name=name))
        wiring = wires.wiring()
        offsets = {(start.topic, start.queue): start.offset for start in starts}
        for one in names_of(group):
            wiring.get_consuming().resetting.reset(one, offsets)
        cancelled = _cancel_retries(name, by=by) if cancel_retries else 0
        detail = {"to": to, "cancelled_retries": cancelled}
        record_change(by=by, action="group.reset", subject=name, detail=detail)
    for one in names_of(group):
        wiring.get_watch().wake(one, len(starts))
    return Reset(starts, cancelled)


def _cancel_retries(name: str, *, by: str) -> int:
    """Cancel the group's waiting retries, then pass over those that were handed over before."""
    wiring, topic = wires.wiring(), RETRY_PREFIX + name
    store = wiring.get_store()
    cancelled = cancel_waiting(name, by=by, reason="group reset")
    ends = {
        (topic, queue_id): store.queue_bounds(topic, queue_id).max_offset
        for queue_id in store.queue_ids(topic)
    }
    wiring.get_consuming().resetting.reset(name, ends, others=False)
    return cancelled


def delete_group(*, name: str, purge: bool, by: str) -> Operation | None:
    """Delete the group; what it has in flight is refused (`not_empty`) or given up.

    Returns the operation that gives up, where that takes long.
    """
    group = control.get_group(name)
    kept = kept_of(group)
    if kept.anything and not purge:
        raise Problem(
            Code.NOT_EMPTY,
            f"{kept.leased} messages are leased to its consumers, {kept.retrying} wait to be tried"
            f" again and {kept.dead} are dead letters; ?purge=true gives them up.",
            extra={"counts": asdict(kept)},
        )
    with transaction.atomic():
        rows = Group.objects.filter(name=name)
        before = rows.values(*_DECLARED, "paused").first()
        rows.delete()
        record_change(
            by=by,
            action="group.delete",
            subject=name,
            detail=asdict(kept),
            before=before,
        )
    _forget(name)
    return purge_group(name, by=by)


def _give_up(name: str, *, by: str) -> None:
    """Forget all of the group before this returns."""
    _forget(name)
    purge_chains(name, by=by)


def _forget(name: str) -> None:
    """Forget where the group, or each of its consumers, stands, and who they were."""
    SeenConsumer.objects.filter(group=name).delete()
    forget_members(name)
    _drop(name)


def _drop(name: str) -> None:
    wires.wiring().get_consuming().drop_group(name)


def _keep(name: str, plan: GroupPlan, *, by: str) -> bool:
    """Write the row, if it differs, and keep its positions; whether the group is new.

    The positions come before the commit: nobody receives for a group that has none yet.
    """
    with transaction.atomic():
        group = Group.objects.select_for_update().filter(name=name).first()
        created = group is None
        known: set[str] = set()
        if group is None:
            # What an earlier group left, if its deletion was cut short, is not inherited.
            _give_up(name, by=by)
            keep_positions(name, [Subscription(RETRY_PREFIX + name)], latest=True)
            Group.objects.create(name=name, created_at=now(), **_fields(plan))
            record_change(by=by, action="group.create", subject=name, after=_fields(plan))
        else:
            _change(group, plan, by=by)
            if group.mode == plan.mode:  # Of another mode's positions nothing is left.
                known = {subscription["topic"] for subscription in group.subscriptions}
        names = [name]
        if plan.mode == Group.Mode.BROADCASTING:
            # A consumer that is not known yet begins when it comes.
            names = [one.name for one in wires.wiring().get_consuming().members.of(name)]
        latest = plan.start_from == Group.StartFrom.LATEST
        for one in names:
            keep_positions(one, plan.subscriptions, latest=latest, known=known)
    return created


def _change(group: Group, plan: GroupPlan, *, by: str) -> None:
    fields = _fields(plan)
    changed = [field for field, value in fields.items() if getattr(group, field) != value]
    if changed:
        _check_change(group, plan)
        if "mode" in changed:
            # Neither kind knows what the other has settled.
            away = _drop if plan.mode == Group.Mode.BROADCASTING else forget_members
            transaction.on_commit(partial(away, group.name))
            if plan.mode == Group.Mode.CLUSTERING:
                # What was tried again before is not tried once more.
                keep_positions(group.name, [Subscription(RETRY_PREFIX + group.name)], latest=True)
        Group.objects.filter(pk=group.pk).update(**fields)
        record_change(
            by=by,
            action="group.change",
            subject=group.name,
            before={field: getattr(group, field) for field in changed},
            after={field: fields[field] for field in changed},
        )


def _check_plan(plan: GroupPlan) -> None:
    if len(plan.subscriptions) > SUBSCRIPTIONS_MAX:
        detail = f"At most {SUBSCRIPTIONS_MAX} subscriptions."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/subscriptions")
    topics = [subscription.topic for subscription in plan.subscriptions]
    for index, subscription in enumerate(plan.subscriptions):
        _check_subscription(subscription, f"/subscriptions/{index}")
        if subscription.topic in topics[:index]:
            detail = "A topic is subscribed to once; join its tags with ||."
            raise Problem(Code.FIELD_INVALID, detail, pointer=f"/subscriptions/{index}/topic")
    _check_bounds("max_retries", plan.max_retries, 0, RETRIES_MAX)
    _check_bounds("retry_queues", plan.retry_queues, 1, RETRY_QUEUES_MAX)
    _check_policy(plan.retry_policy)


def _check_subscription(subscription: Subscription, pointer: str) -> None:
    try:
        check_topic_name(subscription.topic)
    except Problem as problem:
        raise Problem(problem.code, problem.detail, pointer=f"{pointer}/topic") from None
    tags = [tag.strip() for tag in subscription.tags.split("||")]
    if tags == ["*"]:
        return
    if len(tags) > TAGS_MAX or any(
        not tag or set(tag) & set(" |*\t\r\n\x00\x01\x02") for tag in tags
    ):
        detail = f"Write * or up to {TAGS_MAX} tags, as in `TagA || TagB`."
        raise Problem(Code.TAG_INVALID, detail, pointer=f"{pointer}/tags")


def _check_policy(policy: dict[str, Any]) -> None:
    for place, duration in _policy_durations(policy):
        length_ms = parse_duration(duration)
        if length_ms is None:
            detail = "Write a duration such as 5s or 1h30m."
            raise Problem(Code.DELAY_INVALID, detail, pointer=f"/retry_policy/{place}")
        if not 0 < length_ms <= wires.wiring().get_rules().delay_ms_max:
            detail = "A retry's delay is above 0 and at most the longest delay of a message."
            raise Problem(Code.DELAY_OUT_OF_RANGE, detail, pointer=f"/retry_policy/{place}")


def _policy_durations(policy: dict[str, Any]) -> list[tuple[str, str]]:
    if policy["type"] == "exponential":
        return [("initial", policy["initial"]), ("max", policy["max"])]
    if policy["type"] == "custom":
        delays = policy["delays"]
        _check_bounds("retry_policy/delays", len(delays), 1, CUSTOM_DELAYS_MAX)
        return [(f"delays/{index}", delay) for index, delay in enumerate(delays)]
    return []


def _check_bounds(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Problem(Code.OUT_OF_BOUNDS, f"It is {least} to {most}.", pointer=f"/{field}")


def _check_change(group: Group, plan: GroupPlan) -> None:
    changed = [name for name in _FIXED_IN_FLIGHT if getattr(group, name) != getattr(plan, name)]
    if changed and tries_again(control.get_group(group.name)):
        detail = "It can be changed once nothing is leased and nothing is tried again."
        raise Problem(Code.GROUP_IN_FLIGHT, detail, pointer=f"/{changed[0]}")


def _fields(plan: GroupPlan) -> dict[str, Any]:
    """The plan as the columns of its row."""
    return {
        "subscriptions": [
            {"topic": subscription.topic, "tags": subscription.tags}
            for subscription in plan.subscriptions
        ],
        "mode": plan.mode,
        "ordered": plan.ordered,
        "max_retries": plan.max_retries,
        "retry_queues": plan.retry_queues,
        "retry_policy": plan.retry_policy,
        "start_from": plan.start_from,
    }
