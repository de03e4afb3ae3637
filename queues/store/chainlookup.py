"""Finding chains: how far a group is with a message that failed, and its dead letters.

A dead letter is kept while its unit's settled word is 0, or leads to a redrive; once it is replaced
by a later death or discarded, the word leads there, and past its retention, counted from its death,
it is gone for everybody.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.batch import Source
from queues.store.chaintail import ChainTail, Death, Failure, tail_of
from queues.store.errors import RecordCorrupt, RecordGone
from queues.store.lookup import Lookup
from queues.store.messages import Event
from queues.store.names import DEAD_LETTER_PREFIX, JOURNAL_TOPIC, RETRY_PREFIX
from queues.store.parts import Parts
from queues.store.queuetable import Queue
from queues.store.record import Record, decode_record
from queues.store.scan import Parsed, is_whole, letters_of, parse
from queues.store.schedule import LOST
from queues.store.standing import Standing, standing_of

Int64s = npt.NDArray[np.int64]
ChainWord = Literal[
    "retrying",
    "ready",
    "leased",
    "acked",
    "dead",
    "redriven",
    "cancelled",
    "parked",
    "dropped",
    "expired",
]
_ALIVE = ("retrying", "ready", "leased", "parked")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that a group gave up."""

    group: str
    id: str
    raw: bytes
    record: Record
    #: The topic and queue that it was sent to.
    topic: str
    queue_id: int
    died_ms: int
    #: Deliveries that failed since it was sent or redriven.
    attempts: int
    failures: tuple[Failure, ...]
    #: Earlier deaths, oldest first.
    lineage: tuple[Death, ...]
    #: When and by whom it was last driven again; None if it was not.
    redriven_ms: int | None
    redriven_by: str | None
    log_offset: int
    #: Its unit, and the settled word that was seen.
    source: Source

    @property
    def reason(self) -> str | None:
        """Why its last attempt failed."""
        return self.failures[-1].reason if self.failures else None


class Letters(NamedTuple):
    """The kept dead letters of a group, one column a field."""

    units: Int64s
    died_ms: Int64s
    #: Numbers of the topics that they were sent to.
    topic_numbers: Int64s
    redriven: npt.NDArray[np.bool_]


class ChainState(NamedTuple):
    """How far a group is with a message that failed at least once."""

    state: ChainWord
    #: Deliveries since it was sent or redriven.
    attempts: int
    #: When it is due again, or when its lease ends, ms; None if neither.
    next_ms: int | None
    tail: ChainTail | None
    #: The links with the log offset of each, oldest first.
    links: tuple[tuple[int, Parsed], ...]

    @property
    def failed(self) -> bool:
        """Whether an attempt failed since it was sent or redriven."""
        return bool(self.tail and self.tail.failures)

    @property
    def alive(self) -> bool:
        """Whether the group may still receive it."""
        return self.state in _ALIVE


