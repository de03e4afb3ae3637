"""An index file: which records may have a key, newest first, by the hash of ``topic#key``.

RocketMQ's layout:

====================  ==========  ============================================================
at                    bytes       what (big-endian)
====================  ==========  ============================================================
0                     8           store time of the first entry, ms
8                     8           store time of the last entry, ms
16                    8           log offset of the first entry's record
24                    8           log offset of the last entry's record
32                    4           slots in use
36                    4           count: the number that the next entry gets; begins with 1
40                    4 x slots   number of the newest entry whose hash modulo slots is this slot
40 + 4 x slots        20 x n      entries: hash 4, log offset 8, seconds since the first entry 4,
                                  number of the next older entry of the same slot 4 (0: none)
====================  ==========  ============================================================

Entry 0 is never used. Hashes collide, and slots do too: a reader compares the record's real keys.

The invariant: entries are written first, then slots, then the header. Whatever an append was
stopped at, ``rewind`` to the count noted before it followed by the same append gives the same
bytes as an append that was not stopped: a slot that points at an unfinished entry is walked down
through the entries, which were whole before any slot pointed at them.

Example: in a file of 1,000 slots the hash 2,005 belongs to slot 5, bytes 60 to 63.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from queues.store.disk import Mapped
from queues.store.limits import VECTOR_RECORDS_MIN

HEADER: Final = struct.Struct(">qqqqii")
HEADER_BYTES: Final = HEADER.size
SLOT: Final = np.dtype(">i4")
SLOT_BYTES: Final = SLOT.itemsize
ENTRY: Final = np.dtype(
    [("key_hash", ">i4"), ("log_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)
ENTRY_BYTES: Final = ENTRY.itemsize

COUNT_AT: Final = 36
FIRST_COUNT: Final = 1

_INT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">iqii")
_SECONDS_MAX: Final = 2**31 - 1

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def index_file_bytes(slots: int, entries: int) -> int:
    """Return the length of an index file."""
    return HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * entries


class IndexFile:
    """One index file, mapped."""

    def __init__(self, mapped: Mapped, slots: int, entries: int) -> None:
        assert mapped.size_bytes == index_file_bytes(slots, entries), "the sizes are another file's"
        self._mapped = mapped
        self._memory = mapped.memory
        self._slot_count, self._entry_count = slots, entries
        self._entries_at = HEADER_BYTES + SLOT_BYTES * slots
        #: Live views, for many at a time.
        self.slots = mapped.array(SLOT, HEADER_BYTES, slots)
        self.entries = mapped.array(ENTRY, self._entries_at, entries)

    @property
    def count(self) -> int:
        """The number that the next entry gets; one more than the entries there are."""
        return max(FIRST_COUNT, self.stored_count)

    @property
    def stored_count(self) -> int:
        """The count as the header has it: 0 in a fresh file, anything in a damaged one."""
        return int(_INT.unpack_from(self._memory, COUNT_AT)[0])

    @property
    def room(self) -> int:
        """How many entries still fit."""
        return self._entry_count - self.count

    @property
    def begin_ms(self) -> int:
        """Store time of the first entry; 0 while there is none."""
        return self._header()[0]

    @property
    def end_ms(self) -> int:
        """Store time of the last entry; 0 while there is none."""
        return self._header()[1]

    @property
    def begin_log_offset(self) -> int:
        """Log offset of the first entry's record; 0 while there is none."""
        return self._header()[2]

    @property
    def end_log_offset(self) -> int:
        """Log offset of the last entry's record; 0 while there is none."""
        return self._header()[3]

    @property
    def slots_used(self) -> int:
        """How many slots point at an entry."""
        return self._header()[4]

    def append(self, key_hashes: Int32s, log_offsets: Int64s, store_ms: Int64s) -> None:
        """Add entries, in log order; the caller saw that there is ``room``.

        The hashes are those of ``hashes.index_hashes``: none is negative.
        """
        assert len(key_hashes) <= self.room, "the index file is full"
        if len(key_hashes) < VECTOR_RECORDS_MIN:
            self.append_few(
                zip(key_hashes.tolist(), log_offsets.tolist(), store_ms.tolist(), strict=True)
            )
            return
        begin_ms, end_ms, begin_offset, _, used, count = self._header()
        count = max(FIRST_COUNT, count)
        if count == FIRST_COUNT:
            begin_ms, begin_offset, end_ms, used = int(store_ms[0]), int(log_offsets[0]), 0, 0
        numbers = np.arange(count, count + len(key_hashes), dtype=np.int32)
        slots = key_hashes % np.int32(self._slot_count)
        order = np.argsort(slots, kind="stable")
        ordered, ordered_numbers = slots[order], numbers[order]
        first = np.empty(len(slots), dtype=np.bool_)
        first[0], first[1:] = True, ordered[1:] != ordered[:-1]
        last = np.append(first[1:], True)
        standing = self._standing(ordered[first], count)
        previous = np.empty(len(slots), dtype=np.int32)
        previous[1:] = ordered_numbers[:-1]
        previous[first] = standing
        entries = np.empty(len(slots), dtype=ENTRY)
        entries["key_hash"] = key_hashes
        entries["log_offset"] = log_offsets
        entries["seconds"] = np.clip((store_ms - begin_ms) // 1000, 0, _SECONDS_MAX)
        entries["previous"][order] = previous
        self._mapped.assign(self.entries, slice(count, count + len(slots)), entries)
        self._mapped.assign(self.slots, ordered[last], ordered_numbers[last])
        used += int(np.count_nonzero(standing == 0))
        # A file is chosen by time: after a step back of the clock the end is not the last one's.
        end_ms, end_offset = max(end_ms, int(store_ms.max())), int(log_offsets[-1])
        self._set_header(begin_ms, end_ms, begin_offset, end_offset, used, count + len(slots))

    def append_few(self, few: Iterable[tuple[int, int, int]]) -> None:
        """Add entries (hash, log offset, store time) one by one: quicker than arrays for a few."""
        begin_ms, end_ms, begin_offset, end_offset, used, count = self._header()
        count = number = max(FIRST_COUNT, count)
        if count == FIRST_COUNT:
            used = 0
        heads: dict[int, int] = {}
        entries = bytearray()
        for key_hash, log_offset, store_ms in few:
            if number == FIRST_COUNT:
                begin_ms, begin_offset = store_ms, log_offset
            slot = key_hash % self._slot_count
            previous = heads.get(slot)
            if previous is None:
                previous = self._standing_one(slot, count)
                used += previous == 0
            seconds = min(max(0, (store_ms - begin_ms) // 1000), _SECONDS_MAX)
            entries += _ENTRY.pack(key_hash, log_offset, seconds, previous)
            heads[slot] = number
            number += 1
            end_ms, end_offset = max(end_ms, store_ms), log_offset
        assert number <= self._entry_count, "the index file is full"
        if number == count:
            return
        self._mapped.put(self._entries_at + count * ENTRY_BYTES, bytes(entries))
        for slot, head in heads.items():
            self._mapped.put(HEADER_BYTES + slot * SLOT_BYTES, _INT.pack(head))
        self._set_header(begin_ms, end_ms, begin_offset, end_offset, used, number)

    def count_with_room(self, entries: int) -> int:
        """How many entries there are, counted as `count` does; 0 if none, or no room for more."""
        (count,) = _INT.unpack_from(self._memory, COUNT_AT)
        return count if FIRST_COUNT < count <= self._entry_count - entries else 0

    def append_one(self, key_hashes: Sequence[int], log_offset: int, store_ms: int) -> None:
        """Add the entries of one record: what `append_few` does, straight on.

        The caller saw that the file has entries already, and room for these.
        """
        memory, slot_count = self._memory, self._slot_count
        begin_ms, end_ms, begin_offset, _, used, count = HEADER.unpack_from(memory, 0)
        seconds = min(max(0, (store_ms - begin_ms) // 1000), _SECONDS_MAX)
        heads: dict[int, int] = {}
        number, entries = count, b""
        for key_hash in key_hashes:
            slot = HEADER_BYTES + key_hash % slot_count * SLOT_BYTES
            previous = heads.get(slot)
            if previous is None:
                (previous,) = _INT.unpack_from(memory, slot)
                if not 0 < previous < count:
                    previous = 0
                    used += 1
            entries += _ENTRY.pack(key_hash, log_offset, seconds, previous)
            heads[slot] = number
            number += 1
        put = self._mapped.put
        put(self._entries_at + count * ENTRY_BYTES, entries)
        for slot, head in heads.items():
            put(slot, _INT.pack(head))
        end_ms = max(end_ms, store_ms)
        put(0, HEADER.pack(begin_ms, end_ms, begin_offset, log_offset, used, number))

    def rewind(self, count: int) -> None:
        """Forget all entries from number ``count`` on, however far their append came.

        May be stopped anywhere and repeated.
        """
        count = max(FIRST_COUNT, count)
        heads = np.array(self.slots)
        wrong = np.flatnonzero(heads >= count)
        if wrong.size:
            walked = [self._walked_down(int(head), count) for head in heads[wrong]]
            self._mapped.assign(self.slots, wrong, walked)
        used = int(np.count_nonzero(self.slots))
        begin_ms, end_ms, begin_offset, _, _, _ = self._header()
        if count == FIRST_COUNT:
            self._set_header(0, 0, 0, 0, used, count)
            return
        last = self.entries[count - 1]
        # The entry knows its second only; a file is chosen by time, so the end may not be early.
        last_ms = begin_ms + int(last["seconds"]) * 1000 + 999
        self._set_header(
            begin_ms, min(end_ms, last_ms), begin_offset, int(last["log_offset"]), used, count
        )

    def lookup(self, key_hash: int, begin_ms: int, end_ms: int, limit: int) -> list[int]:
        """Return log offsets of records that may have the key, newest first, at most ``limit``.

        Entries know their time to the second: one that may lie within the bounds is given.
        """
        found: list[int] = []
        memory, at = self._memory, self._entries_at
        first_ms = self.begin_ms
        (number,) = _INT.unpack_from(
            memory, HEADER_BYTES + key_hash % self._slot_count * SLOT_BYTES
        )
        bound = self._entry_count
        while 0 < number < bound and len(found) < limit:
            bound = number  # Each entry's predecessor is older; anything else is damage.
            told, log_offset, seconds, number = _ENTRY.unpack_from(
                memory, at + number * ENTRY_BYTES
            )
            entry_ms = first_ms + seconds * 1000
            if told == key_hash and entry_ms + 999 >= begin_ms and entry_ms <= end_ms:
                found.append(log_offset)
        return found

    def sync(self) -> None:
        """Put the file on the device."""
        self._mapped.sync()

    def _header(self) -> tuple[int, int, int, int, int, int]:
        return HEADER.unpack_from(self._memory, 0)

    def _set_header(self, *values: int) -> None:
        self._mapped.put(0, HEADER.pack(*values))

    def _standing(self, slots: Int32s, count: int) -> Int32s:
        """Return the slots' entries as they stand; 0 for what is no entry below ``count``."""
        heads = self.slots[slots].astype(np.int32)
        heads[(heads < 0) | (heads >= count)] = 0
        return heads

    def _standing_one(self, slot: int, count: int) -> int:
        (head,) = _INT.unpack_from(self._memory, HEADER_BYTES + slot * SLOT_BYTES)
        return head if 0 < head < count else 0

    def _walked_down(self, number: int, count: int) -> int:
        bound = self._entry_count
        while count <= number < bound:
            bound = number
            (number,) = _INT.unpack_from(
                self._memory, self._entries_at + number * ENTRY_BYTES + ENTRY_BYTES - SLOT_BYTES
            )
        return number if 0 < number < count else 0
