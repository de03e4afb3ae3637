"""Sends: one message, or up to a thousand at once."""

import msgspec
from django.http import HttpResponse
from msgspec import UNSET

from queues import wires
from queues.api.answers import answer
from queues.api.bodyform import take_body
from queues.api.codec import decode_body
from queues.api.endpoint import SEND, Call, endpoint
from queues.api.shapes.sending import (
    KIND_WORDS,
    BatchAnswer,
    BatchRequest,
    BatchResult,
    SendRequest,
    SentMessage,
    send_decoder,
)
from queues.api.views import ApiView
from queues.codes import Code
from queues.limits import BATCH_MESSAGES_MAX
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors.control import TopicView
from queues.services.delays import AT_ONCE, resolve_delay
from queues.services.sending import compose, place
from queues.services.topics import topic_for_send
from queues.store import Outgoing, Placed

_CODES = (
    Code.BODY_REQUIRED,
    Code.CONFLICTING_DELAY,
    Code.DELAY_INVALID,
    Code.TOPIC_NOT_FOUND,
    Code.NAME_INVALID,
    Code.NAME_RESERVED,
    Code.TAG_INVALID,
    Code.KEY_INVALID,
    Code.PROPERTY_INVALID,
    Code.PROPERTY_RESERVED,
    Code.PROPERTIES_TOO_LARGE,
    Code.BODY_TOO_LARGE,
    Code.BODY_INVALID,
    Code.DELAY_LEVEL_UNKNOWN,
    Code.DELAY_OUT_OF_RANGE,
    Code.QUEUE_UNKNOWN,
    Code.QUEUE_CONFLICT,
    Code.IDEMPOTENCY_UNSUPPORTED,
    Code.STORE_FULL,
    Code.STORE_CLOSING,
    Code.STORE_FAILED,
)


class SendView(ApiView):
    """`/topics/{topic}/messages`."""

    @endpoint(
        "Send a message", scopes=(SEND,), takes=SendRequest, gives={201: SentMessage}, codes=_CODES
    )
    def post(self, call: Call, topic: str) -> HttpResponse:
        if "HTTP_IDEMPOTENCY_KEY" in call.request.META:
            raise _no_idempotency("Idempotency-Key")
        call.caller.require_topic(topic)
        target = topic_for_send(topic)
        unique_id = wires.wiring().get_store().new_id(target.name, call.now_ms)
        message = _message(call.body, target, unique_id, call)
        (placed,) = place([message])
        headers = {"Location": f"/api/v1/messages/{unique_id}", "ETag": '"1"'}
        return answer(_tell(message, placed), status=201, headers=headers)


class BatchView(ApiView):
    """`/topics/{topic}/messages/batch`."""

    @endpoint(
        "Send up to 1000 messages",
        scopes=(SEND,),
        takes=BatchRequest,
        gives={200: BatchAnswer},
        codes=(Code.IDEMPOTENCY_KEY_ON_BATCH, Code.OUT_OF_BOUNDS, *_CODES),
    )
    def post(self, call: Call, topic: str) -> HttpResponse:
        if "HTTP_IDEMPOTENCY_KEY" in call.request.META:
            detail = "The items of a batch carry `idempotency_key` of their own."
            raise Problem(Code.IDEMPOTENCY_KEY_ON_BATCH, detail)
        raws = call.body.messages
        if not 1 <= len(raws) <= BATCH_MESSAGES_MAX:
            detail = f"A batch has 1 to {BATCH_MESSAGES_MAX} messages."
            raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/messages")
        call.caller.require_topic(topic)
        target = topic_for_send(topic)
        unique_ids = wires.wiring().get_store().new_ids(target.name, call.now_ms, len(raws))
        return answer(BatchAnswer(_send_batch(raws, unique_ids, target, call)))


def _send_batch(
    raws: list[msgspec.Raw], unique_ids: list[str], topic: TopicView, call: Call
) -> list[BatchResult]:
    results: list[BatchResult | None] = []
    good: list[Outgoing] = []
    for index, (raw, unique_id) in enumerate(zip(raws, unique_ids, strict=True)):
        try:
            request = _decode_item(raw)
            good.append(_message(request, topic, unique_id, call))
            results.append(None)
        except Problem as problem:
            results.append(_refused(problem, index))
    placed = zip(good, place(good), strict=True) if good else iter(())
    return [result if result is not None else _tell_item(*next(placed)) for result in results]


def _decode_item(raw: msgspec.Raw) -> SendRequest:
    try:
        return send_decoder.decode(raw)
    except (ValueError, RecursionError):
        return decode_body(send_decoder, bytes(raw))  # Again, to say what is wrong.


def _message(request: SendRequest, topic: TopicView, unique_id: str, call: Call) -> Outgoing:
    if request.idempotency_key is not None:
        raise _no_idempotency("/idempotency_key")
    body, form = take_body(request.body, request.encoding)
    due = resolve_delay(
        delay_level=request.delay_level,
        delay=request.delay,
        delay_ms=request.delay_ms,
        delay_seconds=request.delay_seconds,
        deliver_at=request.deliver_at,
        now_ms=call.now_ms,
        rules=wires.wiring().get_rules(),
    )
    return compose(
        topic=topic,
        unique_id=unique_id,
        body=body,
        form=form,
        by=call.caller.by,
        now_ms=call.now_ms,
        due=due or AT_ONCE,
        tag=request.tag,
        keys=request.keys,
        properties=request.properties,
        queue=request.queue,
        sharding_key=request.sharding_key,
    )


def _tell(message: Outgoing, placed: Placed) -> SentMessage:
    kind = placed.kind
    return SentMessage(
        id=message.unique_id,
        topic=message.topic,
        queue=message.queue_id,
        state="ready" if kind == "I" else "scheduled",
        kind=KIND_WORDS[kind],
        delay_level=message.level if kind == "L" else UNSET,
        due_at=format_moment(placed.due_ms),
        due_at_ms=placed.due_ms,
        created_at=format_moment(message.born_ms),
        created_at_ms=message.born_ms,
    )


def _tell_item(message: Outgoing, placed: Placed) -> BatchResult:
    kind = placed.kind
    return BatchResult(
        status=201,
        id=message.unique_id,
        topic=message.topic,
        queue=message.queue_id,
        state="ready" if kind == "I" else "scheduled",
        kind=KIND_WORDS[kind],
        delay_level=message.level if kind == "L" else UNSET,
        due_at=format_moment(placed.due_ms),
        due_at_ms=placed.due_ms,
        created_at=format_moment(message.born_ms),
        created_at_ms=message.born_ms,
        version=1,
    )


def _refused(problem: Problem, index: int) -> BatchResult:
    return BatchResult(
        status=problem.code.status,
        code=problem.code.word,
        detail=problem.detail,
        pointer=f"/messages/{index}{problem.pointer or ''}",
    )


def _no_idempotency(pointer: str) -> Problem:
    detail = "Nothing was sent: this version cannot promise that a repeat is stored once."
    return Problem(Code.IDEMPOTENCY_UNSUPPORTED, detail, pointer=pointer)
