"""Plans: a bulk change is looked at first, and then carried out as it was looked at.

A dry run counts what the filter means, shows some of it and what it does to the forecast, and keeps
all this as a plan for a quarter of an hour. Carried out, it covers messages that were stored before
the plan alone, and it runs once: its operation has the plan's id.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import IntegrityError

from queues import wires
from queues.access import Caller
from queues.codes import Code
from queues.durations import format_duration, parse_duration
from queues.models import BulkPlan, Operation
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors.forecast import SECOND_MS, step_for
from queues.selectors.listing import Filter, list_messages
from queues.selectors.matching import Selection, blocks, matches, select
from queues.selectors.scheduled import Window, wanted_of
from queues.services.audit import now
from queues.services.delays import resolve_delay
from queues.services.operations import begin, new_id
from queues.store import MessageView
from queues.store.names import JOURNAL_TOPIC, TIMER_TOPIC
from queues.store.outlook import add_to_buckets
from queues.store.schedule import Int64s

VERBS = ("cancel", "reschedule", "deliver-now", "restore")
PLAN_MINUTES = 15
#: Messages that a dry run shows.
SAMPLE_MAX = 10
#: Records that a dry run reads to count messages with a key or tag.
READS_MAX = 100_000
_BUCKETS = 96
_BUCKETS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """Where messages are moved to; one of the three."""

    #: A moment, or a length of time from when the plan is carried out, both ms.
    at_ms: int | None = None
    delay_ms: int | None = None
    #: What is added to each message's own due time, ms.
    shift_ms: int | None = None

    def moved(self, dues: Int64s, now_ms: int) -> Int64s:
        """The new due times; never before now."""
        if self.shift_ms is not None:
            return np.maximum(dues + self.shift_ms, now_ms)
        at_ms = now_ms + (self.delay_ms or 0) if self.at_ms is None else self.at_ms
        return np.full(len(dues), max(at_ms, now_ms))


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many messages come due in a step, without and with the change."""

    start_ms: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a bulk change would do."""

    plan_id: str
    expires_ms: int
    count: int
    exact: bool
    sample: list[MessageView]
    step_ms: int
    buckets: list[Bucket]


def target_of(
    *, deliver_at: str | int | None, delay: str | None, shift: str | None, now_ms: int
) -> Target:
    """The target that a request names; raises `field_required` and the problems of a delay."""
    given = [one for one in (deliver_at, delay, shift) if one is not None]
    if not given:
        detail = "Give one of deliver_at, delay and shift."
        raise Problem(Code.FIELD_REQUIRED, detail, pointer="/to")
    if len(given) > 1:
        raise Problem(Code.CONFLICTING_DELAY, "Give one of them only.", pointer="/to")
    if shift is not None:
        shift_ms = parse_duration(shift)
        if shift_ms is None:
            detail = "Write a duration such as 90s, -1h30m or 2d."
            raise Problem(Code.DELAY_INVALID, detail, pointer="/to/shift")
        return Target(shift_ms=shift_ms)
    try:
        due = resolve_delay(
            delay_level=None, delay=delay, delay_ms=None, delay_seconds=None,
            deliver_at=deliver_at, now_ms=now_ms, rules=wires.wiring().get_rules(),
        )  # fmt: skip
    except Problem as problem:
        raise Problem(
            problem.code, problem.detail, pointer=f"/to{problem.pointer}", extra=problem.extra
        ) from None
    at_ms = now_ms if due is None or due.due_ms is None else due.due_ms
    return Target(at_ms=at_ms) if deliver_at is not None else Target(delay_ms=at_ms - now_ms)


def preview(
    verb: str, wanted: Filter, target: Target | None, *, caller: Caller, now_ms: int
) -> Preview:
    """Look at what a bulk change means, and keep it as a plan."""
    wanted = replace(wanted, state="cancelled" if verb == "restore" else "scheduled")
    selection = select(wanted, caller.topics)
    target = Target(delay_ms=0) if verb == "deliver-now" else target
    affected = _Affected(selection)
    if target is not None and target.shift_ms is not None:
        _check_shift(affected.last_ms + target.shift_ms, now_ms)
    step_ms, buckets = _effect(verb, affected, target, caller, now_ms)
    listed = list_messages(wanted, caller=caller, position=None, limit=SAMPLE_MAX)
    plan = _keep(verb, selection, target, affected.count, by=caller.by, now_ms=now_ms)
    return Preview(
        plan_id=plan.id,
        expires_ms=round(plan.expires_at.timestamp() * 1000),
        count=affected.count,
        exact=affected.exact,
        sample=listed.views,
        step_ms=step_ms,
        buckets=buckets,
    )


def carry_out_plan(*, verb: str, plan_id: str, caller: Caller, now_ms: int) -> Operation:
    """Begin the plan's operation; raises `plan_not_found`, `plan_expired`, `plan_used`."""
    plan = BulkPlan.objects.filter(pk=plan_id[:32], verb=verb).first()
    if plan is None or plan.id != plan_id or plan.by != caller.by:
        detail = f"There is no plan {plan_id[:64]!r} to {verb}; plans are kept for a day."
        raise Problem(Code.PLAN_NOT_FOUND, detail, pointer="/plan_id")
    if Operation.objects.filter(pk=plan.id).exists():
        raise _used(plan)
    if now() >= plan.expires_at:
        expired = format_moment(round(plan.expires_at.timestamp() * 1000))
        detail = f"It could be carried out until {expired}; look again."
        raise Problem(Code.PLAN_EXPIRED, detail, pointer="/plan_id")
    store = wires.wiring().get_store()
    request = {
        **plan.request,
        # From here on its own records lie.
        "journal_from": store.queue_bounds(JOURNAL_TOPIC, 0).max_offset,
        "timer_from": store.queue_bounds(TIMER_TOPIC, 0).max_offset,
        "begun_ms": now_ms,
    }
    try:
        return begin(
            f"messages.{verb}", request, by=caller.by, now_ms=now_ms, total=plan.count,
            operation_id=plan.id,
        )  # fmt: skip
    except IntegrityError:
        raise _used(plan) from None


