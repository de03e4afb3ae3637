"""A record's properties: name and value pairs in one UTF-8 text, ``name 0x01 value 0x02 ...``.

Order is kept. RocketMQ readers accept a last pair without its 0x02, and so does ``decode``. Neither
name nor value can hold the separators, nor NUL: NUL in a record's properties means that the record
was torn (a hole in a write that did not finish).

Example: ``encode_properties({"TAGS": "paid"}) == b"TAGS\\x01paid\\x02"``.
"""

from collections.abc import Mapping
from typing import Final

NAME_END: Final = "\x01"
PAIR_END: Final = "\x02"

UNIQ_KEY: Final = "UNIQ_KEY"
TAGS: Final = "TAGS"
KEYS: Final = "KEYS"
DELAY: Final = "DELAY"
#: The key that orders messages among themselves.
SHARDING_KEY: Final = "__SHARDINGKEY"
WAIT: Final = "WAIT"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QID: Final = "REAL_QID"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"
PD_DUE: Final = "PD_DUE"
PD_FROM: Final = "PD_FROM"
PD_KIND: Final = "PD_KIND"
PD_VERSION: Final = "PD_VERSION"
PD_EVENT: Final = "PD_EVENT"
PD_BY: Final = "PD_BY"
PD_IDEMPOTENCY: Final = "PD_IDEMPOTENCY"
#: RocketMQ's optional last property: a CRC of the whole record before it.
PROPERTY_CRC: Final = "__CRC32#"

OWN_PREFIX: Final = "PD_"

#: Names that RocketMQ or this store give a meaning; users' properties may not have them.
RESERVED_NAMES: Final[frozenset[str]] = frozenset(
    {
        *(UNIQ_KEY, TAGS, KEYS, DELAY, WAIT, REAL_TOPIC, REAL_QID),
        *(TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_OUT_MS, TIMER_DEL_UNIQKEY),
        *("TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES"),
        *(PD_DUE, PD_FROM, PD_KIND, PD_VERSION, PD_EVENT, PD_BY, PD_IDEMPOTENCY, PROPERTY_CRC),
        *("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES"),
        *("DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID", "CONSUME_START_TIME"),
        *("TRAN_MSG", "PGROUP", "TRAN_PREPARED_QUEUE_OFFSET", "__transactionId__"),
        *("CHECK_IMMUNITY_TIME_IN_SECONDS", "TRANSACTION_CHECK_TIMES"),
        *("MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG"),
        *("MSG_REGION", "TRACE_ON", "TRACE_CONTEXT", "EXTEND_UNIQ_INFO", "INSTANCE_ID", "CLUSTER"),
        *("POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME", "FORWARD_QUEUE_ID", "REDIRECT"),
        *("CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME", "MSG_TYPE"),
        *("INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET", "INNER_NUM", "INNER_BASE"),
        *("DUP_INFO", "BORN_HOST", "BORN_TIMESTAMP", SHARDING_KEY),
    }
)


def is_reserved(name: str) -> bool:
    """Tell whether a property name is refused to users."""
    return name in RESERVED_NAMES or name.startswith(OWN_PREFIX)


def idempotency_text(value: str) -> str:
    """What the index knows a message by that has this value of `PD_IDEMPOTENCY`."""
    return f"IDEMPOTENCY {value.partition(':')[2]}"


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the properties as bytes; raise ``ValueError`` if a separator or NUL is inside one."""
    encoded = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    pairs = len(properties)
    if encoded.count(1) != pairs or encoded.count(2) != pairs or encoded.count(0):
        message = "a property name or value holds a separator (0x01, 0x02) or NUL"
        raise ValueError(message)
    return encoded


def decode_properties(encoded: bytes) -> dict[str, str]:
    """Return the properties in their order; malformed UTF-8 is replaced, as Java does.

    A pair without 0x01 is left out, as RocketMQ does; of a repeated name the last value holds.
    """
    properties: dict[str, str] = {}
    for pair in encoded.decode("utf-8", "replace").split(PAIR_END):
        name, separator, value = pair.partition(NAME_END)
        if separator:
            properties[name] = value
    return properties
