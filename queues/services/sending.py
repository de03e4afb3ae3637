"""Sending: messages as clients ask for them become records of the store.

`compose` checks one message and makes what the store takes; `place` stores many at once. Neither
makes a query: topics and rules come from memory.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

from queues import wires
from queues.codes import Code
from queues.naming import check_keys, check_properties, check_sharding_key, check_tag
from queues.problems import Problem
from queues.selectors.control import TopicView
from queues.services.bodies import check_size
from queues.services.delays import AT_ONCE, Due
from queues.services.topics import choose_queue
from queues.store import Once, Outgoing, Placed, Repeat
from queues.store.errors import MessageIllegal
from queues.store.limits import USER_PROPERTIES_MAX
from queues.store.properties import SHARDING_KEY

#: `Outgoing` of a tuple of all its fields, in half the time of `Outgoing` itself.
_outgoing = partial(tuple.__new__, Outgoing)


def compose(
    *,
    topic: TopicView,
    unique_id: str,
    body: bytes,
    form: int,
    by: str,
    now_ms: int,
    due: Due = AT_ONCE,
    tag: str | None = None,
    keys: Sequence[str] | None = None,
    properties: Mapping[str, str] | None = None,
    queue: int | None = None,
    sharding_key: str | None = None,
) -> Outgoing:
    """The message that the store is to take; raises the problem of the first wrong field."""
    check_size(body)
    if tag is not None:
        check_tag(tag)
    if keys:
        check_keys(keys)
    if properties:
        check_properties(properties)
    queue_id = choose_queue(topic, queue=queue, sharding_key=sharding_key)
    if sharding_key is not None:
        properties = _with_sharding_key(properties or {}, sharding_key)
    return _outgoing(
        (
            topic.name, queue_id, unique_id, body, now_ms, tag, tuple(keys) if keys else (),
            properties or {}, due.level, due.due_ms, form, by,
        )
    )  # fmt: skip


def place(messages: Sequence[Outgoing]) -> list[Placed]:
    """Store the messages, all of them or (with an error) none; the answer is durable."""
    try:
        return wires.wiring().get_store().send(messages)
    except MessageIllegal as illegal:
        raise Problem(Code.FIELD_INVALID, f"{illegal}", pointer="") from illegal


def place_once(messages: Sequence[Once]) -> list[Placed | Repeat]:
    """Store what was not stored before under the same key; what became of each, durably.

    A `Repeat` whose fingerprint is another's is the caller's to refuse (`reused`).
    """
    try:
        return wires.wiring().get_store().once.send(messages)
    except MessageIllegal as illegal:
        raise Problem(Code.FIELD_INVALID, f"{illegal}", pointer="") from illegal


def is_repeat(request: Once) -> bool:
    """Whether its key was used before."""
    return wires.wiring().get_store().once.is_repeat(request)


def once(*, message: Outgoing, topic: TopicView, key: str | None, asked: bytes) -> Once:
    """The message with its idempotency key; `asked` is everything that a repeat has the same.

    The key is the topic's own: one that was deleted and made anew knows none of before.
    """
    if key is None:
        return Once(message, None, "")
    digest = hashlib.blake2b(asked, digest_size=16, person=b"idempotency").hexdigest()
    return Once(message, f"{key}@{topic.created_ms:x}", digest)


def key_of(wanted: Once) -> str:
    """The idempotency key as its sender gave it."""
    return (wanted.key or "").rpartition("@")[0]


def reused(key: str, pointer: str) -> Problem:
    """The refusal of a key that was used for another message."""
    detail = f"{key!r} was used for another message in the last 24 hours."
    return Problem(Code.IDEMPOTENCY_KEY_REUSED, detail, pointer=pointer)


def _with_sharding_key(properties: Mapping[str, str], key: str) -> Mapping[str, str]:
    check_sharding_key(key)
    if len(properties) >= USER_PROPERTIES_MAX:
        detail = f"With a sharding key at most {USER_PROPERTIES_MAX - 1} properties."
        raise Problem(Code.PROPERTIES_TOO_LARGE, detail, pointer="/properties")
    return {SHARDING_KEY: key, **properties}
