"""Consuming: receive, acknowledge, and see what is left."""

import math

from django.http import HttpResponse
from msgspec import UNSET

from queues.api.answers import answer
from queues.api.endpoint import CONSUME, INSPECT, Call, endpoint
from queues.api.handed import tell_deliveries
from queues.api.shapes.consuming import (
    AckAnswer,
    AckResult,
    FullQueue,
    LagAnswer,
    QueueLagAnswer,
    ReceiptsRequest,
    ReceiveAnswer,
    ReceiveRequest,
)
from queues.api.telling import moment_or_none
from queues.api.views import ApiView
from queues.codes import Code
from queues.limits import (
    CONSUMER_ID_CHARACTERS_MAX,
    LEASE_S_DEFAULT,
    LEASE_S_MAX,
    LEASE_S_MIN,
    RECEIPTS_MAX,
    RECEIVE_MESSAGES_DEFAULT,
    RECEIVE_MESSAGES_MAX,
    RECEIVE_WAIT_S_MAX,
)
from queues.problems import Problem
from queues.selectors import control
from queues.selectors.backlog import count_dead, count_retrying, lag_of
from queues.services.receiving import acknowledge, receive
from queues.services.sightings import sightings

_CODES = (Code.GROUP_NOT_FOUND, Code.OUT_OF_BOUNDS)


class ReceiveView(ApiView):
    """`/groups/{group}/receive`."""

    @endpoint(
        "Receive messages",
        scopes=(CONSUME,),
        takes=ReceiveRequest,
        body_optional=True,
        gives={200: ReceiveAnswer},
        codes=(*_CODES, Code.STORE_CLOSING),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        view = control.get_group(group)
        wanted: ReceiveRequest = call.body
        _check_consumer_id(wanted.consumer_id)
        sightings.note(group, wanted.consumer_id, call.caller.by, call.now_ms)
        polled = receive(
            group=view,
            max_messages=_whole(
                "max_messages", wanted.max_messages, RECEIVE_MESSAGES_DEFAULT, RECEIVE_MESSAGES_MAX
            ),
            wait_ms=milliseconds("wait_seconds", wanted.wait_seconds, 0, 0, RECEIVE_WAIT_S_MAX),
            lease_ms=milliseconds(
                "lease_seconds", wanted.lease_seconds, LEASE_S_DEFAULT, LEASE_S_MIN, LEASE_S_MAX
            ),
            consumer_id=wanted.consumer_id,
        )
        return answer(
            ReceiveAnswer(
                messages=tell_deliveries(polled.deliveries),
                paused=polled.paused or UNSET,
                full=[FullQueue(*queue) for queue in polled.full] or UNSET,
            )
        )


class AckView(ApiView):
    """`/groups/{group}/ack`."""

    @endpoint(
        "Acknowledge messages",
        scopes=(CONSUME,),
        takes=ReceiptsRequest,
        gives={200: AckAnswer},
        codes=(*_CODES, Code.LEDGER_BUSY),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        receipts = checked_receipts(call.body.receipts)
        outcomes = acknowledge(group=control.get_group(group), receipts=receipts)
        return answer(
            AckAnswer(
                [
                    AckResult(receipt, outcome)  # type: ignore[arg-type]
                    for receipt, outcome in zip(receipts, outcomes, strict=True)
                ]
            )
        )


class LagView(ApiView):
    """`/groups/{group}/lag`."""

    @endpoint(
        "See what a group has yet to receive",
        scopes=(CONSUME, INSPECT),
        gives={200: LagAnswer},
        codes=(Code.GROUP_NOT_FOUND,),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        lags = lag_of(control.get_group(group))
        return answer(
            LagAnswer(
                queues=[
                    QueueLagAnswer(
                        consumer_id=lag.consumer_id or UNSET,
                        topic=lag.topic,
                        queue=lag.queue_id,
                        ready=lag.ready,
                        leased=lag.leased,
                        oldest_ready_at=moment_or_none(lag.oldest_ready_ms),
                        oldest_ready_at_ms=lag.oldest_ready_ms,
                    )
                    for lag in lags
                ],
                retrying=count_retrying(group),
                dead=count_dead(group),
                ready_exact=all(lag.ready_exact for lag in lags),
            )
        )


def _whole(field: str, value: int | None, default: int, most: int) -> int:
    number = default if value is None else value
    if not 1 <= number <= most:
        raise Problem(Code.OUT_OF_BOUNDS, f"It is 1 to {most}.", pointer=f"/{field}")
    return number


def checked_receipts(receipts: list[str]) -> list[str]:
    """The receipts of a request, if they are not too many."""
    if not 1 <= len(receipts) <= RECEIPTS_MAX:
        detail = f"1 to {RECEIPTS_MAX} receipts."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/receipts")
    return receipts


def milliseconds(field: str, seconds: float | None, default: int, least: int, most: int) -> int:
    """A number of seconds in its bounds, as milliseconds."""
    number = default if seconds is None else seconds
    if not least <= number <= most:
        detail = f"It is {least} to {most} seconds."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer=f"/{field}")
    return math.ceil(number * 1000)


def _check_consumer_id(consumer_id: str | None) -> None:
    if consumer_id is not None and not (
        1 <= len(consumer_id) <= CONSUMER_ID_CHARACTERS_MAX and consumer_id.isprintable()
    ):
        detail = f"1 to {CONSUMER_ID_CHARACTERS_MAX} printable characters."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/consumer_id")
