"""Leases: hold messages longer, give them back, see who holds what."""

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.consumeviews import checked_receipts, milliseconds
from queues.api.endpoint import CONSUME, INSPECT, Call, endpoint
from queues.api.shapes.consuming import ReceiptsRequest
from queues.api.shapes.leases import (
    ExtendAnswer,
    ExtendRequest,
    ExtendResult,
    LeaseList,
    LeaseShown,
    ReleaseAnswer,
    ReleaseResult,
)
from queues.api.shapes.messages import PageQuery
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.limits import LEASE_S_DEFAULT, LEASE_S_MAX, LEASE_S_MIN
from queues.moments import format_moment
from queues.selectors import control
from queues.selectors.leases import list_leases, place_of
from queues.services.receiving import extend, release
from queues.store.leases import Extended, Lease
from queues.store.record import Record

_CODES = (Code.GROUP_NOT_FOUND, Code.OUT_OF_BOUNDS, Code.LEDGER_BUSY)


class ExtendView(ApiView):
    """`/groups/{group}/extend`."""

    @endpoint(
        "Hold messages longer",
        scopes=(CONSUME,),
        takes=ExtendRequest,
        gives={200: ExtendAnswer},
        codes=_CODES,
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        wanted: ExtendRequest = call.body
        receipts = checked_receipts(wanted.receipts)
        lease_ms = milliseconds(
            "lease_seconds", wanted.lease_seconds, LEASE_S_DEFAULT, LEASE_S_MIN, LEASE_S_MAX
        )
        found = extend(group=control.get_group(group), receipts=receipts, lease_ms=lease_ms)
        return answer(ExtendAnswer([_tell(*pair) for pair in zip(receipts, found, strict=True)]))


class ReleaseLeaseView(ApiView):
    """`/groups/{group}/release`."""

    @endpoint(
        "Give messages back",
        scopes=(CONSUME,),
        takes=ReceiptsRequest,
        gives={200: ReleaseAnswer},
        codes=_CODES,
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        receipts = checked_receipts(call.body.receipts)
        outcomes = release(group=control.get_group(group), receipts=receipts)
        results = [
            ReleaseResult(receipt, outcome)  # type: ignore[arg-type]
            for receipt, outcome in zip(receipts, outcomes, strict=True)
        ]
        return answer(ReleaseAnswer(results))


class LeasesView(ApiView):
    """`/groups/{group}/leases`."""

    @endpoint(
        "List the messages that consumers hold",
        scopes=(CONSUME, INSPECT),
        query=PageQuery,
        gives={200: LeaseList},
        codes=(Code.GROUP_NOT_FOUND, Code.PAGE_TOKEN_INVALID),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        listing = ["leases", group]
        position = read_token(listing, call.query.page_token)
        page = list_leases(
            control.get_group(group),
            after=None if position is None else (*position[:3], position[3]),
            limit=page_size_of(call.query.page_size),
        )
        token = make_token(listing, place_of(page.leases[-1][0])) if page.more else ""
        items = [_show(*pair) for pair in page.leases]
        return answer(LeaseList(items=items, next_page_token=token, count=page.count))


def _tell(receipt: str, extended: Extended) -> ExtendResult:
    if extended.until_ms is None or extended.new_receipt is None:
        return ExtendResult(receipt=receipt, outcome=extended.outcome)
    return ExtendResult(
        receipt=receipt,
        outcome=extended.outcome,
        new_receipt=extended.new_receipt,
        lease_expires_at=format_moment(extended.until_ms),
        lease_expires_at_ms=extended.until_ms,
    )


def _show(lease: Lease, record: Record | None) -> LeaseShown:
    return LeaseShown(
        id=None if record is None else record.unique_id,
        topic=lease.place.topic,
        queue=lease.place.queue_id,
        attempt=lease.attempt,
        consumer_id=lease.consumer_id,
        since=format_moment(lease.since_ms),
        since_ms=lease.since_ms,
        until=format_moment(lease.until_ms),
        until_ms=lease.until_ms,
    )
