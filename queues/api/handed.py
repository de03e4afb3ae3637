"""What a `receive` hands out: each record taken apart by its fixed places, no further than needed.

A record of this store (version 1, IPv4 hosts, not compressed) is read by the places of RocketMQ's
layout; any other by `decode_record`, which says the same of it and takes six times as long. A test
compares the two.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from queues.api.bodyform import show_body
from queues.api.shapes.consuming import ReceivedMessage
from queues.moments import format_moment
from queues.store.chaintail import tail_of
from queues.store.consuming import Delivery
from queues.store.properties import (
    KEYS,
    NAME_END,
    OWN_PREFIX,
    PAIR_END,
    PD_DUE,
    PD_KIND,
    RESERVED_NAMES,
    TAGS,
    UNIQ_KEY,
)
from queues.store.record import (
    MAGIC_V1,
    SYS_FLAG_BORN_HOST_V6,
    SYS_FLAG_COMPRESSED,
    SYS_FLAG_STORE_HOST_V6,
    decode_record,
)

#: Of a record's first 88 bytes: magic, flag, system flag, store time, length of the body.
_PLACES = Struct(">4xI8xi16xi16xq20xi")
_FIXED_BYTES = 88
#: Compressed, or a host of 16 bytes: the places differ, or the body does.
_UNUSUAL_FLAGS = SYS_FLAG_COMPRESSED | SYS_FLAG_BORN_HOST_V6 | SYS_FLAG_STORE_HOST_V6
_HALVES = 2


class Parts(NamedTuple):
    """Of a record, what a consumer is told."""

    flag: int
    store_ms: int
    body: bytes
    properties: dict[str, str]


def parts_of(raw: bytes) -> Parts:
    """The parts of a record whose checksums were looked at."""
    magic, flag, system_flag, store_ms, body_bytes = _PLACES.unpack_from(raw)
    if magic == MAGIC_V1 and not system_flag & _UNUSUAL_FLAGS:
        body_end = _FIXED_BYTES + body_bytes
        text = raw[body_end + 3 + raw[body_end] :].decode("utf-8", "replace")
        pairs = [pair.split(NAME_END, 1) for pair in text[:-1].split(PAIR_END)]
        # Ours are pairs, each of them ended; a broker's may lack a half or the last end.
        if text.endswith(PAIR_END) and all(len(pair) == _HALVES for pair in pairs):
            return Parts(flag, store_ms, raw[_FIXED_BYTES:body_end], dict(pairs))
    record = decode_record(raw, verify=False)
    return Parts(record.flag, record.store_ms, record.decoded_body(), record.properties)


def tell_deliveries(deliveries: Iterable[Delivery]) -> list[ReceivedMessage]:
    """The messages as `receive` answers them."""
    return [_tell(delivery, parts_of(delivery.record)) for delivery in deliveries]


def _tell(delivery: Delivery, parts: Parts) -> ReceivedMessage:
    properties, delivered_ms = parts.properties, parts.store_ms
    body, encoding = show_body(parts.body, parts.flag)
    due = properties.get(PD_DUE, "")
    due_ms = int(due) if due.isdecimal() else None
    immediate = properties.get(PD_KIND, "").startswith("I")
    tail = tail_of(properties)
    return ReceivedMessage(
        id=properties.get(UNIQ_KEY, ""),
        topic=delivery.topic if tail is None else tail.topic,
        queue=delivery.queue_id if tail is None else tail.queue_id,
        body=body,
        encoding=encoding,
        tag=properties.get(TAGS),
        keys=[key for key in properties.get(KEYS, "").split(" ") if key],
        properties={
            name: value
            for name, value in properties.items()
            if name not in RESERVED_NAMES and not name.startswith(OWN_PREFIX)
        },
        attempt=delivery.attempt,
        receipt=delivery.receipt,
        due_at=None if due_ms is None else format_moment(due_ms),
        due_at_ms=due_ms,
        delivered_at=format_moment(delivered_ms),
        delivered_at_ms=delivered_ms,
        lateness_ms=0 if immediate else None if due_ms is None else delivered_ms - due_ms,
        lease_expires_at=format_moment(delivery.lease_expires_ms),
        lease_expires_at_ms=delivery.lease_expires_ms,
    )
