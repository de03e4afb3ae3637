"""Lists of messages: what waits, and what is parked."""

from typing import Any

import msgspec
from django.http import HttpResponse
from msgspec import UNSET

from queues import wires
from queues.api.answers import answer
from queues.api.codec import moment_in_query
from queues.api.endpoint import INSPECT, MANAGE, SEND, Call, endpoint
from queues.api.shapes.messages import (
    Cancelled,
    MessageDetail,
    MessageList,
    MessageQuery,
    NoFields,
    PageQuery,
)
from queues.api.telling import tell_message, tell_summary
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.problems import Problem
from queues.selectors.listing import Filter, list_messages
from queues.selectors.messages import require_visible
from queues.selectors.scheduled import Window
from queues.services import changes
from queues.store.limits import DUE_MS_MAX

_FILTERS = (
    "List state=scheduled by any filters, a key in any state, or another state with a topic and "
    "due_after or due_before."
)


class MessagesView(ApiView):
    """`/messages`."""

    @endpoint(
        "List messages",
        scopes=(SEND, INSPECT),
        query=MessageQuery,
        gives={200: MessageList},
        codes=(Code.FILTER_UNSUPPORTED, Code.PAGE_TOKEN_INVALID, Code.DELAY_INVALID),
    )
    def get(self, call: Call) -> HttpResponse:
        query: MessageQuery = call.query
        wanted = _filter(query)
        listing = ["messages", *_values(query)]
        listed = list_messages(
            wanted,
            caller=call.caller,
            position=read_token(listing, query.page_token),
            limit=page_size_of(query.page_size),
        )
        token = "" if listed.last is None else make_token(listing, listed.last)
        return answer(
            MessageList(
                items=[tell_summary(view) for view in listed.views],
                next_page_token=token,
                count=listed.count if listed.exact else UNSET,
                count_at_least=UNSET if listed.exact else listed.count,
            )
        )


class ParkedView(ApiView):
    """`/parked`."""

    @endpoint(
        "List messages that could not be handed over",
        scopes=(INSPECT,),
        query=PageQuery,
        gives={200: MessageList},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        store = wires.wiring().get_store()
        size = page_size_of(call.query.page_size)
        position = read_token(["parked"], call.query.page_token)
        parked = store.parked(limit=_PARKED_MAX)
        seen = [view for view in parked if call.caller.topics.allow(view.topic)]
        ids = [view.id for view in seen]
        start = 0
        if position is not None:
            # One that was released or cancelled meanwhile has no place any more.
            last, number = position
            start = ids.index(last) + 1 if last in ids else min(number, len(ids))
        page = seen[start : start + size]
        more = len(seen) > start + size
        return answer(
            MessageList(
                items=[tell_summary(view) for view in page],
                next_page_token=make_token(["parked"], [page[-1].id, start + size - 1])
                if more
                else "",
                count=len(seen) if len(parked) < _PARKED_MAX else UNSET,
                count_at_least=len(seen) if len(parked) >= _PARKED_MAX else UNSET,
            )
        )


class OneParkedView(ApiView):
    """`/parked/{id}`."""

    @endpoint(
        "Cancel a parked message",
        scopes=(MANAGE,),
        gives={200: Cancelled},
        codes=(Code.MESSAGE_NOT_FOUND, Code.NOT_PARKED, Code.TOO_LATE, Code.PAYLOAD_GONE),
    )
    def delete(self, call: Call, message_id: str) -> HttpResponse:
        require_visible(message_id, caller=call.caller)
        view = wires.wiring().get_store().find(message_id)
        if view is not None and view.state not in ("parked", "cancelled"):
            raise Problem(Code.NOT_PARKED)
        decision = changes.cancel_message(message_id=message_id, by=call.caller.by)
        return answer(Cancelled(outcome=decision.outcome))  # type: ignore[arg-type]


class ReleaseView(ApiView):
    """`/parked/{id}/release`."""

    @endpoint(
        "Let a parked message go on",
        scopes=(MANAGE,),
        takes=NoFields,
        body_optional=True,
        gives={200: MessageDetail},
        codes=(Code.MESSAGE_NOT_FOUND, Code.NOT_PARKED, Code.PAYLOAD_GONE),
    )
    def post(self, call: Call, message_id: str) -> HttpResponse:
        require_visible(message_id, caller=call.caller)
        view = changes.release_message(message_id=message_id, by=call.caller.by)
        told = tell_message(view, call.caller.groups)
        return answer(told, headers={"ETag": f'"{view.version}"'})


#: Parked messages that a list looks at; there are few, or something is badly wrong.
_PARKED_MAX = 10_000


def _filter(query: MessageQuery) -> Filter:
    after_ms, before_ms = _moment("due_after", query), _moment("due_before", query)
    bounded = query.topic is not None and (after_ms is not None or before_ms is not None)
    if query.state != "scheduled" and query.key is None:
        if query.state is None or not bounded:
            raise Problem(Code.FILTER_UNSUPPORTED, _FILTERS, pointer="state")
        if query.state == "expired":
            detail = "An expired message is gone; it is counted, not listed."
            raise Problem(Code.FILTER_UNSUPPORTED, detail, pointer="state")
    if query.kind == "immediate" and query.state in ("scheduled", "cancelled", "parked"):
        detail = "An immediate message never waits; kind is level or timed."
        raise Problem(Code.FILTER_UNSUPPORTED, detail, pointer="kind")
    window = Window(
        topic=query.topic,
        kind=query.kind,
        due_from_ms=0 if after_ms is None else max(0, min(after_ms, DUE_MS_MAX)),
        due_before_ms=DUE_MS_MAX if before_ms is None else max(0, min(before_ms, DUE_MS_MAX)),
    )
    return Filter(window, state=query.state, key=query.key, tag=query.tag)


def _moment(field: str, query: MessageQuery) -> int | None:
    return moment_in_query(field, getattr(query, field))


def _values(query: MessageQuery) -> list[Any]:
    """The filters, without what only chooses the page."""
    values = msgspec.to_builtins(query)
    return [[name, value] for name, value in values.items() if not name.startswith("page_")]
