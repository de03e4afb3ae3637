"""Rebuilding: everything derived comes back from the log, as it was.

The log is walked from its first byte to its end and every whole record is dispatched as its writer
did it. What is damaged on the way is noted, with path and offset, and stepped over: the search goes
on at every place that looks like the beginning of a record, so good records behind it stay
readable. A holding unit whose record is damaged counts as settled by `LOST`.

A queue whose records were all removed by retention left no trace in the log. So that it goes on at
its offset, where groups expect it, the old queue table is set aside (``postdate/queues.before``)
and asked for the ends of such queues.

It may be stopped anywhere: ``derived`` is 0 in the control page until it is complete, and the next
one in begins anew.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import numpy as np

from queues.store.append import Appender
from queues.store.commitlog import CommitLog
from queues.store.control import Control, Note, Word
from queues.store.disk import Disk, find_bytes
from queues.store.errors import RecordGone
from queues.store.limits import HOLD_RECORDS_MAX, KEYS_MAX
from queues.store.parts import Parts
from queues.store.queuetable import Queue, read_ends
from queues.store.record import RecordState, check_record
from queues.store.scan import Scanner
from queues.store.schedule import LOST

logger = logging.getLogger(__name__)

#: Derived files and directories, below the root.
DERIVED = (
    "consumequeue", "index", "postdate/schedule", "postdate/queues", "timerwheel", "timerlog",
)  # fmt: skip
QUEUES_BEFORE = "postdate/queues.before"
#: What a record and a filler have at their fifth byte.
_MAGICS = (b"\xda\xa3\x20\xa7", b"\xcb\xd4\x31\x94")
_READABLE = (RecordState.WHOLE, RecordState.FILLER)


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of the log that holds no readable record."""

    path: Path
    #: Log offset.
    offset: int
    size: int
    reason: str


class Walk:
    """Walks a stretch of the log; damage is noted and stepped over."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.damages: list[Damage] = []

    def whole_records(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Offset and size of every whole record."""
        position = start
        while position < end:
            base = self._log.base_of(position)
            limit = min(end - base, self._log.segment_bytes)
            try:
                memory = self._log.memory(base).memory
            except RecordGone:
                self._note(base, position, base + limit, "the segment is missing")
            else:
                yield from self._of_segment(memory, base, position - base, limit)
            position = base + self._log.segment_bytes

    def _of_segment(
        self, memory: mmap, base: int, at: int, limit: int
    ) -> Iterator[tuple[int, int]]:
        view = memoryview(memory)
        while at < limit:
            found = check_record(view, at, limit, base + at, sealed=True)
            if found.state is RecordState.WHOLE:
                yield base + at, found.size
                at += found.size
            elif found.state is RecordState.FILLER:
                return
            else:
                after = self._next_record(memory, at + 1, limit, base)
                self._note(base, base + at, base + after, found.reason or found.state.value)
                at = after

    def _note(self, base: int, start: int, end: int, reason: str) -> None:
        self.damages.append(Damage(self._log.path(base), start, end - start, reason))

    def _next_record(self, memory: mmap, at: int, limit: int, base: int) -> int:
        """The next place that holds a whole record or a filler, or `limit`."""
        view = memoryview(memory)
        while at < limit:
            hits = [find_bytes(memory, mark, at + 4, limit) for mark in _MAGICS]
            places = [hit - 4 for hit in hits if hit >= 0]
            if not places:
                return limit
            place = min(places)
            if check_record(view, place, limit, base + place, sealed=True).state in _READABLE:
                return place
            at = place + 1
        return limit


