"""Redrive: let dead letters be tried again."""

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.endpoint import CONSUME, Call, endpoint
from queues.api.operationviews import accepted
from queues.api.shapes.deadletters import (
    DeadLetterSummary,
    PurgeRequest,
    RedriveAnswer,
    RedriveRequest,
    RedriveResult,
)
from queues.api.shapes.operations import OperationAnswer
from queues.api.tellingdeath import summary_fields
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import parse_moment
from queues.problems import Problem
from queues.selectors import control
from queues.selectors.deadletters import LetterFilter
from queues.services import deadletters
from queues.services.deadletters import RedriveOptions, Selection
from queues.store.limits import DUE_MS_MAX

#: Redrives are a few thousand a second; a rate above this paces nothing.
_RATE_MAX = 100_000


class RedriveView(ApiView):
    """`/groups/{group}/dead-letters/redrive`."""

    @endpoint(
        "Let dead letters be tried again",
        scopes=(CONSUME,),
        takes=RedriveRequest,
        gives={200: RedriveAnswer, 202: OperationAnswer},
        codes=(
            Code.GROUP_NOT_FOUND,
            Code.FILTER_REQUIRED,
            Code.OUT_OF_BOUNDS,
            Code.DELAY_INVALID,
            Code.STORE_FULL,
            Code.STORE_CLOSING,
            Code.STORE_FAILED,
        ),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        wanted: RedriveRequest = call.body
        found, selection, options = control.get_group(group), selection_of(wanted), _options(wanted)
        deadletters.check_selection(selection)
        if wanted.dry_run:
            count, sample = deadletters.look_at(
                group=found, selection=selection, again=options.again
            )
            shown = [DeadLetterSummary(**summary_fields(letter)) for letter in sample]
            return answer(RedriveAnswer(count=count, sample=shown))
        redrive = deadletters.redrive(
            group=found, selection=selection, options=options, by=call.caller.by
        )
        if redrive.operation is not None:
            return accepted(redrive.operation)
        results = [
            RedriveResult(one.id, one.outcome)  # type: ignore[arg-type]
            for one in redrive.results
        ]
        return answer(RedriveAnswer(results=results))


def selection_of(request: PurgeRequest) -> Selection:
    """What a request means; raises `filter_required` unless it names one of the three."""
    given = [request.ids is not None, request.filter is not None, bool(request.all)]
    if sum(given) != 1:
        detail = "Give one of ids, filter, and all: true."
        raise Problem(Code.FILTER_REQUIRED, detail, pointer="")
    if request.ids is not None:
        return Selection(ids=tuple(request.ids))
    if request.filter is None:
        return Selection()
    one = request.filter
    wanted = LetterFilter(
        topic=one.topic,
        key=one.key,
        reason=one.reason,
        died_from_ms=_moment("died_after", one.died_after, 0),
        died_before_ms=_moment("died_before", one.died_before, DUE_MS_MAX),
    )
    if wanted == LetterFilter():
        detail = "An empty filter means nothing; all: true means every dead letter."
        raise Problem(Code.FILTER_REQUIRED, detail, pointer="/filter")
    return Selection(matching=wanted)


def _moment(field: str, written: str | int | None, otherwise: int) -> int:
    if written is None:
        return otherwise
    moment_ms = parse_moment(written)
    if moment_ms is None:
        detail = "Write RFC 3339 with a zone, or milliseconds since 1970."
        raise Problem(Code.DELAY_INVALID, detail, pointer=f"/filter/{field}")
    return max(0, min(moment_ms, DUE_MS_MAX))


def _options(wanted: RedriveRequest) -> RedriveOptions:
    rate, failures = wanted.messages_per_second, wanted.stop_after_failures
    if rate is not None and not 0 < rate <= _RATE_MAX:
        detail = f"It is above 0 and at most {_RATE_MAX}."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/messages_per_second")
    if failures is not None and failures < 1:
        raise Problem(Code.OUT_OF_BOUNDS, "It is at least 1.", pointer="/stop_after_failures")
    return RedriveOptions(bool(wanted.again), rate, failures)
