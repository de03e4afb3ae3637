"""Reading records of ours back: by their fixed places, without taking all properties apart.

`parse` gives what dispatching, lookups and hand-overs need of one record. `Scanner` turns a range
of the log into dispatch entries, for the repair of one write and for a rebuild.
"""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.batch import (
    CRC_BYTES,
    FROM_LETTER_AT,
    ID_BYTES,
    LEADING_BYTES,
    Entries,
    id_hashes,
)
from queues.store.chaintail import origin_topic_of
from queues.store.commitlog import CommitLog
from queues.store.crc import crc32
from queues.store.errors import RecordCorrupt, RecordGone
from queues.store.hashes import index_hashes
from queues.store.held import tag_and_keys
from queues.store.marks import LedgerMark, former_of, mark_of
from queues.store.names import DEAD_LETTER_PREFIX, TIMER_TOPIC, holds_schedule
from queues.store.properties import PD_IDEMPOTENCY, idempotency_text
from queues.store.queuetable import Queue, QueueTable
from queues.store.schedule import LOST, OF_LEVEL

_HOLDING = b"\x02REAL_TOPIC\x01"
_LEADING = b"PD_DUE\x01"
_CRC = b"__CRC32#\x01"
_IDEMPOTENCY = f"\x02{PD_IDEMPOTENCY}\x01".encode()


class Parsed(NamedTuple):
    """A record of ours, by its fixed places."""

    raw: bytes
    topic: str
    queue_id: int
    queue_offset: int
    store_ms: int
    #: Where the properties begin in `raw`.
    property_at: int
    due_ms: int
    #: ``N``, ``H``, ``R``, ``M``, ``C``, ``P``, ``S``, ``A``, ``D``, ``X``: see the design.
    letter: str
    #: Log offset of what it continues.
    continues: int
    kind: str
    level: int
    version: int
    unique_id: str

    @property
    def own(self) -> bytes:
        """What follows the leading properties."""
        return self.raw[self.property_at + LEADING_BYTES :]

    @property
    def settles(self) -> int | None:
        """Log offset of the held record that it settles; None for one that settles none."""
        if self.letter == "D":
            return former_of(self.raw, self.property_at)
        return None if self.letter in "NA" else self.continues

    @property
    def mark(self) -> LedgerMark | None:
        """The ledger entry that a retry or dead-letter record settles."""
        if self.letter not in "AD":
            return None
        return mark_of(self.raw, self.property_at, self.real_topic or self.topic)

    @property
    def real_topic(self) -> str | None:
        """The topic that a holding or journal record is about."""
        at = self.raw.rfind(_HOLDING, self.property_at)
        if at < 0:
            return None
        return self.raw[at + 12 : self.raw.index(b"\x02", at + 12)].decode()

    @property
    def idempotency(self) -> str | None:
        """Fingerprint, colon and key of a message that was sent with an idempotency key."""
        at = self.raw.find(_IDEMPOTENCY, self.property_at + LEADING_BYTES - 1)
        if at < 0:
            return None
        at += len(_IDEMPOTENCY)
        return self.raw[at : self.raw.index(b"\x02", at)].decode()

    @property
    def index_keys(self) -> tuple[str, ...]:
        """What the index knows the record by, beside its id."""
        _, keys = tag_and_keys(self.own)
        told = self.idempotency if self.letter == "N" else None
        return keys if told is None else (*keys, idempotency_text(told))


def parse(raw: bytes, *, path: object = None, offset: int | None = None) -> Parsed:
    """Take the fixed places of a record apart; `RecordCorrupt` for one that is not of ours."""
    try:
        body_end = 88 + int.from_bytes(raw[84:88], "big")
        topic_end = body_end + 1 + raw[body_end]
        at = topic_end + 2
        if raw[at : at + 7] != _LEADING:
            reason = "it does not begin its properties as records of this store do"
            raise RecordCorrupt(path=path, offset=offset, reason=reason)
        return Parsed(
            raw,
            raw[body_end + 1 : topic_end].decode(),
            int.from_bytes(raw[12:16], "big"),
            int.from_bytes(raw[20:28], "big"),
            int.from_bytes(raw[56:64], "big"),
            at,
            int(raw[at + 7 : at + 20]),
            chr(raw[at + 29]),
            int(raw[at + 30 : at + 50]),
            chr(raw[at + 59]),
            int(raw[at + 60 : at + 63]),
            int(raw[at + 75 : at + 81]),
            raw[at + 91 : at + 91 + ID_BYTES].decode(),
        )
    except (ValueError, IndexError) as error:
        raise RecordCorrupt(path=path, offset=offset, reason=str(error)) from error


def is_whole(raw: bytes) -> bool:
    """Whether the record's property CRC, which covers all of it, holds."""
    end = len(raw)
    if raw[end - CRC_BYTES : end - 11] != _CRC:
        return False
    crc = crc32(memoryview(raw)[: end - CRC_BYTES]) & 0x7FFFFFFF
    return raw[end - 11 :] == (b"\x02%010d" % crc)[::-1]


