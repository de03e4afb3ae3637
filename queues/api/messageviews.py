"""One message: look at it, cancel it, restore it, move it, deliver it now."""

from django.http import HttpRequest, HttpResponse

from queues import wires
from queues.access import Caller
from queues.api.answers import answer
from queues.api.endpoint import INSPECT, SEND, Call, endpoint
from queues.api.shapes.messages import Cancelled, CancelQuery, MessageDetail, NoFields
from queues.api.shapes.sending import MoveRequest
from queues.api.telling import tell_message
from queues.api.views import ApiView
from queues.codes import Code
from queues.problems import Problem
from queues.selectors.messages import get_message, require_visible
from queues.services import changes
from queues.services.congestion import Admission
from queues.services.delays import resolve_delay
from queues.store import MessageView

_STORE_CODES = (Code.STORE_FULL, Code.STORE_CLOSING, Code.STORE_FAILED)
_IF_MATCH = {"If-Match": "The version that the change was decided on, as its `ETag` shows it."}


class OneMessageView(ApiView):
    """`/messages/{id}`."""

    @endpoint(
        "Look at a message",
        scopes=(SEND, INSPECT),
        gives={200: MessageDetail},
        codes=(Code.MESSAGE_NOT_FOUND,),
    )
    def get(self, call: Call, message_id: str) -> HttpResponse:
        return _told(get_message(message_id, caller=call.caller), call.caller)

    @endpoint(
        "Cancel a message",
        scopes=(SEND,),
        query=CancelQuery,
        gives={200: Cancelled},
        headers=_IF_MATCH,
        codes=(
            Code.MESSAGE_NOT_FOUND,
            Code.TOO_LATE,
            Code.VERSION_MISMATCH,
            Code.PAYLOAD_GONE,
            *_STORE_CODES,
        ),
    )
    def delete(self, call: Call, message_id: str) -> HttpResponse:
        version = None
        if "HTTP_IF_MATCH" in call.request.META:
            view = get_message(message_id, caller=call.caller)
            version = expected_version(call.request, view)
        else:
            require_visible(message_id, caller=call.caller)
        decision = changes.cancel_message(
            message_id=message_id,
            by=call.caller.by,
            reason=call.query.reason,
            expected_version=version,
        )
        return answer(Cancelled(outcome=decision.outcome))  # type: ignore[arg-type]

    @endpoint(
        "Move a message to another time",
        scopes=(SEND,),
        takes=MoveRequest,
        gives={200: MessageDetail},
        headers=_IF_MATCH,
        codes=(
            Code.MESSAGE_NOT_FOUND,
            Code.TOO_LATE,
            Code.MESSAGE_CANCELLED,
            Code.VERSION_MISMATCH,
            Code.CONFLICTING_DELAY,
            Code.DELAY_INVALID,
            Code.DELAY_LEVEL_UNKNOWN,
            Code.DELAY_OUT_OF_RANGE,
            Code.PAYLOAD_GONE,
            Code.SLOT_CONGESTED,
            *_STORE_CODES,
        ),
    )
    def patch(self, call: Call, message_id: str) -> HttpResponse:
        due_ms = moved_to(call.body, call.now_ms)
        view = get_message(message_id, caller=call.caller)
        version = expected_version(call.request, view)
        if view.state in ("scheduled", "parked"):
            Admission(call.now_ms).admit(due_ms, but_slot_of=view.due_ms)
        return _told(
            changes.move_message(
                message_id=message_id,
                due_ms=due_ms,
                by=call.caller.by,
                expected_version=version,
            ),
            call.caller,
        )


class RestoreView(ApiView):
    """`/messages/{id}/restore`."""

    @endpoint(
        "Let a cancelled message wait again",
        scopes=(SEND,),
        takes=NoFields,
        body_optional=True,
        gives={200: MessageDetail},
        codes=(Code.MESSAGE_NOT_FOUND, Code.NOT_CANCELLED, Code.PAYLOAD_GONE, *_STORE_CODES),
    )
    def post(self, call: Call, message_id: str) -> HttpResponse:
        require_visible(message_id, caller=call.caller)
        return _told(changes.restore_message(message_id=message_id, by=call.caller.by), call.caller)


class DeliverNowView(ApiView):
    """`/messages/{id}/deliver-now`."""

    @endpoint(
        "Deliver a message now",
        scopes=(SEND,),
        takes=NoFields,
        body_optional=True,
        gives={200: MessageDetail},
        codes=(
            Code.MESSAGE_NOT_FOUND,
            Code.TOO_LATE,
            Code.MESSAGE_CANCELLED,
            Code.PAYLOAD_GONE,
            *_STORE_CODES,
        ),
    )
    def post(self, call: Call, message_id: str) -> HttpResponse:
        require_visible(message_id, caller=call.caller)
        return _told(
            changes.move_message(message_id=message_id, due_ms=call.now_ms, by=call.caller.by),
            call.caller,
        )


def _told(view: MessageView, caller: Caller) -> HttpResponse:
    return answer(tell_message(view, caller.groups), headers={"ETag": f'"{view.version}"'})


def moved_to(request: MoveRequest, now_ms: int) -> int:
    """When a message that is moved so is due, ms."""
    rules = wires.wiring().get_rules()
    due = resolve_delay(
        delay_level=request.delay_level,
        delay=request.delay,
        delay_ms=request.delay_ms,
        delay_seconds=request.delay_seconds,
        deliver_at=request.deliver_at,
        now_ms=now_ms,
        rules=rules,
    )
    if due is None:
        raise Problem(Code.FIELD_REQUIRED, "Give one of the forms of delay.", pointer="/deliver_at")
    if due.level:
        return now_ms + rules.levels.delay_ms(due.level)
    return now_ms if due.due_ms is None else due.due_ms


def expected_version(request: HttpRequest, view: MessageView) -> int | None:
    """The version that the change rests on; None: any."""
    condition = request.META.get("HTTP_IF_MATCH", "").strip()
    if not condition or condition == "*":
        return None
    tags = {tag.strip().strip('"') for tag in condition.split(",")}
    if str(view.version) in tags:
        return view.version
    detail = f"Its version is {view.version}."
    raise Problem(Code.VERSION_MISMATCH, detail, extra={"version": view.version})
