"""Finding a message by its id: all its records, and from them what is true of it now.

An id has UUIDv7's layout; the 12 bits behind the version are a hash of the topic, so that a lookup
needs no topic: it asks the index for the id under the holding topics, the journal, and the few
topics with that hash. What a message's state is, the settled word of its newest holding unit says.
"""

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from queues.store.batch import ID_BYTES
from queues.store.commitlog import CommitLog
from queues.store.crc import crc32
from queues.store.errors import RecordCorrupt, RecordGone, ScheduleDamaged
from queues.store.hashes import index_hash
from queues.store.held import tag_and_keys
from queues.store.index import SKEW_MS, IndexSet
from queues.store.messages import Event, MessageView, State
from queues.store.names import (
    DEAD_LETTER_PREFIX,
    JOURNAL_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)
from queues.store.parking import parked_unit
from queues.store.queuetable import Queue, QueueTable
from queues.store.record import decode_record
from queues.store.scan import Parsed, is_whole, letters_of, parse
from queues.store.schedule import Int64s, ScheduleTable

logger = logging.getLogger(__name__)

#: Records of one id looked at, at the most: moves and renewals over a message's life.
RECORDS_MAX = 10_000
#: A hex digit with the two bits of the variant in place of its upper ones.
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
_HOLDING = (SCHEDULE_TOPIC, TIMER_TOPIC)
_GROUP_PREFIXES = (RETRY_PREFIX, DEAD_LETTER_PREFIX)
_EVENTS = {"N": "sent", "H": "delivered", "M": "moved", "R": "renewed", "C": "cancelled",
           "P": "parked", "A": "retried", "D": "died", "X": "redriven"}  # fmt: skip


def topic_hint(topic: str) -> int:
    """The 12 bits of a topic that its messages' ids carry."""
    return crc32(topic.encode()) & 0xFFF


def make_ids(topic: str, now_ms: int, random: bytes) -> list[str]:
    """Ids in UUIDv7's layout, one for every 8 random bytes.

    48 bits of ms, the version 7, the topic's hash, the variant, 62 random bits.
    """
    head = f"{now_ms & (1 << 48) - 1:012x}7{topic_hint(topic):03x}"
    digits = random.hex()
    return [
        f"{head}{_VARIANT[digits[at]]}{digits[at + 1 : at + 16]}"
        for at in range(0, len(digits), 16)
    ]