def read_whole(log: CommitLog, offset: int, size: int) -> bytes | None:
    """The bytes of the record at a log offset; None for one that is damaged or gone."""
    try:
        raw = log.read(offset, size)
    except RecordGone:
        return None
    return raw if size > CRC_BYTES and len(raw) == size and is_whole(raw) else None


def letters_at(octets: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """What the records that begin at these places of a segment are (``PD_FROM``'s letter)."""
    lengths = octets[at[:, None] + np.arange(84, 88)].astype(np.int64)
    topic_at = at + 88 + (lengths << np.array([24, 16, 8, 0])).sum(axis=1)
    letter_at = topic_at + 3 + octets[np.minimum(topic_at, len(octets) - 1)] + FROM_LETTER_AT
    letters: npt.NDArray[np.uint8] = octets[np.minimum(letter_at, len(octets) - 1)]
    return letters


def letters_of(log: CommitLog, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """What the records at these log offsets are; 0 for those that are gone and for no offset."""
    found = np.zeros(len(offsets), np.uint8)
    bases = offsets - offsets % log.segment_bytes
    for base in np.unique(bases[offsets > LOST]).tolist():
        chosen = np.flatnonzero((bases == base) & (offsets > LOST))
        with contextlib.suppress(RecordGone):
            octets = log.memory(base).array(np.uint8)
            found[chosen] = letters_at(octets, offsets[chosen] - base)
    return found


class Scanner:
    """Turns stretches of the log into dispatch entries."""

    def __init__(
        self, log: CommitLog, queues: QueueTable, is_damaged: Callable[[int], bool] | None = None
    ) -> None:
        self._log, self._queues = log, queues
        #: Whether a log offset is known to lie in a damaged stretch.
        self._is_damaged = is_damaged or (lambda _: False)

    def entries(self, start: int, end: int) -> Entries:
        """What dispatching the records in [start, end) needs."""
        return self.entries_of(list(self._log.walk(start, end)))

    def entries_of(self, places: list[tuple[int, int]]) -> Entries:
        """What dispatching the records at these offsets, of these sizes, needs."""
        found = [
            parse(self._log.read(offset, size), path=self._log.path, offset=offset)
            for offset, size in places
        ]
        queues = [self._queues.obtain(record.topic, record.queue_id) for record in found]
        data = b"".join(record.raw for record in found)
        starts = np.cumsum([0, *(len(record.raw) for record in found)])[:-1].tolist()
        tags, texts, owners = [], [], []
        for number, record in enumerate(found):
            tag, _ = tag_and_keys(record.own)
            keys = record.index_keys
            tags.append(0 if queues[number].topic != record.topic else tag)
            texts += [f"{record.topic}#{key}" for key in keys]
            owners += [number] * len(keys)
        hashes = id_hashes(data, starts, [p.property_at for p in found], [p.topic for p in found])
        settles = [self.settled_by(record) or (None, -1) for record in found]
        order = np.argsort(np.array([*range(len(found)), *owners], np.int64), kind="stable")
        nothing = [0] * len(found)
        return Entries(
            sizes=[size for _, size in places],
            property_at=[record.property_at for record in found],
            queues=queues,
            tags=tags,
            dues=[record.due_ms for record in found],
            delays=nothing,
            topic_numbers=[self._topic_number(record) for record in found],
            source_queues=[queue for queue, _ in settles],
            units=[unit for _, unit in settles],
            expected=nothing,
            hashes=np.concatenate((hashes, index_hashes(texts)))[order] if texts else hashes,
            owners=np.array([*range(len(found)), *owners], np.int64)[order],
            log_offsets=[offset for offset, _ in places],
            queue_offsets=[record.queue_offset for record in found],
            store_ms=[record.store_ms for record in found],
            marks=[(number, mark) for number, one in enumerate(found) if (mark := one.mark)],
        )

    def _topic_number(self, record: Parsed) -> int:
        if not holds_schedule(record.topic):
            return 0
        dead = record.topic.startswith(DEAD_LETTER_PREFIX)
        topic = origin_topic_of(record.own) if dead else record.real_topic
        number = self._queues.number_of(topic) if topic else 0
        return number | OF_LEVEL if record.topic == TIMER_TOPIC and record.level else number

    def settled_by(self, record: Parsed) -> tuple[Queue, int] | None:
        """The holding unit that the record settles, if its record is still there."""
        continues = record.settles
        if continues is None or self._is_damaged(continues):
            return None
        try:
            head = self._log.read(continues, 88)
            body_end = 88 + int.from_bytes(head[84:88], "big")
            raw = self._log.read(continues + body_end, 129)
            topic = raw[1 : 1 + raw[0]].decode()
        except (RecordGone, IndexError, ValueError):
            return None
        if not holds_schedule(topic):
            return None
        queue = self._queues.obtain(topic, int.from_bytes(head[12:16], "big"))
        return queue, int.from_bytes(head[20:28], "big")
