"""The chain tail: what retry and dead-letter records say of their message's way so far.

It ends a record's own properties, and each link of the chain writes it anew:

=====================  ==========================================================================
property               value
=====================  ==========================================================================
``RETRY_TOPIC``        the topic that the message was sent to (RocketMQ's name, set once)
``ORIGIN_MESSAGE_ID``  RocketMQ's offset id of the record that was consumed first
``PD_ORIGIN``          queue and offset in that topic
``PD_FAILURES``        JSON ``[[attempt, at_ms, reason, consumer], …]`` since it was (re)driven
``PD_LINEAGE``         JSON ``[[died_ms, attempts, reason, redriven_ms, by], …]``, earlier deaths
``PD_FORMER``          log offset of the dead letter that this one replaces
``PD_LEDGER``          the ledger entry that this record settles (`queues.store.marks`)
=====================  ==========================================================================

Both lists are bounded in bytes, so that every link fits a record: the newest reason is kept whole,
older ones are cut, and then the oldest but the first go.

Example: ``split_own(b"TAGS\\x01a\\x02RETRY_TOPIC\\x01orders\\x02")`` is ``b"TAGS\\x01a\\x02"`` and
a tail of topic ``orders``.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from queues.store.properties import decode_properties

RETRY_TOPIC, ORIGIN_MESSAGE_ID = "RETRY_TOPIC", "ORIGIN_MESSAGE_ID"
PD_ORIGIN, PD_FAILURES, PD_LINEAGE = "PD_ORIGIN", "PD_FAILURES", "PD_LINEAGE"
_TAIL = f"{RETRY_TOPIC}\x01".encode()
#: So that tag, keys, the user's properties and two topics fit beside them (32 KiB in all).
_FAILURES_BYTES_MAX, _LINEAGE_BYTES_MAX = 3_072, 1_024
_REASON_BYTES_MAX, _OLD_REASON_BYTES_MAX = 1_500, 120
#: 127.0.0.1 and port 0, as the records' host fields say.
_HOST_HEX = "7F00000100000000"


class Failure(NamedTuple):
    """One attempt that failed."""

    #: From 1.
    attempt: int
    #: When it was given up, wall time in ms.
    at_ms: int
    #: What its consumer said, or that its lease ran out.
    reason: str | None = None
    consumer_id: str | None = None


class Death(NamedTuple):
    """A dead letter that was redriven."""

    died_ms: int
    #: Deliveries before it.
    attempts: int
    #: The last failure's reason.
    reason: str | None
    redriven_ms: int
    by: str | None


class ChainTail(NamedTuple):
    """What a chain's records say of their message's way."""

    #: The topic that the message was sent to.
    topic: str
    origin_message_id: str
    #: Queue and offset in that topic.
    queue_id: int
    queue_offset: int
    failures: tuple[Failure, ...] = ()
    #: Earlier deaths, oldest first.
    lineage: tuple[Death, ...] = ()

    def encode(self) -> bytes:
        """The properties, without the mark."""
        text = (
            f"{RETRY_TOPIC}\x01{self.topic}\x02{ORIGIN_MESSAGE_ID}\x01{self.origin_message_id}\x02"
            f"{PD_ORIGIN}\x01{self.queue_id} {self.queue_offset}\x02"
        )
        if self.failures:
            text += f"{PD_FAILURES}\x01{_bounded(self.failures, _FAILURES_BYTES_MAX)}\x02"
        if self.lineage:
            text += f"{PD_LINEAGE}\x01{_bounded(self.lineage, _LINEAGE_BYTES_MAX)}\x02"
        return text.encode("utf-8", "replace")


def begin_tail(topic: str, queue_id: int, queue_offset: int, log_offset: int) -> ChainTail:
    """The tail of a message that failed for the first time."""
    return ChainTail(topic, f"{_HOST_HEX}{log_offset:016X}", queue_id, queue_offset)


def split_own(own: bytes) -> tuple[bytes, ChainTail | None]:
    """A record's own properties without the chain's, and the chain's; None where there is none."""
    at = 0 if own.startswith(_TAIL) else own.find(b"\x02" + _TAIL) + 1
    if not at and not own.startswith(_TAIL):
        return own, None
    return own[:at], tail_of(decode_properties(own[at:]))


def tail_of(properties: dict[str, str]) -> ChainTail | None:
    """The chain's part of a record's properties."""
    topic = properties.get(RETRY_TOPIC)
    if topic is None:
        return None
    queue_id, _, offset = properties.get(PD_ORIGIN, "0 0").partition(" ")
    return ChainTail(
        topic,
        properties.get(ORIGIN_MESSAGE_ID, ""),
        int(queue_id),
        int(offset),
        tuple(Failure(*one) for one in _rows(properties.get(PD_FAILURES))),
        tuple(Death(*one) for one in _rows(properties.get(PD_LINEAGE))),
    )


def origin_topic_of(own: bytes) -> str | None:
    """The topic that a chain's message was sent to."""
    at = 0 if own.startswith(_TAIL) else own.find(b"\x02" + _TAIL) + 1
    if not at and not own.startswith(_TAIL):
        return None
    start = at + len(_TAIL)
    return own[start : own.index(b"\x02", start)].decode()


def _rows(text: str | None) -> list[Any]:
    found = json.loads(text) if text else []
    return found if isinstance(found, list) else []


def _bounded(rows: Sequence[Failure | Death], bytes_max: int) -> str:
    """The rows as JSON, within so many bytes."""
    kept: list[list[Any]] = [list(row) for row in rows]
    for number, row in enumerate(kept):
        newest = number == len(kept) - 1
        row[2] = _cut(row[2], _REASON_BYTES_MAX if newest else _OLD_REASON_BYTES_MAX)
        row[-1] = _cut(row[-1], _OLD_REASON_BYTES_MAX)
    while len(text := json.dumps(kept, ensure_ascii=False, separators=(",", ":"))) and (
        len(text.encode("utf-8", "replace")) > bytes_max
    ):
        if len(kept) > 2:  # noqa: PLR2004 (the first and the newest)
            del kept[1]
        else:
            kept[-1][2] = _cut(kept[-1][2], len((kept[-1][2] or "").encode()) * 2 // 3)
    return text


def _cut(reason: str | None, bytes_max: int) -> str | None:
    if reason is None:
        return None
    encoded = reason.encode("utf-8", "replace")
    return encoded[:bytes_max].decode("utf-8", "ignore")