def _used(plan: BulkPlan) -> Problem:
    detail = f"Operation {plan.id} carries it out, or did."
    return Problem(Code.PLAN_USED, detail, pointer="/plan_id", extra={"operation_id": plan.id})


def _keep(
    verb: str, selection: Selection, target: Target | None, count: int, *, by: str, now_ms: int
) -> BulkPlan:
    at = now()
    BulkPlan.objects.filter(expires_at__lt=at - timedelta(days=1)).delete()
    plan_id = new_id(now_ms)
    to = None
    if target is not None:
        to = {"at_ms": target.at_ms, "delay_ms": target.delay_ms, "shift_ms": target.shift_ms}
    request: dict[str, Any] = {
        "plan_id": plan_id, "verb": verb, "selection": selection.as_json(), "to": to,
        "count": count,
    }  # fmt: skip
    if selection.filter.window.topic is not None:
        request["topic"] = selection.filter.window.topic
    return BulkPlan.objects.create(
        id=plan_id, verb=verb, request=request, count=count, by=by,
        expires_at=at + timedelta(minutes=PLAN_MINUTES),
    )  # fmt: skip


def _check_shift(last_ms: int, now_ms: int) -> None:
    maximum_ms = wires.wiring().get_rules().delay_ms_max
    if last_ms > now_ms + maximum_ms:
        raise Problem(
            Code.DELAY_OUT_OF_RANGE,
            f"The last of them would wait longer than {format_duration(maximum_ms)}.",
            pointer="/to/shift",
            extra={"maximum": format_duration(maximum_ms), "maximum_ms": maximum_ms},
        )


class _Affected:
    """The due times of the messages that are meant, as often as they are wanted."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        #: What was read, where records decide.
        self._read: list[Int64s] | None = None
        self.count, self.exact = 0, True
        self.first_ms, self.last_ms = 0, 0
        wanted = selection.filter
        self.topic = wanted.window.topic
        if wanted.key is not None or wanted.tag is not None:
            self._read = self._read_records()
        for dues in self.dues():
            if len(dues):
                low, high = int(dues.min()), int(dues.max())
                self.first_ms = min(self.first_ms, low) if self.count else low
                self.last_ms = max(self.last_ms, high)
                self.count += len(dues)

    def dues(self) -> Iterator[Int64s]:
        """Due times, a block at a time."""
        if self._read is not None:
            yield from self._read
            return
        for _, found in blocks(self._selection):
            yield found.due_ms

    def _read_records(self) -> list[Int64s]:
        read: list[Int64s] = []
        count = 0
        for units in matches(self._selection):
            read.append(np.array([unit.record.due_ms for unit in units], np.int64))
            count += len(units)
            if count >= READS_MAX:
                self.exact = False
                break
        return read


def _effect(
    verb: str, affected: _Affected, target: Target | None, caller: Caller, now_ms: int
) -> tuple[int, list[Bucket]]:
    """The forecast over what changes, without and with the change."""
    if not affected.count:
        return SECOND_MS, []
    if verb == "restore":
        target = Target(shift_ms=0)
    ends = np.array([affected.first_ms, affected.last_ms])
    reach = ends if target is None else np.concatenate((ends, target.moved(ends, now_ms)))
    low, high = int(reach.min()), int(reach.max())
    step_ms = step_for(high - low + 1, _BUCKETS)
    low -= low % step_ms
    # Of a range of years that even days cannot cut small only the beginning is told.
    count = min((high - low) // step_ms + 1, _BUCKETS_MAX)
    # The forecast of the topic that is meant, or of every topic, whatever their kind.
    window = Window(affected.topic, None, low, low + count * step_ms)
    wanted = wanted_of(window, caller.topics)
    outlook = wires.wiring().get_store().outlook
    before = np.zeros(count, np.int64) if wanted is None else outlook.buckets(wanted, step_ms)
    after = before.copy()
    for dues in affected.dues():
        if verb != "restore":
            after -= _counted(dues, low, step_ms, count)
        if target is not None:
            after += _counted(target.moved(dues, now_ms), low, step_ms, count)
    starts = range(low, low + count * step_ms, step_ms)
    told = zip(starts, before.tolist(), after.tolist(), strict=True)
    return step_ms, [Bucket(*one) for one in told]


def _counted(dues: Int64s, low: int, step_ms: int, count: int) -> Int64s:
    counts = np.zeros(count, np.int64)
    numbers = (dues - low) // step_ms
    add_to_buckets(counts, numbers[(numbers >= 0) & (numbers < count)])
    return counts
