"""Sending once: messages with an idempotency key, of which a repeat stores nothing.

The key lies with the record as its property ``PD_IDEMPOTENCY``: 32 hex digits of what was sent (the
*fingerprint*), a colon, and the key. The record that a send wrote (letter ``N``) is in the index
under ``IDEMPOTENCY <key>`` too; no business key holds a space. Nothing else is kept: the key comes
and goes with its record, and is rebuilt with the index.

Whether a key was used is looked up without the append lock first, which answers most repeats. If
anything was written since, it is looked up again under the lock that writes the message, in the
index files that may have grown, so that of two senders at the same moment one stores and the other
sees it.

Example: ``PD_IDEMPOTENCY\\x01 0123456789abcdef0123456789abcdef:order-7@1790000000000``.
"""

from collections.abc import Callable, Sequence

from queues.store.append import Appender
from queues.store.batch import Batch, key_hash, seal
from queues.store.control import Word
from queues.store.encode import Encoder
from queues.store.errors import MessageIllegal, RecordCorrupt, RecordGone, StoreFull
from queues.store.held import real_of
from queues.store.index import SKEW_MS
from queues.store.indexfile import IndexFile
from queues.store.limits import HOLD_BYTES_MAX, KEYED_RECORDS_MAX
from queues.store.messages import Once, Placed, Repeat
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC, holds_schedule
from queues.store.parts import Parts
from queues.store.properties import PD_IDEMPOTENCY, idempotency_text
from queues.store.scan import Parsed, is_whole, parse
from queues.store.sending import placed_of
from queues.store.single import SingleSender

#: How long a key is known.
REMEMBERED_MS = 24 * 3_600_000
_FINGERPRINT_DIGITS = 32
#: Candidates that are looked at: older uses of the key, and others with its hash.
_CANDIDATES_MAX = 64
_NO_END_MS = 1 << 62

#: What became of one message: stored now, or what an earlier one with its key became.
Sent = Placed | Repeat


