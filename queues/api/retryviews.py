"""A group's waiting retries: list them, cancel, move, try one now."""

from typing import Any

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.bodyform import show_body
from queues.api.endpoint import CONSUME, INSPECT, Call, endpoint
from queues.api.messageviews import expected_version, moved_to
from queues.api.shapes.messages import Cancelled, CancelQuery, NoFields, PageQuery
from queues.api.shapes.retries import RetryDetail, RetryList, RetrySummary
from queues.api.shapes.sending import MoveRequest
from queues.api.telling import moment_or_none, tell_failures, user_properties
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment
from queues.selectors import control
from queues.selectors.scheduled import Place
from queues.services import retries
from queues.store import MessageView
from queues.store.chaintail import tail_of

_STORE_CODES = (Code.STORE_FULL, Code.STORE_CLOSING, Code.STORE_FAILED)
_CODES = (Code.GROUP_NOT_FOUND, Code.MESSAGE_NOT_FOUND)
_IF_MATCH = {"If-Match": "The version that the change was decided on, as its `ETag` shows it."}


class RetriesView(ApiView):
    """`/groups/{group}/retries`."""

    @endpoint(
        "List the messages that a group tries again",
        scopes=(CONSUME, INSPECT),
        query=PageQuery,
        gives={200: RetryList},
        codes=(Code.GROUP_NOT_FOUND, Code.PAGE_TOKEN_INVALID),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        listing = ["retries", group]
        position = read_token(listing, call.query.page_token)
        views, last, count = retries.list_retries(
            group=control.get_group(group),
            after=None if position is None else Place(*position),
            limit=page_size_of(call.query.page_size),
        )
        token = "" if last is None else make_token(listing, [last.due_ms, last.holder, last.offset])
        items = [RetrySummary(**_fields(view)) for view in views]
        return answer(RetryList(items=items, next_page_token=token, count=count))


class OneRetryView(ApiView):
    """`/groups/{group}/retries/{id}`."""

    @endpoint("Look at a retry", scopes=(CONSUME, INSPECT), gives={200: RetryDetail}, codes=_CODES)
    def get(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        return _told(retries.get_retry(group=control.get_group(group), message_id=message_id))

    @endpoint(
        "Cancel a retry: the group never receives the message again",
        scopes=(CONSUME,),
        query=CancelQuery,
        gives={200: Cancelled},
        codes=(*_CODES, Code.TOO_LATE, *_STORE_CODES),
    )
    def delete(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        decision = retries.cancel_retry(
            group=control.get_group(group),
            message_id=message_id,
            by=call.caller.by,
            reason=call.query.reason,
        )
        return answer(Cancelled(outcome=decision.outcome))  # type: ignore[arg-type]

    @endpoint(
        "Move a retry to another time",
        scopes=(CONSUME,),
        takes=MoveRequest,
        gives={200: RetryDetail},
        headers=_IF_MATCH,
        codes=(
            *_CODES,
            Code.TOO_LATE,
            Code.MESSAGE_CANCELLED,
            Code.VERSION_MISMATCH,
            Code.CONFLICTING_DELAY,
            Code.DELAY_INVALID,
            Code.DELAY_LEVEL_UNKNOWN,
            Code.DELAY_OUT_OF_RANGE,
            *_STORE_CODES,
        ),
    )
    def patch(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        due_ms = moved_to(call.body, call.now_ms)
        found = control.get_group(group)
        view = retries.get_retry(group=found, message_id=message_id)
        version = expected_version(call.request, view)
        return _told(
            retries.move_retry(
                group=found,
                message_id=message_id,
                due_ms=due_ms,
                by=call.caller.by,
                expected_version=version,
            )
        )


class RetryNowView(ApiView):
    """`/groups/{group}/retries/{id}/deliver-now`."""

    @endpoint(
        "Try a message again now",
        scopes=(CONSUME,),
        takes=NoFields,
        body_optional=True,
        gives={200: RetryDetail},
        codes=(*_CODES, Code.TOO_LATE, Code.MESSAGE_CANCELLED, *_STORE_CODES),
    )
    def post(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        return _told(
            retries.move_retry(
                group=control.get_group(group),
                message_id=message_id,
                due_ms=call.now_ms,
                by=call.caller.by,
            )
        )


def _told(view: MessageView) -> HttpResponse:
    record = view.record
    body, encoding = show_body(record.decoded_body(), record.flag)
    detail = RetryDetail(
        **_fields(view),
        body=body,
        encoding=encoding,
        properties=user_properties(record.properties),
    )
    return answer(detail, headers={"ETag": f'"{view.version}"'})


def _fields(view: MessageView) -> dict[str, Any]:
    record = view.record
    tail = tail_of(record.properties)
    return {
        "id": view.id,
        "topic": view.topic if tail is None else tail.topic,
        "queue": view.queue_id if tail is None else tail.queue_id,
        "tag": record.tag,
        "keys": list(record.keys),
        "state": view.state,
        "attempt": record.reconsume_times + 1,
        "due_at": format_moment(view.due_ms),
        "due_at_ms": view.due_ms,
        "delivered_at": moment_or_none(view.delivered_ms),
        "delivered_at_ms": view.delivered_ms,
        "version": view.version,
        "failures": [] if tail is None else tell_failures(tail.failures),
    }
