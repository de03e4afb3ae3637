"""The short way for one message: the five steps of one write, straight on.

A single send is most of what arrives, and the columns that serve a thousand records cost it more
than the write itself. This is `Appender.write` for one new record that needs nothing made: its
segment, ConsumeQueue block, schedule file and index entries are there. Whatever else is the case,
it writes nothing and answers None, and the caller goes the general way.

The steps, their order, and so the repair are those of `append`.
"""

import struct
import zlib

from queues.store.append import Appender
from queues.store.batch import CRC_BYTES, DUE_AT, ID_AT, ID_BYTES, Row, key_hash
from queues.store.control import Note, Word
from queues.store.encode import Encoder
from queues.store.messages import Kind, Outgoing, Placed
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.parts import Parts

_OFFSETS = struct.Struct(">qq")
_STORE_MS = struct.Struct(">q")
_UNIT = struct.Struct(">qiq")


class SingleSender:
    """Sends one message at a time."""

    def __init__(self, parts: Parts, appender: Appender, encoder: Encoder) -> None:
        self._parts, self._appender, self._encoder = parts, appender, encoder
        self._control, self._clock = parts.control, parts.clock
        self._log_bell = parts.control.bell("log")
        self._loops = {
            SCHEDULE_TOPIC: (Word.WAKE_LEVELS, parts.control.bell("levels")),
            TIMER_TOPIC: (Word.WAKE_WHEEL, parts.control.bell("wheel")),
        }

    def send(self, message: Outgoing, now_ms: int) -> tuple[Placed, int] | None:
        """Store the message and say where the log then ends; None: go the general way."""
        record, row = self._encoder.send(message, now_ms)
        queue = row[2]
        hashes = [key_hash(queue.topic, record[row[1] + ID_AT : row[1] + ID_AT + ID_BYTES])]
        for key in message.keys:
            if not key.isascii():
                return None
            hashes.append(key_hash(queue.topic, key.encode()))
        if not self._parts.reserve.whole() or not self._appender.enter():
            return None
        try:
            placed = self._write(bytearray(record), row, hashes)
        finally:
            self._appender.leave()
        if placed is None:
            return None
        self._log_bell.ring()
        if queue.scheduled:
            wake_word, bell = self._loops[queue.topic]
            if placed.due_ms < self._control.words[wake_word]:
                bell.ring()
        return placed, placed.log_offset + row[0]

    def _has_room(self, row: Row, start: int, unit: int, entries: int) -> bool:
        """Whether step 0 has nothing to do."""
        parts, queue = self._parts, row[2]
        index_file = self._control.words[Word.INDEX_FILE]
        return (
            not self._control.words[Word.FAILED]
            and parts.log.has_room(start, row[0])
            and parts.consume_queues.has_room(queue.topic, queue.queue_id, unit + 1)
            and (not queue.scheduled or parts.table_of(queue).has_room(unit + 1))
            and index_file > 0
            and parts.index.file(index_file).room >= entries
        )

    def _write(self, data: bytearray, row: Row, hashes: list[int]) -> Placed | None:
        parts, control = self._parts, self._control
        words, put = control.words, control.set
        size, property_at, queue, tag, due_ms, delay_ms = row[:6]
        start, unit = words[Word.COMMITTED], parts.queues.max(queue)
        if not self._has_room(row, start, unit, len(hashes)):
            return None
        store_ms = self._appender.store_ms(self._clock.now_ms())
        _OFFSETS.pack_into(data, 20, unit, start)
        _STORE_MS.pack_into(data, 56, store_ms)
        kind: Kind = "T" if queue.scheduled else "I"
        if delay_ms:
            tag = due_ms = store_ms + delay_ms
            data[property_at + DUE_AT : property_at + DUE_AT + 13] = b"%013d" % due_ms
            kind = "L"
        crc = zlib.crc32(memoryview(data)[: size - CRC_BYTES]) & 0x7FFFFFFF
        data[size - 11 : size - 1] = (b"%010d" % crc)[::-1]
        index = parts.index.file(words[Word.INDEX_FILE])
        put(Word.NOTE_START, start)
        put(Word.NOTE_END, start + size)
        put(Word.NOTE_INDEX_FILE, words[Word.INDEX_FILE])
        put(Word.NOTE_INDEX_COUNT, index.count)
        put(Word.NOTE_STATE, Note.WRITING)
        parts.log.write(start, data)
        put(Word.NOTE_STATE, Note.WRITTEN)
        parts.consume_queues.write_one(
            queue.topic, queue.queue_id, unit, _UNIT.pack(start, size, tag)
        )
        if queue.scheduled:
            parts.table_of(queue).add(unit, due_ms, row[6])
        index.append_few([(key_hash, start, store_ms) for key_hash in hashes])
        parts.queues.set_max(queue, unit + 1)
        put(Word.STORE_MS, store_ms)
        put(Word.COMMITTED, start + size)
        put(Word.NOTE_STATE, Note.NONE)
        self._count(kind, size)
        return Placed(start, unit, kind, due_ms, store_ms)

    def _count(self, kind: Kind, size: int) -> None:
        count = self._control.count
        count("sent")
        count("bytes_written", size)
        if kind != "I":
            count("sent_level" if kind == "L" else "sent_timed")
