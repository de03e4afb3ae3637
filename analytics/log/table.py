"""The log as a table: one row a record, only the columns that are asked for.

Texts that repeat (topics, events, kinds) are numbers into a list, as Arrow and Spark want them.
Times are ms since the epoch. Where a record does not say, there is None.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from analytics.log.changes import group_of, origin_of, reason_of
from analytics.log.facts import KINDS
from analytics.log.foreign import tell
from analytics.log.leading import (
    Leading,
    ids_of,
    leading_of,
    real_topics_of,
    topics_of,
    versions_of,
)
from analytics.log.names import DEAD, JOURNAL, LEVELS, RETRY, TIMER, USER, Names
from analytics.log.walk import Block, Bools, Int64s
from queues.store.batch import LEADING_BYTES
from queues.store.record import Record, decode_record

#: Column to its type in Spark's words, in the order of the schema.
COLUMNS: Final = {
    "log_offset": "bigint", "size": "int", "stored_topic": "string", "queue": "int",
    "queue_offset": "bigint", "event": "string", "topic": "string", "group": "string",
    "kind": "string", "level": "int", "asked_delay_ms": "bigint", "due": "timestamp",
    "stored": "timestamp", "delivered": "timestamp", "lateness_ms": "bigint", "attempt": "int",
    "id": "string", "keys": "string", "tag": "string", "version": "int", "reason": "string",
    "created": "timestamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; those not in `known` are None."""

    values: npt.NDArray[Any]
    known: Bools | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts: numbers into a list; -1 is None."""

    numbers: Int64s
    texts: Sequence[str]


Column: TypeAlias = Numbers | Texts

EVENTS: Final = (
    "sent", "delivered", "redelivered", "retried", "dead", "redriven", "cancelled", "moved",
    "parked", "restored", "renewed", "trace", "other",
)  # fmt: skip
_EVENT: Final = {event: number for number, event in enumerate(EVENTS)}
_OTHER: Final = _EVENT["other"]
_CHANGES: Final = {"R": "renewed", "M": "moved", "C": "cancelled", "P": "parked", "S": "restored",
                   "A": "retried", "D": "dead", "X": "redriven"}  # fmt: skip
_PURPOSES: Final = 8
_KIND_NUMBERS: Final = np.full(256, -1, np.int64)
for _number, _letter in enumerate(KINDS):
    _KIND_NUMBERS[ord(_letter)] = _number
_KIND_WORDS: Final = tuple(KINDS.values())
_TAG: Final = re.compile(rb"(?:^|\x02)TAGS\x01([^\x02]*)")
_KEYS: Final = re.compile(rb"(?:^|\x02)KEYS\x01([^\x02]*)")


def _event_table() -> Int64s:
    """The event of each letter and purpose of topic."""
    table = np.full((256, _PURPOSES), _OTHER, np.int64)
    for letter, event in _CHANGES.items():
        table[ord(letter)] = _EVENT[event]
    table[ord("N"), [LEVELS, TIMER]] = _EVENT["sent"]
    table[ord("N"), USER] = table[ord("H"), USER] = _EVENT["delivered"]
    table[ord("H"), RETRY] = _EVENT["redelivered"]
    table[ord("N"), JOURNAL] = _EVENT["trace"]
    return table


_EVENT_TABLE: Final = _event_table()
#: Of each event: whether a message was handed over.
_HANDED: Final = np.isin(np.arange(len(EVENTS)), [_EVENT["delivered"], _EVENT["redelivered"]])


class OurTable:
    """Records of ours as columns; what several columns need is computed once."""

    def __init__(self, block: Block, names: Names) -> None:
        self._block, self._names = block, names
        self._heads = block.heads

    @cached_property
    def _leading(self) -> Leading:
        return leading_of(self._block)

    @cached_property
    def _stored_topics(self) -> Int64s:
        return topics_of(self._block, self._names)

    @cached_property
    def _purposes(self) -> Int64s:
        topics = self._stored_topics  # First: it numbers the names that are new.
        return self._names.purposes[topics]

    @cached_property
    def events(self) -> Int64s:
        """Numbers into `EVENTS`."""
        return _EVENT_TABLE[self._leading.letter, self._purposes]

    @cached_property
    def _topics(self) -> Int64s:
        """The topics that consumers know."""
        topics = self._stored_topics.copy()
        held = np.flatnonzero(np.isin(self._purposes, (LEVELS, TIMER, JOURNAL)))
        held = held[self.events[held] != _EVENT["trace"]]
        if len(held):
            topics[held] = real_topics_of(self._block.take(held), self._names)
        purposes = self._names.purposes[topics]
        for number in np.flatnonzero((purposes == RETRY) | (purposes == DEAD)).tolist():
            topics[number] = self._names.number(origin_of(self._record(number)))
        topics[self.events == _EVENT["trace"]] = -1
        return topics

    @cached_property
    def store_ms(self) -> Int64s:
        """When they were stored."""
        return self._heads["store_ms"].astype(np.int64)

    def _record(self, number: int) -> Record:
        start, size = int(self._block.ats[number]), int(self._heads["size"][number])
        return decode_record(self._block.memory.view[start : start + size], verify=False)

    def _own(self) -> list[bytes]:
        """Tag, keys and what follows them."""
        starts = (self._block.property_at + LEADING_BYTES).tolist()
        view = self._block.memory.view
        return [
            view[start:end].tobytes()
            for start, end in zip(starts, self._block.ends.tolist(), strict=True)
        ]

    def _handed(self) -> Bools:
        handed: Bools = _HANDED[self.events]
        return handed

    def _timed(self) -> Bools:
        timed: Bools = self.events != _EVENT["trace"]
        return timed

    def column(self, name: str) -> Column:
        """One column of `COLUMNS`."""
        made: Column = getattr(self, f"_make_{name}")()
        return made

    def _make_log_offset(self) -> Column:
        return Numbers(self._block.base + self._block.ats)

    def _make_size(self) -> Column:
        return Numbers(self._heads["size"].astype(np.int32))

    def _make_stored_topic(self) -> Column:
        return Texts(self._stored_topics, self._names.texts)

    def _make_queue(self) -> Column:
        return Numbers(self._heads["queue_id"].astype(np.int32))

    def _make_queue_offset(self) -> Column:
        return Numbers(self._heads["queue_offset"].astype(np.int64))

    def _make_event(self) -> Column:
        return Texts(self.events, EVENTS)

    def _make_topic(self) -> Column:
        return Texts(self._topics, self._names.texts)

    def _make_group(self) -> Column:
        chosen = (self.events != _EVENT["sent"]) & (self.events != _EVENT["delivered"])
        return self._told(chosen, group_of)

    def _make_reason(self) -> Column:
        chosen = np.isin(self.events, [_EVENT[one] for one in ("retried", "dead", "parked")])
        return self._told(chosen, reason_of)

    def _told(self, chosen: Bools, tell_of: Callable[[Record], str]) -> Column:
        texts = [
            (tell_of(self._record(number)) or None) if is_chosen else None
            for number, is_chosen in enumerate(chosen.tolist())
        ]
        return texts_of(texts)

    def _make_kind(self) -> Column:
        numbers = np.where(self._timed(), _KIND_NUMBERS[self._leading.kind], -1)
        return Texts(numbers, _KIND_WORDS)

    def _make_level(self) -> Column:
        level = self._leading.level
        return Numbers(level.astype(np.int32), level > 0)

    def _make_asked_delay_ms(self) -> Column:
        is_level = self._leading.kind == ord("L")
        born_ms = self._heads["born_ms"].astype(np.int64)
        since = np.where(is_level, self.store_ms, born_ms)
        return Numbers(self._leading.due_ms - since, self.events == _EVENT["sent"])

    def _make_due(self) -> Column:
        return Numbers(self._leading.due_ms, self._timed())

    def _make_stored(self) -> Column:
        return Numbers(self.store_ms)

    def _make_created(self) -> Column:
        return Numbers(self._heads["born_ms"].astype(np.int64))

    def _make_delivered(self) -> Column:
        return Numbers(self.store_ms, self._handed())

    def _make_lateness_ms(self) -> Column:
        immediate = self._leading.kind == ord("I")
        lateness_ms = np.where(immediate, 0, self.store_ms - self._leading.due_ms)
        return Numbers(lateness_ms, self._handed())

    def _make_attempt(self) -> Column:
        return Numbers(self._heads["reconsume"].astype(np.int32) + np.int32(1))

    def _make_id(self) -> Column:
        return Texts(
            np.arange(len(self._block.ats)), [one.decode() for one in ids_of(self._block).tolist()]
        )

    def _make_keys(self) -> Column:
        return self._searched(_KEYS)

    def _make_tag(self) -> Column:
        return self._searched(_TAG)

    def _searched(self, pattern: re.Pattern[bytes]) -> Column:
        found = (pattern.search(own) for own in self._own())
        return texts_of([one and one[1].decode("utf-8", "replace") for one in found])

    def _make_version(self) -> Column:
        return Numbers(versions_of(self._block).astype(np.int32))


def texts_of(texts: Sequence[str | None]) -> Texts:
    """A column of texts as they are."""
    numbers: dict[str, int] = {}
    found = [-1 if one is None else numbers.setdefault(one, len(numbers)) for one in texts]
    return Texts(np.array(found, np.int64), list(numbers))


def foreign_columns(block: Block, names: Sequence[str], precision_ms: int) -> dict[str, Column]:
    """Records of a broker as columns."""
    records = [
        decode_record(block.memory.view[at:end], verify=False)
        for at, end in zip(block.ats.tolist(), block.ends.tolist(), strict=True)
    ]
    rows = [_foreign_row(record, precision_ms) for record in records]
    found: dict[str, Column] = {}
    for name in names:
        values = [row[name] for row in rows]
        if COLUMNS[name] == "string":
            found[name] = texts_of([None if one in (None, "") else str(one) for one in values])
        else:
            known = np.array([one is not None for one in values], np.bool_)
            kind = np.int32 if COLUMNS[name] == "int" else np.int64
            found[name] = Numbers(np.array([one or 0 for one in values], kind), known)
    return found


def _foreign_row(record: Record, precision_ms: int) -> dict[str, Any]:
    told = tell(record, precision_ms)
    handed = told.event in ("delivered", "redelivered")
    late_ms = None if told.due_ms is None or not handed else record.store_ms - told.due_ms
    return {
        "log_offset": record.log_offset, "size": record.size, "stored_topic": record.topic,
        "queue": record.queue_id, "queue_offset": record.queue_offset,
        "event": told.event or "other", "topic": told.topic, "group": told.group,
        "kind": told.kind, "level": told.level or None, "asked_delay_ms": told.asked_ms,
        "due": told.due_ms, "stored": record.store_ms,
        "delivered": record.store_ms if handed else None, "lateness_ms": late_ms,
        "attempt": record.reconsume_times + 1, "id": record.unique_id,
        "keys": record.properties.get("KEYS"), "tag": record.tag, "version": None,
        "reason": None, "created": record.born_ms,
    }  # fmt: skip
