"""Folding a broker's records: what Apache RocketMQ's own records tell of a message.

A level's delivered record does not say which level it was (the broker clears it), and the delays of
levels are a setting that is not in the store: `due` and lateness are unknown. A timed message's due
time is its slot's end: `TIMER_OUT_MS` and the precision.
"""

from typing import Final, NamedTuple

from analytics.log.facts import QUARTER_MS, Series, Tally
from analytics.log.names import DEAD, LEVELS, RETRY, TIMER, USER, purpose_of
from analytics.log.walk import Block
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX
from queues.store.record import SYS_FLAG_ROLLBACK, SYS_FLAG_TRANSACTION, Record, decode_record

_TIMER_OUT: Final = "TIMER_OUT_MS"


class Told(NamedTuple):
    """What a broker's record says."""

    #: ``sent``, ``delivered``, ``redelivered``, ``retried``, ``dead``, ``cancelled``, ``renewed``;
    #: empty for what is none of these.
    event: str
    topic: str = ""
    #: ``immediate``, ``level``, ``timed``; empty where it is not known.
    kind: str = ""
    level: int = 0
    group: str = ""
    due_ms: int | None = None
    #: Until when it was to wait, ms from when it was stored; None where it does not say.
    asked_ms: int | None = None
    attempt: int = 0


def fold_foreign(block: Block, tally: Tally, precision_ms: int) -> None:
    """Count what records of a broker say."""
    for at, end in zip(block.ats.tolist(), block.ends.tolist(), strict=True):
        record = decode_record(block.memory.view[at:end], verify=False)
        told = tell(record, precision_ms)
        if told.event and told.event != "renewed":
            _count(record, told, tally)


def _count(record: Record, told: Told, tally: Tally) -> None:
    quarter_ms = record.store_ms // QUARTER_MS * QUARTER_MS
    series = Series(
        told.event, quarter_ms, told.topic, told.kind, told.level, told.group, told.attempt
    )
    if told.event in ("delivered", "redelivered"):
        late_ms = None if told.due_ms is None else record.store_ms - told.due_ms
        if told.kind == "immediate":
            late_ms = 0
            tally.add_one(series._replace(fact="sent"), 0)
        tally.add_one(series, late_ms)
    elif told.event == "cancelled":
        tally.add_one(series, None if told.due_ms is None else told.due_ms - record.store_ms)
    else:
        tally.add_one(series, told.asked_ms)


def tell(record: Record, precision_ms: int) -> Told:
    """What a broker's record says."""
    properties, purpose = record.properties, purpose_of(record.topic)
    if record.sys_flag & SYS_FLAG_TRANSACTION == SYS_FLAG_ROLLBACK:
        return Told("")
    if purpose in (LEVELS, TIMER):
        return _tell_waiting(record, purpose, precision_ms)
    if purpose == RETRY:
        group = record.topic.removeprefix(RETRY_PREFIX)
        topic = properties.get("RETRY_TOPIC", "")
        return Told("redelivered", topic, "level", group=group, attempt=record.reconsume_times)
    if purpose == DEAD:
        group = record.topic.removeprefix(DEAD_LETTER_PREFIX)
        topic = properties.get("RETRY_TOPIC", "")
        return Told("dead", topic, group=group, attempt=record.reconsume_times)
    if purpose != USER:
        return Told("")
    if _TIMER_OUT in properties:
        due_ms = _number(properties[_TIMER_OUT])
        due_ms = None if due_ms is None else due_ms + precision_ms
        return Told("delivered", record.topic, "timed", due_ms=due_ms)
    if "REAL_TOPIC" in properties and "TRAN_MSG" not in properties:
        return Told("delivered", record.topic, "level")
    return Told("delivered", record.topic, "immediate", due_ms=record.store_ms)


def _tell_waiting(record: Record, purpose: int, precision_ms: int) -> Told:
    properties = record.properties
    real = properties.get("REAL_TOPIC", "")
    level = _number(properties.get("DELAY", "")) or 0
    if real.startswith(RETRY_PREFIX):
        group, topic = real.removeprefix(RETRY_PREFIX), properties.get("RETRY_TOPIC", "")
        return Told("retried", topic, group=group, attempt=record.reconsume_times)
    if purpose == LEVELS:
        return Told("sent", real, "level", level)
    if _number(properties.get("TIMER_ROLL_TIMES", "")):
        return Told("renewed", real, "timed")
    out_ms = _number(properties.get(_TIMER_OUT, ""))
    due_ms = None if out_ms is None else out_ms + precision_ms
    if "TIMER_DEL_UNIQKEY" in properties:
        return Told("cancelled", real, "timed", due_ms=due_ms)
    asked_ms = None if due_ms is None else max(0, due_ms - record.store_ms)
    return Told("sent", real, "timed", due_ms=due_ms, asked_ms=asked_ms)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
