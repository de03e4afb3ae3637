"""The short way of one write: one record that needs nothing made, straight on.

The columns that serve a thousand records cost one more than the write itself. This is
`Appender.write` for one record whose segment, ConsumeQueue block, schedule file and index entries
are there. Whatever else is the case, it writes nothing and answers None, and the caller goes the
general way.

The steps, their order, and so the repair are those of `append`.
"""

import struct

from queues.store.append import Appender
from queues.store.batch import CRC_BYTES, DUE_AT, Row, key_hash
from queues.store.control import Note, Word, counter_word
from queues.store.crc import crc32
from queues.store.messages import Kind, Placed
from queues.store.parts import Parts
from queues.store.queuetable import Queue

_OFFSETS = struct.Struct(">qq")
_STORE_MS = struct.Struct(">q")
_UNIT = struct.Struct(">qiq")
# Plain numbers: an enum's member costs more to look up than what is done with it here.
_COMMITTED, _FAILED, _INDEX_FILE = int(Word.COMMITTED), int(Word.FAILED), int(Word.INDEX_FILE)
_NOTE_STATE, _STORE_MS_WORD = int(Word.NOTE_STATE), int(Word.STORE_MS)
_NONE, _WRITING, _WRITTEN = int(Note.NONE), int(Note.WRITING), int(Note.WRITTEN)
_BYTES_WRITTEN = counter_word("bytes_written")


def hashes_of(queue: Queue, unique_id: bytes, keys: tuple[str, ...]) -> list[int] | None:
    """The index hashes of a record's id and keys; None when one of them needs the general way."""
    hashes = [key_hash(queue.topic, unique_id)]
    for key in keys:
        if not key.isascii():
            return None
        hashes.append(key_hash(queue.topic, key.encode()))
    return hashes


class OneWrite:
    """Writes one record at a time."""

    def __init__(self, parts: Parts, appender: Appender) -> None:
        self._parts, self._appender, self._control = parts, appender, parts.control

    def write(self, record: bytes, row: Row, hashes: list[int], now_ms: int) -> Placed | None:
        """Write the record (under the append lock); None: nothing is written.

        The caller saw that what it settles still waits, and counts it.
        """
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
        store_ms = self._appender.store_ms(now_ms)
        kind: Kind = "I" if table is None else "T"
        data = bytearray(record)
        _OFFSETS.pack_into(data, 20, unit, start)
        _STORE_MS.pack_into(data, 56, store_ms)
        if delay_ms:
            tag = due_ms = store_ms + delay_ms
            data[property_at + DUE_AT : property_at + DUE_AT + 13] = b"%013d" % due_ms
            kind = "L"
        crc = crc32(memoryview(data)[: size - CRC_BYTES]) & 0x7FFFFFFF
        data[size - 11 : size - 1] = (b"%010d" % crc)[::-1]
        self._control.note(start, start + size, name, index_count)
        put(_NOTE_STATE, _WRITING)
        parts.log.write(start, data)
        put(_NOTE_STATE, _WRITTEN)
        unit_bytes = _UNIT.pack(start, size, tag)
        parts.consume_queues.write_one(queue.topic, queue.queue_id, unit, unit_bytes)
        if table is not None:
            table.add(unit, due_ms, row[6])
        source = row[7]
        if source is not None:
            parts.table_of(source).settle(row[8], start)
        index.append_one(hashes, start, store_ms)
        parts.queues.set_max(queue, unit + 1)
        put(_STORE_MS_WORD, store_ms)
        put(_COMMITTED, start + size)
        put(_NOTE_STATE, _NONE)
        put(_BYTES_WRITTEN, words[_BYTES_WRITTEN] + size)
        return Placed(start, unit, kind, due_ms, store_ms)
