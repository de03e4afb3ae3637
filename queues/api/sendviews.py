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
from queues.naming import check_idempotency_key
from queues.problems import Problem
from queues.selectors.control import TopicView
from queues.services.congestion import Admission
from queues.services.delays import AT_ONCE, resolve_delay
from queues.services.quotas import use_messages
from queues.services.sending import (
    compose,
    is_repeat,
    key_of,
    once,
    place,
    place_once,
    reused,
)
from queues.services.topics import made, topic_for_send
from queues.store import Once, Outgoing, Placed, Repeat
from queues.wires import Rules

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
    Code.IDEMPOTENCY_KEY_INVALID,
    Code.IDEMPOTENCY_KEY_REUSED,
    Code.SLOT_CONGESTED,
    Code.STORE_FULL,
    Code.STORE_CLOSING,
    Code.STORE_FAILED,
)


_HEADER, _FIELD = "Idempotency-Key", "/idempotency_key"
_HEADER_META = "HTTP_IDEMPOTENCY_KEY"
_IDEMPOTENCY_KEY = {
    _HEADER: "Chosen by the client: a repeat within 24 h with the same key and payload stores "
    "nothing and is answered as the first was, with `Idempotency-Replayed: true`."
}


class SendView(ApiView):
    """`/topics/{topic}/messages`."""

    @endpoint(
        "Send a message", scopes=(SEND,), takes=SendRequest, gives={201: SentMessage},
        codes=_CODES, headers=_IDEMPOTENCY_KEY,
    )  # fmt: skip
    def post(self, call: Call, topic: str) -> HttpResponse:
        call.caller.require_topic(topic)
        target = topic_for_send(topic)
        unique_id = wires.wiring().get_store().new_id(target.name, call.now_ms)
        rules = wires.wiring().get_rules()
        message = _message(call.body, target, unique_id, call, rules)
        has_key = call.body.idempotency_key is not None or _HEADER_META in call.request.META
        if not has_key:
            Admission(call.now_ms).admit(message.due_ms)
        call.standings += use_messages(call.caller, 1, now_ms=call.now_ms)
        if has_key:
            return _send_once(call, target, message)
        made(target)
        (placed,) = place([message])
        return answer(_tell(message, placed), status=201, headers=_headers(unique_id))


def _headers(message_id: str) -> dict[str, str]:
    return {"Location": f"/api/v1/messages/{message_id}", "ETag": '"1"'}


def _send_once(call: Call, topic: TopicView, message: Outgoing) -> HttpResponse:
    """The answer to a send with an idempotency key, its first or a repeat."""
    key, pointer = _key_of(call)
    check_idempotency_key(key, pointer)
    asked = _asked(call.body, message)
    if not is_repeat(once(message=message, topic=topic, key=key, asked=asked)):
        Admission(call.now_ms).admit(message.due_ms)
    request = once(message=message, topic=made(topic), key=key, asked=asked)
    (sent,) = place_once([request])
    if not isinstance(sent, Repeat):
        return answer(_tell(message, sent), status=201, headers=_headers(message.unique_id))
    if sent.fingerprint != request.fingerprint:
        raise reused(key, pointer)
    headers = {**_headers(sent.unique_id), "Idempotency-Replayed": "true"}
    return answer(_tell(*_as_sent(message, sent)), status=201, headers=headers)


def _key_of(call: Call) -> tuple[str, str]:
    """The key and where it was given; a header and a field must agree."""
    field, header = call.body.idempotency_key, call.request.META.get(_HEADER_META)
    if header is None:
        return field, _FIELD
    if field is not None and field != header:
        detail = f"The header {_HEADER} holds another key."
        raise Problem(Code.IDEMPOTENCY_KEY_INVALID, detail, pointer=_FIELD)
    return header, _HEADER


def _asked(request: SendRequest, message: Outgoing) -> bytes:
    """Everything of a request that a repeat of it has the same."""
    return msgspec.msgpack.encode(
        (
            message.body, message.flag, request.tag, request.keys or None,
            sorted((request.properties or {}).items()), request.delay_level, request.delay,
            request.delay_ms, request.delay_seconds, request.deliver_at, request.queue,
            request.sharding_key,
        )
    )  # fmt: skip


