"""From a message to the bytes of its record: sends, and records made from records.

A record made from another (hand-over, move, restore, renewal) keeps its head, body, tag, keys and
the user's properties; the leading properties are written anew and what described the waiting is
left out, never repeated.
"""

import re
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from queues.store.batch import (
    CRC_BYTES,
    CRC_ROOM,
    HEAD,
    HOST,
    LEADING,
    MAGIC_V1,
    Batch,
    Row,
    Source,
    checked_size,
)
from queues.store.chaintail import ChainTail
from queues.store.crc import crc32
from queues.store.errors import MessageIllegal
from queues.store.hashes import tags_code
from queues.store.held import Held, tag_and_keys, without_by
from queues.store.levels import LevelTable
from queues.store.limits import (
    BODY_BYTES_MAX,
    DUE_MS_MAX,
    KEYS_MAX,
    USER_PROPERTIES_BYTES_MAX,
    USER_PROPERTIES_MAX,
)
from queues.store.marks import PD_FORMER, LedgerMark
from queues.store.messages import Outgoing
from queues.store.names import DEAD_LETTER_PREFIX, JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.queuetable import Queue
from queues.store.schedule import OF_LEVEL


class Link(NamedTuple):
    """The next record of a message's chain in a group."""

    #: ``A`` retry, ``D`` dead letter, ``X`` redrive.
    letter: bytes
    #: Log offset of what it continues.
    at: int
    #: Where the message goes: the group's retry or dead-letter topic.
    topic: str
    queue_id: int
    body: bytes
    flag: int
    born_ms: int
    #: Attempts that failed.
    reconsume_times: int
    unique_id: bytes
    #: TAGS, KEYS, PD_BY and the user's properties, separators included.
    own: bytes
    origin: ChainTail
    #: The ledger entry that it settles.
    mark: LedgerMark | None = None
    #: Log offset of the dead letter that this one replaces.
    former: int | None = None
    #: Wait in this level, or until this time (ms); else it is there at once.
    level: int = 0
    due_ms: int | None = None


#: Finds a queue, and registers it when it is new.
QueueOf = Callable[[str, int], Queue]

#: Packs the length of the properties.
_LENGTH = struct.Struct(">H").pack
_SEPARATORS = re.compile("[\x00\x01\x02]")
#: What a record settles that settles no holding unit.
_NOTHING: tuple[None, int, int] = (None, -1, 0)
_DUE_MS_MAX = min(DUE_MS_MAX, 9_999_999_999_999)