class Lookup:
    """Finds messages of one store."""

    def __init__(
        self,
        log: CommitLog,
        index: IndexSet,
        queues: QueueTable,
        table_of: Callable[[Queue], ScheduleTable],
        visible: Callable[[], int],
    ) -> None:
        self._log, self._index, self._queues = log, index, queues
        self._table_of, self._visible = table_of, visible
        #: Topics whose records wait.
        self.holding = _HOLDING

    def records(
        self, message_id: str, group_topics: tuple[str, ...] = ()
    ) -> list[tuple[int, Parsed]]:
        """All records that carry the id and readers may see, in log order.

        Of its own topic, or with `group_topics` in those instead.
        """
        if len(message_id) != 32 or message_id[12] != "7":  # noqa: PLR2004 (UUIDv7)
            return []
        try:
            born_ms, hint = int(message_id[:12], 16), int(message_id[13:16], 16)
        except ValueError:
            return []
        topics = group_topics or [
            topic for topic in self._queues.topics() if topic_hint(topic) == hint
        ]
        found: dict[int, Parsed] = {}
        for topic in (*_HOLDING, JOURNAL_TOPIC, *topics):
            offsets = self._index.lookup(
                index_hash(topic, message_id), begin_ms=born_ms - SKEW_MS, limit=RECORDS_MAX
            )
            for offset in offsets:
                record = self._read(offset)
                if record is not None and record.unique_id == message_id:
                    found[offset] = record
        return sorted(found.items())

    def ids_with_key(
        self, key: str, topics: Sequence[str], *, limit: int
    ) -> tuple[list[str], bool]:
        """Ids of messages with a business key in these topics, and whether those are all.

        A message that waits has its key under the holding topic; its real topic then decides.
        """
        ids: dict[str, None] = {}
        looked = 0
        for topic in (*_HOLDING, *topics):
            for offset in self._index.lookup(index_hash(topic, key), limit=limit - looked):
                looked += 1
                record = self._read(offset)
                if record is None or key not in tag_and_keys(record.own)[1]:
                    continue
                if (record.real_topic or record.topic) in topics:
                    ids[record.unique_id] = None
            if looked >= limit:
                return list(ids), False
        return list(ids), True

    def units_with_key(self, key: str, queue: Queue, *, limit: int) -> list[int]:
        """Offsets in a holding queue of the messages that were held there with a key."""
        units = set()
        for offset in self._index.lookup(index_hash(queue.topic, key), limit=limit):
            record = self._read(offset)
            if record is None or (record.topic, record.queue_id) != (queue.topic, queue.queue_id):
                continue
            if key in tag_and_keys(record.own)[1]:
                units.add(record.queue_offset)
        return sorted(units)

    def letters(self, log_offsets: Int64s) -> npt.NDArray[np.uint8]:
        """What the records at these log offsets are; 0 for those that are gone."""
        return letters_of(self._log, log_offsets)

    def _read(self, offset: int) -> Parsed | None:
        """The record at a log offset; None if readers may not see it, or it is damaged or gone."""
        if offset >= self._visible():
            return None
        try:
            size = int.from_bytes(self._log.read(offset, 4), "big")
            raw = self._log.read(offset, size)
            return parse(raw, offset=offset) if is_whole(raw) else None
        except (RecordGone, RecordCorrupt):
            return None

    def find(self, message_id: str) -> MessageView | None:
        """What is known of the message; None when no record of it is found."""
        return self._view_of(self._records_of(message_id, None))

    def left_by(self, log_offset: int, message_id: str, group: str | None) -> MessageView | None:
        """What the change at a log offset made of a message, or of its retry in a group.

        Of one that lets it wait, what others made of it since is left out; else what is known now.
        """
        records = self._records_of(message_id, group)
        before = [pair for pair in records if pair[0] <= log_offset]
        if before and before[-1][0] == log_offset and before[-1][1].topic in _HOLDING:
            return self._view(before, before[-1], "scheduled", before[-1], 0)
        return self._view_of(records) if group is None else self._retry_of(records)

    def _records_of(self, message_id: str, group: str | None) -> list[tuple[int, Parsed]]:
        """The records of a message, or of its retries in a group."""
        if group is None:
            found = self.records(message_id)
            return [pair for pair in found if not is_of_a_group(pair[1])]
        retry_topic = RETRY_PREFIX + group
        found = self.records(message_id, (retry_topic,))
        return [pair for pair in found if retry_topic in (pair[1].topic, pair[1].real_topic)]

    def find_retry(self, group: str, message_id: str) -> MessageView | None:
        """What is known of the message's newest retry in a group; None without any.

        One that waits comes before a newer one that no longer does: after a reset there may be two.
        """
        return self._retry_of(self._records_of(message_id, group))

    def _retry_of(self, records: list[tuple[int, Parsed]]) -> MessageView | None:
        held = [pair for pair in records if pair[1].topic in _HOLDING]
        for pair in reversed(held[:-1]):
            if self._settled(pair[1]) == 0 and self._settled(held[-1][1]):
                return self._held_view(records, pair)
        return self._view_of(records)

    def _view_of(self, records: list[tuple[int, Parsed]]) -> MessageView | None:
        held = [(offset, record) for offset, record in records if record.topic in _HOLDING]
        if held:
            return self._held_view(records, held[-1])
        own = [(offset, record) for offset, record in records if record.topic != JOURNAL_TOPIC]
        if own:
            return self._delivered_view(records, own[-1], None, 0)
        told = [(offset, record) for offset, record in records if record.letter in "CP"]
        return self._journal_view(told) if told else None

    def _journal_view(self, records: list[tuple[int, Parsed]]) -> MessageView:
        """What the journal says of a message whose own records were removed or are damaged."""
        newest = records[-1]
        parked = newest[1].letter == "P"
        state: State = "parked" if parked else "cancelled"
        reason = _reason(newest[1]) if parked else None
        view = self._view(records, newest, state, None, newest[0], parked_reason=reason)
        # The id knows when it was made; the journal record when it was cancelled.
        view = replace(view, payload_gone=True, created_ms=int(view.id[:12], 16))
        unit = parked_unit(newest[1], self._queues) if parked else None
        if unit is None:
            return view
        queue, offset = unit
        return replace(
            view, held_topic=queue.topic, held_queue_id=queue.queue_id, held_offset=offset,
            settled_word=self._table_of(queue).settled(offset),
        )  # fmt: skip

    def id_of_damaged(
        self, queue: Queue, topic: str, due_ms: int, log_offset: int, size: int
    ) -> str:
        """The id of the message whose holding record is damaged.

        It is what the record's bytes still say if the index says the same; else one of its own,
        always the same, by which people can look at it.
        """
        with contextlib.suppress(RecordGone, UnicodeDecodeError):
            raw = self._log.read(log_offset, size)
            # Looked for, not parsed: what is wrong elsewhere does not matter here.
            at = raw.find(b"UNIQ_KEY\x01") + len(b"UNIQ_KEY\x01")
            told = raw[at : at + ID_BYTES].decode("ascii")
            if log_offset in self._index.lookup(index_hash(queue.topic, told), limit=RECORDS_MAX):
                return told
        place = f"{queue.topic}/{queue.queue_id}/{log_offset}".encode()
        return make_ids(topic, due_ms, hashlib.blake2b(place, digest_size=8).digest())[0]

    def _held_view(
        self, records: list[tuple[int, Parsed]], newest: tuple[int, Parsed]
    ) -> MessageView | None:
        newest, word, settler = self.followed(newest)
        if not word:
            # A restore or move that readers may not see yet: it is cancelled or parked until then.
            away = [one for one in records if one[1].letter in "CP"]
            away = [one for one in away if one[1].continues == newest[0]]
            word, settler = away[-1] if away else (0, None)
        found = dict([*records, newest])
        if settler is not None:
            found[word] = settler
        records = sorted(found.items())
        if word and settler is None:
            delivered = [pair for pair in records if pair[1].letter == "H"]
            return self._delivered_view(records, delivered[-1], newest, word) if delivered else None
        if settler is not None and settler.letter == "H":
            return self._delivered_view(records, (word, settler), newest, word)
        state: State = "scheduled"
        reason = None
        if settler is not None and settler.letter in "CP":
            state = "cancelled" if settler.letter == "C" else "parked"
            reason = _reason(settler) if settler.letter == "P" else None
        return self._view(records, newest, state, newest, word, parked_reason=reason)

    def followed(self, newest: tuple[int, Parsed]) -> tuple[tuple[int, Parsed], int, Parsed | None]:
        """The newest holding record, its settled word and what that leads to.

        The words lead from holding record to holding record, also where the index, which is
        searched by time, misses one after a step back of the clock.
        """
        visible = self._visible()
        while True:
            word = self._settled(newest[1])
            settler = self._read(word) if 0 < word < visible else None
            if settler is None or settler.topic not in _HOLDING:
                return newest, word if word < visible else 0, settler
            newest = word, settler

    def _settled(self, record: Parsed) -> int:
        queue = self._queues.find(record.topic, record.queue_id)
        assert queue is not None
        return self._table_of(queue).settled(record.queue_offset)

    def check_settled(self, queue: Queue, queue_offset: int, end: int) -> None:
        """Raise `ScheduleDamaged` if a unit's settled word leads beyond the log (under the lock).

        Under the append lock no write is going on: each word that was set leads to before its end.
        """
        table = self._table_of(queue)
        word = table.settled(queue_offset)
        if word >= end:
            path = table.path(queue_offset)
            logger.error("%s: unit %d is settled by %d, the log ends at %d",
                         path, queue_offset, word, end)  # fmt: skip
            raise ScheduleDamaged(path=path, unit=queue_offset, settled_by=word, log_end=end)

    def due_of(self, queue: Queue, queue_offset: int) -> tuple[int, int]:
        """Due time and topic number of a holding unit."""
        return self._table_of(queue).due(queue_offset)

    def _delivered_view(
        self, records: list[tuple[int, Parsed]], delivered: tuple[int, Parsed],
        newest: tuple[int, Parsed] | None, word: int,
    ) -> MessageView:  # fmt: skip
        if all(offset != delivered[0] for offset, _ in records):
            records = sorted([*records, delivered])
        return self._view(
            records, delivered, "ready", newest, word, delivered_ms=delivered[1].store_ms
        )

    def _view(
        self, records: list[tuple[int, Parsed]], shown: tuple[int, Parsed], state: State,
        newest: tuple[int, Parsed] | None, word: int, *,
        delivered_ms: int | None = None, parked_reason: str | None = None,
    ) -> MessageView:  # fmt: skip
        parsed = shown[1]
        record = decode_record(parsed.raw)
        topic = record.properties.get("REAL_TOPIC", record.topic)
        queue_id = int(record.properties.get("REAL_QID", record.queue_id))
        return MessageView(
            id=parsed.unique_id,
            topic=topic,
            queue_id=queue_id,
            state=state,
            kind=parsed.kind,  # type: ignore[arg-type]
            level=parsed.level or None,
            due_ms=parsed.due_ms,
            created_ms=record.born_ms,
            delivered_ms=delivered_ms,
            delivered_offset=parsed.queue_offset if state == "ready" else None,
            version=parsed.version,
            reschedules=parsed.version - 1,
            parked_reason=parked_reason,
            record=record,
            timeline=_timeline(records),
            held_topic=newest[1].topic if newest else "",
            held_queue_id=newest[1].queue_id if newest else 0,
            held_offset=newest[1].queue_offset if newest else -1,
            settled_word=word,
        )


