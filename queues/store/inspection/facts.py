"""What of a record decides where else it must be found: its unit, and its index entries."""

import re
import struct
from typing import Final, NamedTuple

from queues.store.hashes import tags_code
from queues.store.names import SCHEDULE_TOPIC
from queues.store.properties import idempotency_text
from queues.store.record import (
    BODY_AT,
    MAGIC_AT,
    MAGIC_V1,
    SYS_FLAG_BORN_HOST_V6,
    SYS_FLAG_COMMIT,
    SYS_FLAG_INNER_BATCH,
    SYS_FLAG_ROLLBACK,
    SYS_FLAG_STORE_HOST_V6,
    SYS_FLAG_TRANSACTION,
)

#: The tags code of a broker's level record: it hangs on a table that is not in the store.
TAGS_CODE_UNKNOWN: Final = -(2**63)

_HEAD: Final = struct.Struct(">12xi4xq8xi")
_SCHEDULE: Final = SCHEDULE_TOPIC.encode()
#: The properties that matter here; of a repeated one the last holds, as with all readers.
_DECIDING: Final = re.compile(
    rb"\x02(TAGS|KEYS|UNIQ_KEY|DELAY|PD_DUE|PD_FROM|PD_IDEMPOTENCY)\x01([^\x02]*)"
)


class Facts(NamedTuple):
    """A record's place among the others."""

    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    #: As stored.
    properties: bytes


def has_unit(sys_flag: int) -> bool:
    """Tell whether a record has a unit: prepared and rolled back transactions have none."""
    transaction = sys_flag & SYS_FLAG_TRANSACTION
    return transaction in (0, SYS_FLAG_COMMIT) and not sys_flag & SYS_FLAG_INNER_BATCH


def is_indexed(sys_flag: int) -> bool:
    """Tell whether a record's keys are in the index: those of a rollback are not."""
    return sys_flag & SYS_FLAG_TRANSACTION != SYS_FLAG_ROLLBACK


def deciding_properties(properties: bytes) -> dict[bytes, bytes]:
    """Return the properties that decide a unit's tags code and the index entries."""
    return dict(_DECIDING.findall(b"\x02" + properties))


def tags_code_of(topic: bytes, deciding: dict[bytes, bytes]) -> int:
    """Return what a record's unit carries for tags."""
    if topic == _SCHEDULE and b"DELAY" in deciding:
        due_ms = due_of(deciding)
        return due_ms if due_ms >= 0 else TAGS_CODE_UNKNOWN
    tag = deciding.get(b"TAGS")
    return tags_code(tag.decode("utf-8", "replace")) if tag else 0


def due_of(deciding: dict[bytes, bytes]) -> int:
    """Return the due time that a record of ours tells, ms; -1 for a broker's."""
    due = deciding.get(b"PD_DUE", b"")
    return int(due) if due.isdigit() else -1


def keys_of(deciding: dict[bytes, bytes]) -> list[str]:
    """Return the keys by which the index knows a record."""
    keys = deciding.get(b"KEYS")
    found = [key for key in keys.decode("utf-8", "replace").split(" ") if key] if keys else []
    unique = deciding.get(b"UNIQ_KEY")
    if unique is not None:
        found.insert(0, unique.decode("utf-8", "replace"))
    used = deciding.get(b"PD_IDEMPOTENCY")
    if used is not None and deciding.get(b"PD_FROM", b"")[:1] == b"N":
        found.append(idempotency_text(used.decode("utf-8", "replace")))
    return found


def facts_of(view: memoryview, at: int, size: int) -> Facts:
    """Return the facts of a record that ``check_record`` found whole."""
    queue_id, queue_offset, sys_flag = _HEAD.unpack_from(view, at)
    body = at + BODY_AT
    if sys_flag & SYS_FLAG_BORN_HOST_V6:
        body += 12
    if sys_flag & SYS_FLAG_STORE_HOST_V6:
        body += 12
    topic_at = body + int.from_bytes(view[body - 4 : body], "big")
    if int.from_bytes(view[at + MAGIC_AT : at + MAGIC_AT + 4], "big") == MAGIC_V1:
        topic, end = topic_at + 1, topic_at + 1 + view[topic_at]
    else:
        topic = topic_at + 2
        end = topic + int.from_bytes(view[topic_at:topic], "big")
    return Facts(
        view[topic:end].tobytes(),
        queue_id,
        queue_offset,
        sys_flag,
        view[end + 2 : at + size].tobytes(),
    )