class Encoder:
    """Makes batches of one store."""

    def __init__(self, queue_of: QueueOf, levels: LevelTable, precision_ms: int) -> None:
        self._queue_of, self._levels, self.precision_ms = queue_of, levels, precision_ms
        #: Length and name of a queue's topic, and what its waiting messages end with.
        self._topics: dict[str, bytes] = {}
        self._reals: dict[int, bytes] = {}

    def sends(self, messages: Sequence[Outgoing], now_ms: int) -> Batch:
        """Encode messages as they are first stored; `MessageIllegal` names what cannot be."""
        batch = Batch()
        records, rows, encode = batch.records, batch.rows, self.send
        for message in messages:
            record, row = encode(message, now_ms)
            records.append(record)
            rows.append(row)
            if message.keys:
                batch.add_keys(row[2].topic, message.keys)
        return batch

    def send(self, message: Outgoing, now_ms: int, more: bytes = b"") -> tuple[bytes, Row]:
        """Encode one message as it is first stored, with `more` properties of our own."""
        own = own_properties(message) + more
        real = self._queue_of(message.topic, message.queue_id)
        due_ms, level = message.due_ms, message.level
        if level:
            queue = self._queue_of(SCHEDULE_TOPIC, level - 1)
            tail = self._real(real) + b"DELAY\x01%d\x02" % level
            due_ms, kind, delay_ms, tag = 0, b"L", self._levels.delay_ms(level), 0
        elif due_ms is not None and due_ms > now_ms:
            queue, kind, delay_ms = self._queue_of(TIMER_TOPIC, 0), b"T", 0
            tail = self._timer_properties(real, checked_due(due_ms))
            tag = tags_code(message.tag)
        else:
            queue, kind, delay_ms, tail = real, b"I", 0, b""
            due_ms, tag = message.born_ms, tags_code(message.tag)
        leading = LEADING % (due_ms, b"N", 0, kind, level, 1, message.unique_id.encode())
        body, topic = message.body, self._topic(queue.topic)
        length = len(leading) + len(own) + len(tail) + CRC_BYTES
        size = checked_size(body, topic, length)
        head = HEAD.pack(
            size, MAGIC_V1, crc32(body) & 0x7FFFFFFF, queue.queue_id, message.flag, 0, 0, 0,
            message.born_ms, HOST, 0, HOST, 0, 0, len(body),
        )  # fmt: skip
        row = (size, size - length, queue, tag, due_ms, delay_ms, real.topic_number, None, -1, 0)
        return b"".join((head, body, topic, _LENGTH(length), leading, own, tail, CRC_ROOM)), row

    def _add(
        self, batch: Batch, body: bytes, properties: bytes, queue: Queue, source: Source | None, *,
        flag: int, born_ms: int, reconsume_times: int, tag: int, due_ms: int, topic_number: int,
        delay_ms: int = 0,
    ) -> None:  # fmt: skip
        """Add a record made from another; it may settle a holding unit."""
        topic = self._topic(queue.topic)
        length = len(properties) + CRC_BYTES
        size = checked_size(body, topic, length)
        head = HEAD.pack(
            size, MAGIC_V1, crc32(body) & 0x7FFFFFFF, queue.queue_id, flag, 0, 0, 0,
            born_ms, HOST, 0, HOST, reconsume_times, 0, len(body),
        )  # fmt: skip
        batch.records.append(b"".join((head, body, topic, _LENGTH(length), properties, CRC_ROOM)))
        batch.rows.append(
            (size, size - length, queue, tag, due_ms, delay_ms, topic_number, *(source or _NOTHING))
        )

    def _topic(self, topic: str) -> bytes:
        """The topic as a record holds it: a length byte and the name."""
        found = self._topics.get(topic)
        if found is None:
            name = topic.encode()
            found = self._topics[topic] = len(name).to_bytes(1, "big") + name
        return found

    def _real(self, real: Queue) -> bytes:
        found = self._reals.get(real.index)
        if found is None:
            name = real.topic.encode()
            found = b"REAL_TOPIC\x01%b\x02REAL_QID\x01%d\x02" % (name, real.queue_id)
            self._reals[real.index] = found
        return found

    def _timer_properties(self, real: Queue, due_ms: int) -> bytes:
        """What a record of the timer topic ends with."""
        slot_ms = (due_ms - 1) // self.precision_ms * self.precision_ms
        return self._real(real) + b"TIMER_DELIVER_MS\x01%d\x02TIMER_OUT_MS\x01%d\x02" % (
            due_ms,
            slot_ms,
        )

    # -- records made from records --------------------------------------------------------------

    def hold_again(
        self, batch: Batch, held: Held, source: Source, at: int, letter: bytes, *,
        due_ms: int, kind: bytes, version: int, by: str | None,
    ) -> None:  # fmt: skip
        """Add a new holding record in the timer topic: a move, restore, release or renewal."""
        real = self._queue_of(held.real_topic.decode(), held.real_queue_id)
        level = held.level if kind == b"L" else 0
        leading = LEADING % (
            checked_due(due_ms), letter, at, kind, level, version, held.unique_id,
        )  # fmt: skip
        own = without_by(held.own) + _by(by)
        tag, keys = tag_and_keys(held.own)
        self._add(
            batch, held.body, leading + own + self._timer_properties(real, due_ms),
            self._queue_of(TIMER_TOPIC, 0), source, flag=held.flag, born_ms=held.born_ms,
            reconsume_times=held.reconsume_times, tag=tag, due_ms=due_ms,
            topic_number=real.topic_number | (OF_LEVEL if level else 0),
        )  # fmt: skip
        batch.add_keys(TIMER_TOPIC, keys)

    def link(self, batch: Batch, link: Link, source: Source | None, *, now_ms: int) -> None:
        """Add the next record of a message's chain in a group: a retry, dead letter or redrive."""
        target = self._queue_of(link.topic, link.queue_id)
        tag, keys = tag_and_keys(link.own)
        queue, kind, level, delay_ms, tail = target, b"I", 0, 0, b""
        due_ms, number = now_ms, target.topic_number
        if link.level:
            queue, kind, level = self._queue_of(SCHEDULE_TOPIC, link.level - 1), b"L", link.level
            tail, tag = self._real(target) + b"DELAY\x01%d\x02" % level, 0
            due_ms, delay_ms = 0, self._levels.delay_ms(level)
        elif link.due_ms is not None:
            queue, kind, due_ms = self._queue_of(TIMER_TOPIC, 0), b"T", checked_due(link.due_ms)
            tail = self._timer_properties(target, due_ms)
        elif link.topic.startswith(DEAD_LETTER_PREFIX):
            number = self._queue_of(link.origin.topic, link.origin.queue_id).topic_number
        leading = LEADING % (due_ms, link.letter, link.at, kind, level, 1, link.unique_id)
        mark = link.mark.encode() if link.mark else b""
        if link.former is not None:
            mark = PD_FORMER + b"%d\x02" % link.former + mark
        self._add(
            batch, link.body, leading + link.own + link.origin.encode() + mark + tail, queue,
            source, flag=link.flag, born_ms=link.born_ms, reconsume_times=link.reconsume_times,
            tag=tag, due_ms=due_ms, topic_number=number, delay_ms=delay_ms,
        )  # fmt: skip
        batch.add_keys(queue.topic, keys)
        if link.mark:
            batch.marks.append((len(batch.rows) - 1, link.mark))

    def journal(
        self, batch: Batch, held: Held, source: Source, at: int, letter: bytes, *,
        event: str, by: str | None, body: bytes, now_ms: int,
    ) -> None:  # fmt: skip
        """Add a change without a message of its own: a cancel or a parking."""
        leading = LEADING % (
            held.due_ms, letter, at, held.kind, held.level, held.version, held.unique_id,
        )  # fmt: skip
        told = b"REAL_TOPIC\x01%b\x02PD_EVENT\x01%b\x02" % (held.real_topic, event.encode())
        self._add(
            batch, body, leading + told + _by(by), self._queue_of(JOURNAL_TOPIC, 0), source,
            flag=0, born_ms=now_ms, reconsume_times=0, tag=0, due_ms=held.due_ms, topic_number=0,
        )  # fmt: skip


