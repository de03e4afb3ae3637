"""Failed attempts: try again later, or give up."""

from collections.abc import Sequence

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.consumeviews import checked_receipts
from queues.api.endpoint import CONSUME, Call, endpoint
from queues.api.shapes.failing import DeadLetterRequest, FailAnswer, FailResult, RetryRequest
from queues.api.views import ApiView
from queues.codes import Code
from queues.limits import REASON_CHARACTERS_MAX
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors import control
from queues.services import retries
from queues.store.failing import Failed

_CODES = (
    Code.GROUP_NOT_FOUND,
    Code.OUT_OF_BOUNDS,
    Code.LEDGER_BUSY,
    Code.STORE_FULL,
    Code.STORE_CLOSING,
    Code.STORE_FAILED,
)


class RetryView(ApiView):
    """`/groups/{group}/retry`."""

    @endpoint(
        "Try messages again later",
        scopes=(CONSUME,),
        takes=RetryRequest,
        gives={200: FailAnswer},
        codes=(
            *_CODES,
            Code.CONFLICTING_DELAY,
            Code.DELAY_INVALID,
            Code.DELAY_LEVEL_UNKNOWN,
            Code.DELAY_OUT_OF_RANGE,
        ),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        wanted: RetryRequest = call.body
        failed = retries.retry(
            group=control.get_group(group),
            receipts=checked_receipts(wanted.receipts),
            delay_level=wanted.delay_level,
            delay=wanted.delay,
            reason=checked_reason(wanted.reason),
        )
        return _told(wanted.receipts, failed)


class DeadLetterView(ApiView):
    """`/groups/{group}/dead-letter`."""

    @endpoint(
        "Give messages up",
        scopes=(CONSUME,),
        takes=DeadLetterRequest,
        gives={200: FailAnswer},
        codes=_CODES,
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        wanted: DeadLetterRequest = call.body
        failed = retries.give_up(
            group=control.get_group(group),
            receipts=checked_receipts(wanted.receipts),
            reason=checked_reason(wanted.reason),
        )
        return _told(wanted.receipts, failed)


def checked_reason(reason: str | None) -> str | None:
    """The reason, if it is not too long."""
    if reason is not None and len(reason) > REASON_CHARACTERS_MAX:
        detail = f"At most {REASON_CHARACTERS_MAX} characters."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/reason")
    return reason


def _told(receipts: Sequence[str], failed: Sequence[Failed]) -> HttpResponse:
    return answer(FailAnswer([_tell(*pair) for pair in zip(receipts, failed, strict=True)]))


def _tell(receipt: str, failed: Failed) -> FailResult:
    if failed.next_ms is None:
        return FailResult(receipt=receipt, outcome=failed.outcome)
    return FailResult(
        receipt=receipt,
        outcome=failed.outcome,
        next_attempt_at=format_moment(failed.next_ms),
        next_attempt_at_ms=failed.next_ms,
    )