class ChainLookup:
    """Finds the chains of one store."""

    def __init__(self, parts: Parts, lookup: Lookup, retention_ms: int) -> None:
        self._parts, self._lookup = parts, lookup
        self._retention_ms = retention_ms

    # -- chains ---------------------------------------------------------------------------------

    def state(self, group: str, message_id: str) -> ChainState | None:
        """How far the group is with the message; None if it never failed there."""
        links = self._links(group, message_id)
        if not links:
            return None
        last = links[-1]
        tail = tail_of(decode_record(last[1].raw, verify=False).properties)
        failed = int.from_bytes(last[1].raw[72:76], "big")
        if last[1].topic == DEAD_LETTER_PREFIX + group:
            letter = self.find_letter(group, message_id, kept_only=False)
            word: ChainWord = "cancelled"
            if letter is not None:
                word = "dead" if letter.redriven_ms is None else "redriven"
            return ChainState(word, failed, None, tail, tuple(links))
        newest, settled_word, settler = last, 0, None
        if last[1].topic != RETRY_PREFIX + group:
            newest, settled_word, settler = self._lookup.followed(last)
            if settled_word == 0 or settler is None:
                return ChainState("retrying", failed, newest[1].due_ms, tail, tuple(links))
            if settler.letter in "CP":
                state: ChainWord = "cancelled" if settler.letter == "C" else "parked"
                return ChainState(state, failed, None, tail, tuple(links))
            newest = settled_word, settler
        state, attempts, until_ms = self._standing(group, newest[1])
        return ChainState(state, failed + attempts, until_ms, tail, tuple(links))

    def _standing(self, group: str, record: Parsed) -> Standing:
        """How far the group is with a record of its retry topic."""
        offset = record.queue_offset
        header, word = self._parts.marks.peek(group, record.topic, record.queue_id, offset)
        if header is None:
            return Standing("ready", 0)
        now_ms = self._parts.clock.now_ms()
        return standing_of(header, word, offset, now_ms) or Standing("acked", 0)

    def newest_alive(self, group: str, log_offset: int) -> int | None:
        """Where the newest link of a chain lies, given one of its links; None if it is over."""
        link = self._read(log_offset)
        state = None if link is None else self.state(group, link.unique_id)
        if link is not None and (state is None or state.links[-1][0] < log_offset):
            return log_offset  # It is not flushed yet, so it was only just written.
        return state.links[-1][0] if state is not None and state.alive else None

    def read_link(self, log_offset: int) -> bytes | None:
        """The record of a link; None if it is gone."""
        link = self._read(log_offset)
        return None if link is None else link.raw

    def is_alive(self, group: str, message_id: str) -> bool:
        """Whether the group may still receive the message by a retry or a redrive."""
        state = self.state(group, message_id)
        return state is not None and state.alive

    def _links(self, group: str, message_id: str) -> list[tuple[int, Parsed]]:
        """The chain's records but for renewed dead letters, in log order."""
        retry, dead = RETRY_PREFIX + group, DEAD_LETTER_PREFIX + group
        found = self._lookup.records(message_id, (retry, dead))
        died = any(record.letter == "D" for _, record in found)
        # Renewals come later than the links behind the dead letter; they count if it is gone.
        letters = "D" if died else "R"
        return [
            (offset, record)
            for offset, record in found
            if record.topic == retry
            or (record.topic == dead and record.letter in letters)
            or (record.topic in self._lookup.holding and record.real_topic == retry)
        ]

    def timeline(self, group: str, message_id: str) -> tuple[Event, ...]:
        """What happened to the message in the group since it first failed there."""
        retry, dead = RETRY_PREFIX + group, DEAD_LETTER_PREFIX + group
        found = self._lookup.records(message_id, (retry, dead))
        return tuple(
            event
            for _, record in found
            if {retry, dead} & {record.topic, record.real_topic}
            if (event := _event(group, record)) is not None
        )

    # -- dead letters ---------------------------------------------------------------------------

    def cutoff_ms(self) -> int:
        """Who died before this is gone."""
        return self._parts.clock.now_ms() - self._retention_ms

    def letters(self, group: str) -> Letters:
        """All kept dead letters of a group, in the order of their units."""
        queue = self._parts.queues.find(DEAD_LETTER_PREFIX + group, 0)
        if queue is None:
            nothing = np.zeros(0, np.int64)
            return Letters(nothing, nothing, nothing, np.zeros(0, np.bool_))
        queues = self._parts.queues
        found = self._parts.table_of(queue).slice(queues.min(queue), queues.max(queue))
        redriven = letters_of(self._parts.log, found.settled) == ord("X")
        kept = ((found.settled == 0) | redriven) & (found.due_ms >= self.cutoff_ms())
        at = np.flatnonzero(kept)
        return Letters(at + found.start, found.due_ms[at], found.topic_number[at], redriven[at])

    def letter_at(self, group: str, unit: int) -> DeadLetter | None:
        """The dead letter of a unit; None if it is not kept or cannot be read."""
        queue = self._parts.queues.find(DEAD_LETTER_PREFIX + group, 0)
        if queue is None:
            return None
        units = self._parts.consume_queues.read(queue.topic, 0, unit, 1)
        record = self._read(int(units["log_offset"][0])) if len(units) else None
        if record is None:
            return None
        return self._letter(group, queue, int(units["log_offset"][0]), record)

    def find_letter(
        self, group: str, message_id: str, *, kept_only: bool = True
    ) -> DeadLetter | None:
        """The message's dead letter in the group; `kept_only` leaves out one past its retention."""
        topic = DEAD_LETTER_PREFIX + group
        queue = self._parts.queues.find(topic, 0)
        if queue is None:
            return None
        records = self._lookup.records(message_id, (topic,))
        for offset, record in reversed(records):
            if record.topic != topic:
                continue
            letter = self._letter(group, queue, offset, record)
            if letter is not None and not (kept_only and letter.died_ms < self.cutoff_ms()):
                return letter
        return None

    def _letter(self, group: str, queue: Queue, offset: int, parsed: Parsed) -> DeadLetter | None:
        word = self._parts.table_of(queue).settled(parsed.queue_offset)
        settler = self._read(word) if word > LOST else None
        if word and (settler is None or settler.letter != "X"):
            return None
        record = decode_record(parsed.raw, verify=False)
        tail = tail_of(record.properties) or ChainTail("", "", 0, 0)
        return DeadLetter(
            group=group, id=parsed.unique_id, raw=parsed.raw, record=record, topic=tail.topic,
            queue_id=tail.queue_id, died_ms=parsed.due_ms, attempts=record.reconsume_times,
            failures=tail.failures, lineage=tail.lineage,
            redriven_ms=None if settler is None else settler.due_ms,
            redriven_by=None if settler is None else _by(settler),
            log_offset=offset, source=Source(queue, parsed.queue_offset, word),
        )  # fmt: skip

    def _read(self, offset: int) -> Parsed | None:
        """A record, flushed or not: what is decided by it is flushed before it is told."""
        try:
            raw = self._parts.log.read(offset, 4)
            raw = self._parts.log.read(offset, int.from_bytes(raw, "big"))
            return parse(raw, offset=offset) if is_whole(raw) else None
        except (RecordGone, RecordCorrupt):
            return None


_EVENTS = {
    "A": "retried", "H": "retry_delivered", "M": "retry_moved", "C": "retry_cancelled",
    "P": "retry_parked", "S": "retry_released", "D": "died", "X": "redriven",
}  # fmt: skip


def _event(group: str, record: Parsed) -> Event | None:
    """What a link, or a change of one, tells; None for a renewal."""
    name = _EVENTS.get(record.letter)
    if name is None or (record.letter == "X" and record.topic == JOURNAL_TOPIC):
        return None
    properties = decode_record(record.raw, verify=False).properties
    detail: dict[str, Any] = {"group": group}
    by = None
    if record.topic == JOURNAL_TOPIC:
        name, by = properties.get("PD_EVENT", name), properties.get("PD_BY")
        name = {"cancelled": "retry_cancelled", "parked": "retry_parked"}.get(name, name)
    elif record.letter in "MSX":
        by = properties.get("PD_BY")
    tail = tail_of(properties)
    if record.letter in "AD" and tail is not None and tail.failures:
        last = tail.failures[-1]
        detail |= {"attempt": last.attempt, "reason": last.reason, "consumer_id": last.consumer_id}
    if record.letter in "AMS":
        detail["due_ms"] = record.due_ms
    return Event(record.store_ms, name, by, detail)


def _by(record: Parsed) -> str | None:
    return decode_record(record.raw, verify=False).properties.get("PD_BY")