class Rebuild:
    """Derives everything from the log anew, under the append lock, while nobody else is in."""

    def __init__(self, parts: Parts, index_entries: int) -> None:
        self._parts, self._control = parts, parts.control
        self._appender = Appender(parts)
        self._walk = Walk(parts.log)
        self.damages = self._walk.damages
        self._scanner = Scanner(parts.log, parts.queues, self._is_damaged)
        # One dispatch's entries must fit an index file.
        self._records_max = max(1, min(HOLD_RECORDS_MAX, index_entries // (2 * KEYS_MAX)))
        #: The next offset of each queue that was seen.
        self._ends: dict[int, int] = {}
        #: Log offset and size of the last whole record.
        self.last: tuple[int, int] | None = None

    def run(self, end: int, ends_before: dict[tuple[str, int], int]) -> None:
        """Walk the log up to `end` and dispatch every whole record."""
        places: list[tuple[int, int]] = []
        for place in self._walk.whole_records(self._control.words[Word.LOG_MIN], end):
            places.append(place)
            if len(places) == self._records_max:
                self._dispatch(places)
                places = []
        self._dispatch(places)
        self._resume(ends_before)
        for damage in self.damages:
            logger.error(
                "damaged record at %s, offset %d: %s", damage.path, damage.offset, damage.reason
            )
        self._control.count("damaged", len(self.damages))

    def _is_damaged(self, offset: int) -> bool:
        return any(damage.offset <= offset < damage.offset + damage.size for damage in self.damages)

    def _dispatch(self, places: list[tuple[int, int]]) -> None:
        if not places:
            return
        entries = self._scanner.entries_of(places)
        self.last = places[-1]
        for queue, offset in zip(entries.queues, entries.queue_offsets, strict=True):
            self._see(queue, offset)
        self._appender.dispatch(entries)
        self._control.set(Word.STORE_MS, entries.store_ms[-1])
        progress = self._control.words[Word.HOLDER_PROGRESS]
        self._control.set(Word.HOLDER_PROGRESS, progress + 1)

    def _see(self, queue: Queue, offset: int) -> None:
        """Note that a queue has a unit; those between it and the one before are lost."""
        end = self._ends.get(queue.index)
        if end is None:
            self._begin(queue, offset)
        elif end < offset:
            self._lose(queue, end, offset)
        self._ends[queue.index] = offset + 1

    def _begin(self, queue: Queue, offset: int) -> None:
        if offset:
            self._parts.consume_queues.fill_blank(queue.topic, queue.queue_id, offset)
        self._parts.queues.set_min(queue, offset)

    def _lose(self, queue: Queue, start: int, end: int) -> None:
        self._parts.consume_queues.make_room(queue.topic, queue.queue_id, start, end)
        if queue.scheduled:
            units = np.arange(start, end)
            self._parts.table_of(queue).settle_many(units, np.full(end - start, LOST))

    def _resume(self, ends_before: dict[tuple[str, int], int]) -> None:
        """Let queues without a record in the log go on where they were."""
        if not self._control.words[Word.LOG_MIN]:
            return  # Nothing was ever removed.
        for (topic, queue_id), end in ends_before.items():
            queue = self._parts.queues.obtain(topic, queue_id)
            if end > 0 and queue.index not in self._ends:
                self._begin(queue, end)
                self._parts.queues.set_max(queue, end)


def forget_derived(disk: Disk, root: Path, control: Control) -> dict[tuple[str, int], int]:
    """Remove everything that is derived from the log, before it is rebuilt.

    Returns where each queue ended, as far as that is still known.
    """
    table, before = root / "postdate" / "queues", root / QUEUES_BEFORE
    if control.words[Word.DERIVED] and disk.exists(table):
        disk.rename(table, before)
    control.set(Word.DERIVED, 0)
    control.set(Word.CLEAN, 0)
    control.mapped.sync()
    for name in DERIVED:
        path = root / name
        if path.is_dir():
            disk.remove_tree(path)
        else:
            disk.unlink(path)
    disk.unlink(root / "config" / "timercheck")
    for name in ("consumequeue", "index"):
        disk.make_dirs(root / name)
    control.set(Word.QUEUE_COUNT, 0)
    control.set(Word.INDEX_FILE, 0)
    control.set(Word.NOTE_STATE, Note.NONE)
    return read_ends(disk.read_bytes(before)) if disk.exists(before) else {}
