"""The short way for one message: the five steps of one write, straight on.

A single send is most of what arrives, and the columns that serve a thousand records cost it more
than the write itself. This is `Appender.write` for one new record that needs nothing made: its
segment, ConsumeQueue block, schedule file and index entries are there. Whatever else is the case,
it writes nothing and answers None, and the caller goes the general way.

The steps, their order, and so the repair are those of `append`.
"""

import struct
import zlib
from collections.abc import Mapping

from queues.store.append import Appender
from queues.store.batch import CRC_BYTES, DUE_AT, ID_AT, ID_BYTES, Row, key_hash
from queues.store.control import Note, Word, counter_word
from queues.store.encode import Encoder
from queues.store.messages import Kind, Outgoing, Placed
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.parts import Parts

_OFFSETS = struct.Struct(">qq")
_STORE_MS = struct.Struct(">q")
_UNIT = struct.Struct(">qiq")
# Plain numbers: an enum's member costs more to look up than what is done with it here.
_COMMITTED, _FAILED, _INDEX_FILE = int(Word.COMMITTED), int(Word.FAILED), int(Word.INDEX_FILE)
_NOTE_STATE, _STORE_MS_WORD = int(Word.NOTE_STATE), int(Word.STORE_MS)
_NONE, _WRITING, _WRITTEN = int(Note.NONE), int(Note.WRITING), int(Note.WRITTEN)
_BYTES_WRITTEN = counter_word("bytes_written")
#: What a message of each kind counts as.
_COUNTED: Mapping[Kind, tuple[int, ...]] = {
    "I": (counter_word("sent"),),
    "L": (counter_word("sent"), counter_word("sent_level")),
    "T": (counter_word("sent"), counter_word("sent_timed")),
}


class SingleSender:
    """Sends one message at a time."""

    counted = _COUNTED

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

    def _write(self, data: bytearray, row: Row, hashes: list[int]) -> Placed | None:
        parts, words, put = self._parts, self._control.words, self._control.set
        size, property_at, queue, tag, due_ms, delay_ms = row[:6]
        start, unit = words[_COMMITTED], parts.queues.max(queue)
        table = parts.table_of(queue) if queue.scheduled else None
        name = words[_INDEX_FILE]
        index = parts.index.file(name) if name > 0 else None
        index_count = index.count_with_room(len(hashes)) if index else 0
        if (
            index is None
            or index_count == 0
            or words[_FAILED]
            or not parts.log.has_room(start, size)
            or not parts.consume_queues.has_room(queue.topic, queue.queue_id, unit + 1)
            or (table is not None and not table.has_room(unit + 1))
        ):
            return None
        store_ms = self._appender.store_ms(self._clock.now_ms())
        _OFFSETS.pack_into(data, 20, unit, start)
        _STORE_MS.pack_into(data, 56, store_ms)
        kind: Kind = "I" if table is None else "T"
        if delay_ms:
            tag = due_ms = store_ms + delay_ms
            data[property_at + DUE_AT : property_at + DUE_AT + 13] = b"%013d" % due_ms
            kind = "L"
        crc = zlib.crc32(memoryview(data)[: size - CRC_BYTES]) & 0x7FFFFFFF
        data[size - 11 : size - 1] = (b"%010d" % crc)[::-1]
        self._control.note(start, start + size, name, index_count)
        put(_NOTE_STATE, _WRITING)
        parts.log.write(start, data)
        put(_NOTE_STATE, _WRITTEN)
        unit_bytes = _UNIT.pack(start, size, tag)
        parts.consume_queues.write_one(queue.topic, queue.queue_id, unit, unit_bytes)
        if table is not None:
            table.add(unit, due_ms, row[6])
        index.append_one(hashes, start, store_ms)
        parts.queues.set_max(queue, unit + 1)
        put(_STORE_MS_WORD, store_ms)
        put(_COMMITTED, start + size)
        put(_NOTE_STATE, _NONE)
        for word in self.counted[kind]:
            put(word, words[word] + 1)
        put(_BYTES_WRITTEN, words[_BYTES_WRITTEN] + size)
        return Placed(start, unit, kind, due_ms, store_ms)
