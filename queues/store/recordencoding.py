"""Making the bytes of a record, for export, for tests, and wherever one record at a time will do.

The store's own writers do not come through here: they encode in batches (``batch``).
"""

from collections.abc import Mapping

from queues.store.crc import crc32
from queues.store.hosts import HOST_BYTES_V6, encode_host
from queues.store.properties import encode_properties
from queues.store.record import (
    BORN_HOST_AT,
    CRC_MASK,
    CRC_PROPERTY_BYTES,
    HEAD,
    MAGIC_FILLER,
    MAGIC_V1,
    MAGIC_V2,
    MIDDLE,
    PROPERTIES_BYTES_MAX,
    SIZE_AND_MAGIC,
    SYS_FLAG_BORN_HOST_V6,
    SYS_FLAG_STORE_HOST_V6,
    TOPIC_BYTES_MAX_V1,
    crc_property,
)


def encode_record(
    *,
    topic: str,
    queue_id: int,
    queue_offset: int,
    log_offset: int,
    body: bytes,
    born_ms: int,
    store_ms: int,
    properties: Mapping[str, str] | None = None,
    flag: int = 0,
    sys_flag: int = 0,
    born_host: str = "127.0.0.1:0",
    store_host: str = "127.0.0.1:0",
    reconsume_times: int = 0,
    prepared_offset: int = 0,
    property_crc: bool = True,
) -> bytes:
    """Return the record's bytes; the IPv6 bits of ``sys_flag`` follow the hosts.

    Raises ``ValueError`` for a topic or properties longer than the format can hold.
    """
    topic_bytes = topic.encode()
    magic, topic_head = _topic_head(topic_bytes)
    property_bytes = encode_properties(properties or {})
    property_length = _checked_length(len(property_bytes), property_crc)
    born, stored = encode_host(born_host), encode_host(store_host)
    sys_flag = _with_host_bits(sys_flag, born, stored)
    tail = b"".join(
        (
            born,
            store_ms.to_bytes(8, "big", signed=True),
            stored,
            MIDDLE.pack(reconsume_times, prepared_offset, len(body)),
            body,
            topic_head,
            topic_bytes,
            property_length.to_bytes(2, "big"),
            property_bytes,
        )
    )
    size = BORN_HOST_AT + len(tail) + (CRC_PROPERTY_BYTES if property_crc else 0)
    body_crc = crc32(body) & CRC_MASK
    head = HEAD.pack(
        *(size, magic, body_crc, queue_id, flag, queue_offset, log_offset, sys_flag, born_ms)
    )
    whole = head + tail
    return whole + crc_property(crc32(whole)) if property_crc else whole


def encode_filler(size: int) -> bytes:
    """Return the 8 bytes that begin a filler over the last ``size`` bytes of a segment."""
    return SIZE_AND_MAGIC.pack(size, MAGIC_FILLER)


def _checked_length(property_bytes: int, property_crc: bool) -> int:
    length = property_bytes + (CRC_PROPERTY_BYTES if property_crc else 0)
    if length > PROPERTIES_BYTES_MAX:
        message = f"the properties take {length} bytes, {PROPERTIES_BYTES_MAX} at most"
        raise ValueError(message)
    return length


def _with_host_bits(sys_flag: int, born: bytes, stored: bytes) -> int:
    sys_flag &= ~(SYS_FLAG_BORN_HOST_V6 | SYS_FLAG_STORE_HOST_V6)
    sys_flag |= SYS_FLAG_BORN_HOST_V6 if len(born) == HOST_BYTES_V6 else 0
    sys_flag |= SYS_FLAG_STORE_HOST_V6 if len(stored) == HOST_BYTES_V6 else 0
    return sys_flag


def _topic_head(topic: bytes) -> tuple[int, bytes]:
    if len(topic) <= TOPIC_BYTES_MAX_V1:
        return MAGIC_V1, len(topic).to_bytes(1, "big")
    if len(topic) > PROPERTIES_BYTES_MAX:
        message = f"the topic takes {len(topic)} bytes, {PROPERTIES_BYTES_MAX} at most"
        raise ValueError(message)
    return MAGIC_V2, len(topic).to_bytes(2, "big")
