"""Folding changes: cancels, moves, parkings, restores, retries and dead letters, one by one.

They are few beside sends and hand-overs, and what is told of each stands in properties of any
length or in a body of JSON.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from analytics.log.facts import KINDS, QUARTER_MS, Series, Tally
from analytics.log.walk import Block
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX
from queues.store.record import Record, decode_record

#: Reasons are free text of consumers: so many characters of one tell it from others.
REASON_MAX: Final = 80
#: What a change is counted as, by its letter.
_FACTS: Final = {
    "C": "cancelled", "M": "moved", "P": "parked", "S": "restored", "A": "retried", "D": "dead",
}  # fmt: skip
#: Facts of messages: a group's retry that is cancelled or moved, and a dead letter that is
#: discarded, are changes of the group's own.
_MESSAGES_OWN: Final = frozenset({"cancelled", "moved", "restored"})
_RETRY_TOPIC: Final = "RETRY_TOPIC"
#: JSON ``[[attempt, at_ms, reason, consumer], …]`` of a retry or dead letter.
_FAILURES: Final = "PD_FAILURES"


def fold_changes(block: Block, tally: Tally, due_at: Callable[[int], int | None]) -> None:
    """Count what records of ours say that are changes."""
    for at, end in zip(block.ats.tolist(), block.ends.tolist(), strict=True):
        record = decode_record(block.memory.view[at:end], verify=False)
        _fold(record, tally, due_at)


def _fold(record: Record, tally: Tally, due_at: Callable[[int], int | None]) -> None:
    properties = record.properties
    origin, kind = properties.get("PD_FROM", ""), properties.get("PD_KIND", "I000")
    fact = _FACTS.get(origin[:1])
    if fact is None:
        return
    group = group_of(record)
    if group and fact in _MESSAGES_OWN:
        return
    topic = origin_of(record)
    due_ms, value_ms = int(properties.get("PD_DUE", "0")), None
    if fact == "cancelled":
        value_ms = due_ms - record.store_ms
    elif fact == "moved":
        before_ms = due_at(int(origin[1:]))
        value_ms = None if before_ms is None else before_ms - record.store_ms
    elif fact == "retried":
        value_ms = due_ms - record.store_ms
    is_failure = fact in ("retried", "dead")
    series = Series(
        fact,
        record.store_ms // QUARTER_MS * QUARTER_MS,
        topic,
        "" if is_failure else KINDS.get(kind[:1], ""),
        0 if is_failure else int(kind[1:] or 0),
        group,
        record.reconsume_times if is_failure else 0,
        reason_of(record) if is_failure or fact == "parked" else "",
    )
    tally.add_one(series, value_ms)


def group_of(record: Record) -> str:
    """The group whose own record it is (a retry or a dead letter); empty for all others."""
    for name in (record.topic, record.properties.get("REAL_TOPIC", "")):
        for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
            if name.startswith(prefix):
                return name.removeprefix(prefix)
    return ""


def origin_of(record: Record) -> str:
    """The topic that consumers know."""
    properties = record.properties
    if group_of(record):
        return properties.get(_RETRY_TOPIC, "")
    return properties.get("REAL_TOPIC", record.topic)


def reason_of(record: Record) -> str:
    """Why it happened, if the record says so, shortened."""
    properties = record.properties
    if _FAILURES in properties:
        failures = _json(properties[_FAILURES])
        return _short(failures[-1][2]) if isinstance(failures, list) and failures else ""
    told = _json(record.body) if "PD_EVENT" in properties else None
    return _short(told.get("reason")) if isinstance(told, dict) else ""


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _short(reason: object) -> str:
    return " ".join(str(reason or "").split())[:REASON_MAX]