def _as_sent(message: Outgoing, first: Repeat) -> tuple[Outgoing, Placed]:
    """What is told of a repeat: what was told of the first."""
    told = message._replace(
        unique_id=first.unique_id, queue_id=first.queue_id, level=first.level,
        born_ms=first.born_ms,
    )  # fmt: skip
    return told, Placed(-1, -1, first.kind, first.due_ms, 0)


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
        call.standings += use_messages(call.caller, len(raws), now_ms=call.now_ms)
        unique_ids = wires.wiring().get_store().new_ids(target.name, call.now_ms, len(raws))
        return answer(BatchAnswer(_send_batch(raws, unique_ids, target, call)))


def _send_batch(
    raws: list[msgspec.Raw], unique_ids: list[str], topic: TopicView, call: Call
) -> list[BatchResult]:
    results: list[BatchResult | None] = []
    good: list[Outgoing] = []
    keyed: dict[int, SendRequest] = {}
    rules, admission = wires.wiring().get_rules(), Admission(call.now_ms)
    for index, (raw, unique_id) in enumerate(zip(raws, unique_ids, strict=True)):
        try:
            request = _decode_item(raw)
            message = _message(request, topic, unique_id, call, rules)
            key = request.idempotency_key
            if key is not None:
                check_idempotency_key(key, _FIELD)
                keyed[len(good)] = request
            if key is None or not _is_repeat(request, message, topic, key):
                admission.admit(message.due_ms)
        except Problem as problem:
            results.append(_refused(problem, index))
        else:
            good.append(message)
            results.append(None)
    if good:
        topic = made(topic)
    if keyed:
        return _send_batch_once(results, good, keyed, topic)
    placed = map(_tell_item, good, place(good)) if good else iter(())
    return [next(placed) if result is None else result for result in results]


def _is_repeat(request: SendRequest, message: Outgoing, topic: TopicView, key: str) -> bool:
    """Whether an item of a batch was stored before, by its idempotency key."""
    return is_repeat(once(message=message, topic=topic, key=key, asked=_asked(request, message)))


def _send_batch_once(
    results: list[BatchResult | None], good: list[Outgoing], keyed: dict[int, SendRequest],
    topic: TopicView,
) -> list[BatchResult]:  # fmt: skip
    """The same for a batch some of whose messages have idempotency keys, by their number."""
    wanted = []
    for number, message in enumerate(good):
        request = keyed.get(number)
        key, asked = (None, b"") if request is None else (
            request.idempotency_key, _asked(request, message)
        )  # fmt: skip
        wanted.append(once(message=message, topic=topic, key=key, asked=asked))
    sent = iter(zip(wanted, place_once(wanted), strict=True))
    told: list[BatchResult] = []
    for index, result in enumerate(results):
        told.append(result if result is not None else _tell_once(*next(sent), index))
    return told


def _tell_once(wanted: Once, sent: Placed | Repeat, index: int) -> BatchResult:
    if not isinstance(sent, Repeat):
        return _tell_item(wanted.message, sent)
    if sent.fingerprint != wanted.fingerprint:
        return _refused(reused(key_of(wanted), _FIELD), index)
    result = _tell_item(*_as_sent(wanted.message, sent))
    result.idempotency_replayed = True
    return result


def _decode_item(raw: msgspec.Raw) -> SendRequest:
    try:
        return send_decoder.decode(raw)
    except (ValueError, RecursionError):
        return decode_body(send_decoder, bytes(raw))  # Again, to say what is wrong.


def _message(
    request: SendRequest, topic: TopicView, unique_id: str, call: Call, rules: Rules
) -> Outgoing:
    body, form = take_body(request.body, request.encoding)
    due = resolve_delay(
        delay_level=request.delay_level,
        delay=request.delay,
        delay_ms=request.delay_ms,
        delay_seconds=request.delay_seconds,
        deliver_at=request.deliver_at,
        now_ms=call.now_ms,
        rules=rules,
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
        maximum=problem.extra.get("maximum", UNSET),
        maximum_ms=problem.extra.get("maximum_ms", UNSET),
        nearest_free_at=problem.extra.get("nearest_free_at", UNSET),
        nearest_free_at_ms=problem.extra.get("nearest_free_at_ms", UNSET),
        retry_after_seconds=problem.retry_after_s or UNSET,
    )