def is_of_a_group(record: Parsed) -> bool:
    """Whether a record is a link of some group's chain, and none of the message's own."""
    if record.letter in "ADX" or record.topic.startswith(_GROUP_PREFIXES):
        return True
    if record.topic not in _HOLDING and record.topic != JOURNAL_TOPIC:
        return False
    return (record.real_topic or "").startswith(_GROUP_PREFIXES)


def _reason(record: Parsed) -> str | None:
    detail = _detail(record)
    return detail.get("reason")


def _detail(record: Parsed) -> dict[str, str]:
    body = record.raw[88 : 88 + int.from_bytes(record.raw[84:88], "big")]
    found = json.loads(body) if body else {}
    return found if isinstance(found, dict) else {}


def _timeline(records: list[tuple[int, Parsed]]) -> tuple[Event, ...]:
    events, parked = [], False
    for _, record in records:
        name = _EVENTS.get(record.letter)
        if record.letter == "S":
            name = "released" if parked else "restored"
        if name is None:
            continue
        parked = record.letter == "P"
        by = decode_record(record.raw).properties.get("PD_BY") if record.letter != "H" else None
        detail = _detail(record) if record.topic == JOURNAL_TOPIC else {"due_ms": record.due_ms}
        if name == "delivered":
            detail = {"lateness_ms": max(0, record.store_ms - record.due_ms)}
        events.append(Event(record.store_ms, name, by, detail))
    return tuple(events)