class OnceSender:
    """Sends messages with idempotency keys, for one store."""

    def __init__(
        self, parts: Parts, appender: Appender, encoder: Encoder,
        settle_flush: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._parts, self._appender, self._encoder = parts, appender, encoder
        self._settle_flush = settle_flush
        self._single = SingleSender(parts, appender, encoder)
        #: A hold's keys take at most half of an index file.
        self._entries_max = parts.index.entries_max // 2

    def send(self, messages: Sequence[Once]) -> list[Sent]:
        """Store what was not sent before; what became of each, which is as durable as any send.

        A key that comes twice is sent once: the later ones are repeats of the first. Raises as
        `Store.send` does.
        """
        try:
            sent, end = self._send(messages)
        except StoreFull:
            with self._appender.hold():
                self._parts.control.count("sends_refused", len(messages))
            raise
        self._settle_flush(end)
        return sent

    def is_repeat(self, once: Once) -> bool:
        """Whether a message's key was used before, as far as readers can see now."""
        now_ms, files = self._parts.clock.now_ms(), list(self._parts.index.files())
        return self._find(once, now_ms, files) is not None

    def _send(self, messages: Sequence[Once]) -> tuple[list[Sent], int]:
        sent: dict[int, Sent] = {}
        first_of: dict[tuple[str, str], int] = {}
        again: dict[int, int] = {}
        for number, (message, key, _) in enumerate(messages):
            if key is not None:
                first = first_of.setdefault((message.topic, key), number)
                if first != number:
                    again[number] = first
        end = 0
        for part in _holds(messages, again, self._entries_max):
            end = max(end, self._send_part(messages, part, sent))
        for number, first in again.items():
            sent[number] = _repeat_of(messages[first], sent[first])
        return [sent[number] for number in range(len(messages))], end

    def _send_part(self, messages: Sequence[Once], part: list[int], sent: dict[int, Sent]) -> int:
        """Send what one hold may take; where the log must be flushed to."""
        now_ms, index = self._parts.clock.now_ms(), self._parts.index
        words = self._parts.control.words
        seen, file = words[Word.COMMITTED], words[Word.INDEX_FILE]
        missing, end = self._look(messages, part, now_ms, list(index.files()), sent)
        if not missing:
            return end
        sealed = None
        if len(missing) > 1:
            sealed = seal(self._encoded([messages[number] for number in missing], now_ms))
        with self._appender.hold():
            left = missing
            if words[Word.COMMITTED] != seen:
                same = file and file == words[Word.INDEX_FILE]
                files = [index.file(file)] if same else list(index.files(file))
                left, found_end = self._look(messages, missing, now_ms, files, sent)
                end = max(end, found_end)
            if len(left) == 1 and (done := self._send_one(messages[left[0]], now_ms)):
                sent[left[0]] = done[0]
                return max(end, done[1])
            if sealed is None or len(left) < len(missing):
                sealed = seal(self._encoded([messages[number] for number in left], now_ms))
            written = self._appender.write(sealed, "sent", privileged=False)
        sent.update(zip(left, placed_of(written), strict=True))
        return max(end, written.end)

    def _look(
        self, messages: Sequence[Once], numbers: list[int], now_ms: int,
        files: Sequence[IndexFile], sent: dict[int, Sent],
    ) -> tuple[list[int], int]:  # fmt: skip
        """Note repeats in `sent`; the numbers of the others, and where the repeats' log ends."""
        missing, end = [], 0
        for number in numbers:
            found = self._find(messages[number], now_ms, files)
            if found is None:
                missing.append(number)
            else:
                sent[number], end = found[0], max(end, found[1])
        return missing, end

    def _send_one(self, once: Once, now_ms: int) -> tuple[Placed, int] | None:
        """The short way for one (under the append lock); None: go the general way."""
        message, key, fingerprint = once
        if key is None:
            return self._single.send(message, now_ms)
        own, text = _property(key, fingerprint), idempotency_text(f":{key}")
        return self._single.send(message, now_ms, own, (text,))

    def _encoded(self, messages: Sequence[Once], now_ms: int) -> Batch:
        batch = Batch()
        for message, key, fingerprint in messages:
            own = b"" if key is None else _property(key, fingerprint)
            record, row = self._encoder.send(message, now_ms, own)
            batch.records.append(record)
            batch.rows.append(row)
            batch.add_keys(row[2].topic, message.keys)
            if key is not None:
                batch.add_keys(row[2].topic, (idempotency_text(f":{key}"),))
        return batch

    # -- looking --------------------------------------------------------------------------------

    def _find(
        self, once: Once, now_ms: int, files: Sequence[IndexFile]
    ) -> tuple[Repeat, int] | None:
        """What the key's first use became, and where its record ends; None for a new key."""
        message, key, _ = once
        hashes, begin_ms = _hashes(once), now_ms - REMEMBERED_MS - SKEW_MS
        for file in files if key is not None else ():
            if file.end_ms < begin_ms:
                continue
            for one in hashes:
                for offset in file.lookup(one, begin_ms, _NO_END_MS, _CANDIDATES_MAX):
                    record = self._read(offset)
                    if record is not None and _is_use_of(record, message.topic, key, now_ms):
                        return _repeat(record), offset + len(record.raw)
        return None

    def _read(self, offset: int) -> Parsed | None:
        """A committed record; None for one that is damaged or gone."""
        if offset >= self._parts.control.words[Word.COMMITTED]:
            return None
        try:
            size = int.from_bytes(self._parts.log.read(offset, 4), "big")
            raw = self._parts.log.read(offset, size)
            return parse(raw, offset=offset) if is_whole(raw) else None
        except (RecordGone, RecordCorrupt):
            return None


def _hashes(once: Once) -> tuple[int, ...]:
    """The index hashes of a message's key, wherever its first use waits or waited."""
    message, key, _ = once
    if key is None:
        return ()
    text = idempotency_text(f":{key}").encode("ascii")
    topics = message.topic, SCHEDULE_TOPIC, TIMER_TOPIC
    return tuple(key_hash(topic, text) for topic in topics)


def _is_use_of(record: Parsed, topic: str, key: str | None, now_ms: int) -> bool:
    told = record.idempotency
    return (
        told is not None
        and told[_FINGERPRINT_DIGITS + 1 :] == key
        and record.letter == "N"
        and (record.real_topic if holds_schedule(record.topic) else record.topic) == topic
        and now_ms - record.store_ms < REMEMBERED_MS
    )


def _repeat(record: Parsed) -> Repeat:
    queue_id = record.queue_id
    if holds_schedule(record.topic):
        raw = record.raw
        at = raw.rfind(b"\x02REAL_TOPIC\x01", record.property_at) + 12
        _, queue_id = real_of(raw[at:].split(b"\x02", 2))
    told = record.idempotency or ""
    born_ms = int.from_bytes(record.raw[40:48], "big")
    return Repeat(
        record.unique_id, queue_id, record.kind, record.level,  # type: ignore[arg-type]
        record.due_ms, born_ms, told[:_FINGERPRINT_DIGITS],
    )  # fmt: skip


def _repeat_of(first: Once, sent: Sent) -> Repeat:
    """What a message is told whose key an earlier one of the same request has."""
    if isinstance(sent, Repeat):
        return sent
    message = first.message
    level = message.level if sent.kind == "L" else 0
    return Repeat(
        message.unique_id, message.queue_id, sent.kind, level, sent.due_ms, message.born_ms,
        first.fingerprint,
    )  # fmt: skip


def _property(key: str, fingerprint: str) -> bytes:
    if len(fingerprint) != _FINGERPRINT_DIGITS or not key.isascii() or not key.isprintable():
        raise MessageIllegal(idempotency_key=key, reason="it is not of printable ASCII characters")
    return f"{PD_IDEMPOTENCY}\x01{fingerprint}:{key}\x02".encode()


def _holds(messages: Sequence[Once], again: dict[int, int], entries_max: int) -> list[list[int]]:
    """The numbers of the messages, cut into what one hold of the lock may take."""
    parts: list[list[int]] = []
    size = entries = 0
    for number, (message, _, _) in enumerate(messages):
        if number in again:
            continue
        size += len(message.body)
        entries += 2 + len(message.keys)
        full = size > HOLD_BYTES_MAX or entries > entries_max
        if not parts or full or len(parts[-1]) >= KEYED_RECORDS_MAX:
            parts.append([])
            size, entries = len(message.body), 2 + len(message.keys)
        parts[-1].append(number)
    return parts
