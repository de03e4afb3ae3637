"""Bulk changes: look first, then cancel, move, deliver now or restore what was looked at."""

from typing import ClassVar

from django.http import HttpResponse
from msgspec import UNSET

from queues.api.answers import answer
from queues.api.codec import moment_in_query
from queues.api.endpoint import MANAGE, Call, endpoint
from queues.api.operationviews import accepted
from queues.api.shapes.bulk import (
    BulkBucket,
    BulkEffect,
    BulkFilter,
    BulkMoveRequest,
    BulkPreview,
    BulkRequest,
    BulkTarget,
)
from queues.api.shapes.operations import OperationAnswer
from queues.api.telling import tell_summary
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors.listing import Filter
from queues.selectors.scheduled import Window
from queues.services.plans import Preview, Target, carry_out_plan, preview, target_of
from queues.store.limits import DUE_MS_MAX

_GIVES = {200: BulkPreview, 202: OperationAnswer}
_CODES = (
    Code.FILTER_REQUIRED,
    Code.FILTER_UNSUPPORTED,
    Code.PLAN_REQUIRED,
    Code.PLAN_NOT_FOUND,
    Code.PLAN_USED,
    Code.PLAN_EXPIRED,
    Code.DELAY_INVALID,
)


class _BulkView(ApiView):
    """What the four have in common."""

    verb: ClassVar[str] = ""

    def change(self, call: Call) -> HttpResponse:
        request: BulkRequest = call.body
        if request.plan_id is not None:
            if any(one is not None for one in (request.filter, request.dry_run, _to(request))):
                detail = "A plan holds all this already: give the plan_id alone."
                raise Problem(Code.FIELD_INVALID, detail, pointer="/plan_id")
            return accepted(
                carry_out_plan(
                    verb=self.verb,
                    plan_id=request.plan_id,
                    caller=call.caller,
                    now_ms=call.now_ms,
                )
            )
        wanted = _filter(request.filter, self.verb)
        if wanted.window.topic is not None:
            call.caller.require_topic(wanted.window.topic)
        if not request.dry_run:
            detail = "Look with dry_run true first, and then give the plan_id that it answers."
            raise Problem(Code.PLAN_REQUIRED, detail, pointer="/dry_run")
        target = self.target(request, call.now_ms)
        return answer(
            _tell(preview(self.verb, wanted, target, caller=call.caller, now_ms=call.now_ms))
        )

    def target(self, request: BulkRequest, now_ms: int) -> Target | None:
        """Where to move; only a reschedule names it."""
        del request, now_ms
        return None


class BulkCancelView(_BulkView):
    """`/bulk/cancel`."""

    verb = "cancel"

    @endpoint(
        "Cancel many messages", scopes=(MANAGE,), takes=BulkRequest, gives=_GIVES, codes=_CODES
    )
    def post(self, call: Call) -> HttpResponse:
        return self.change(call)


class BulkRestoreView(_BulkView):
    """`/bulk/restore`."""

    verb = "restore"

    @endpoint(
        "Let many cancelled messages wait again",
        scopes=(MANAGE,),
        takes=BulkRequest,
        gives=_GIVES,
        codes=_CODES,
    )
    def post(self, call: Call) -> HttpResponse:
        return self.change(call)


class BulkDeliverNowView(_BulkView):
    """`/bulk/deliver-now`."""

    verb = "deliver-now"

    @endpoint(
        "Deliver many messages now",
        scopes=(MANAGE,),
        takes=BulkRequest,
        gives=_GIVES,
        codes=_CODES,
    )
    def post(self, call: Call) -> HttpResponse:
        return self.change(call)


class BulkRescheduleView(_BulkView):
    """`/bulk/reschedule`."""

    verb = "reschedule"

    @endpoint(
        "Move many messages to another time",
        scopes=(MANAGE,),
        takes=BulkMoveRequest,
        gives=_GIVES,
        codes=(*_CODES, Code.CONFLICTING_DELAY, Code.DELAY_OUT_OF_RANGE),
    )
    def post(self, call: Call) -> HttpResponse:
        return self.change(call)

    def target(self, request: BulkRequest, now_ms: int) -> Target | None:
        """Where the request says."""
        to = _to(request)
        if to is None:
            detail = "Say where to: deliver_at, delay or shift."
            raise Problem(Code.FIELD_REQUIRED, detail, pointer="/to")
        return target_of(deliver_at=to.deliver_at, delay=to.delay, shift=to.shift, now_ms=now_ms)


def _to(request: BulkRequest) -> BulkTarget | None:
    return request.to if isinstance(request, BulkMoveRequest) else None


def _filter(given: BulkFilter | None, verb: str) -> Filter:
    """The filter that was given; raises `filter_required` for one that takes everything."""
    found = BulkFilter() if given is None else given
    if found == BulkFilter(state=found.state):
        detail = "Give a topic, key, tag, kind, due_after or due_before; all at once is no filter."
        raise Problem(Code.FILTER_REQUIRED, detail, pointer="/filter")
    state = "cancelled" if verb == "restore" else "scheduled"
    if found.state not in (None, state):
        detail = f"Only {state} messages can be changed so."
        raise Problem(Code.FILTER_UNSUPPORTED, detail, pointer="/filter/state")
    if found.kind == "immediate":
        detail = "An immediate message never waits; kind is level or timed."
        raise Problem(Code.FILTER_UNSUPPORTED, detail, pointer="/filter/kind")
    after_ms = moment_in_query("/filter/due_after", found.due_after)
    before_ms = moment_in_query("/filter/due_before", found.due_before)
    window = Window(
        topic=found.topic,
        kind=found.kind,
        due_from_ms=0 if after_ms is None else max(0, min(after_ms, DUE_MS_MAX)),
        due_before_ms=DUE_MS_MAX if before_ms is None else max(0, min(before_ms, DUE_MS_MAX)),
    )
    return Filter(window, state=state, key=found.key, tag=found.tag)


def _tell(seen: Preview) -> BulkPreview:
    return BulkPreview(
        plan_id=seen.plan_id,
        expires_at=format_moment(seen.expires_ms),
        expires_at_ms=seen.expires_ms,
        count=seen.count if seen.exact else UNSET,
        count_at_least=UNSET if seen.exact else seen.count,
        sample=[tell_summary(view) for view in seen.sample],
        forecast=BulkEffect(
            seen.step_ms,
            [
                BulkBucket(format_moment(one.start_ms), one.start_ms, one.before, one.after)
                for one in seen.buckets
            ],
        ),
    )