def checked_due(due_ms: int) -> int:
    """The due time, if the store can keep it."""
    if not 0 < due_ms <= _DUE_MS_MAX:
        raise MessageIllegal(due_ms=due_ms, reason="such a due time cannot be kept")
    return due_ms


def own_properties(message: Outgoing) -> bytes:
    """Tag, keys, sender and the user's properties; `MessageIllegal` for what they may not hold."""
    if len(message.body) > BODY_BYTES_MAX:
        raise MessageIllegal(body_bytes=len(message.body), maximum=BODY_BYTES_MAX)
    text, count = "", 0
    if message.tag:
        text, count = f"TAGS\x01{message.tag}\x02", 1
    if message.keys:
        if len(message.keys) > KEYS_MAX:
            raise MessageIllegal(keys=len(message.keys), maximum=KEYS_MAX)
        text, count = f"{text}KEYS\x01{' '.join(message.keys)}\x02", count + 1
    if message.by:
        text, count = f"{text}PD_BY\x01{message.by}\x02", count + 1
    if message.properties:
        text, count = text + _user_properties(message), count + len(message.properties)
    if text and ("\x00" in text or text.count("\x01") != count or text.count("\x02") != count):
        raise MessageIllegal(reason="a tag, key or property holds a control character")
    return text.encode()


def _user_properties(message: Outgoing) -> str:
    pairs = message.properties
    for name, value in pairs.items():
        if _SEPARATORS.search(name) or _SEPARATORS.search(value):
            raise MessageIllegal(property=name, reason="it holds a control character")
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())
    if len(pairs) > USER_PROPERTIES_MAX or len(text.encode()) > USER_PROPERTIES_BYTES_MAX:
        raise MessageIllegal(properties=len(pairs), reason="too many or too long")
    return text


def _by(by: str | None) -> bytes:
    return b"PD_BY\x01%b\x02" % by.encode() if by else b""
