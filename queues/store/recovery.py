"""Opening after whatever happened: what can be believed, where the log ends, and rebuilding.

==========================  ============================================================
what is found               what is done
==========================  ============================================================
no control page             a new store, or everything derived is rebuilt from the log
this boot, same inode       at worst processes died: the append lock's repair is enough
a clean close               believed, whatever booted since
another boot or inode       the machine crashed or the directory was copied: nothing
                            mapped is believed. The log ends at the first record at or
                            after ``flushed`` that is not whole; what lies behind it is
                            blanked or unlinked; everything derived is rebuilt
a failed sync               as after a crash of the machine
a derived file is missing   everything derived is rebuilt
==========================  ============================================================
"""

import logging
from pathlib import Path

from queues.store.append import Appender
from queues.store.commitlog import CommitLog
from queues.store.control import Control, Note, Word, boot_word
from queues.store.disk import UNFINISHED, Disk
from queues.store.errors import RecordGone, StoreFailed
from queues.store.groupoffsets import cut_groups, distrust_groups
from queues.store.lookup import Lookup
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX
from queues.store.parts import Parts, PartsOf
from queues.store.queuetable import ENTRY_BYTES, Queue
from queues.store.rebuild import QUEUES_BEFORE, Damage, Rebuild, Walk, forget_derived
from queues.store.record import RecordState, check_record
from queues.store.scan import parse

logger = logging.getLogger(__name__)

#: How much is blanked at once.
_STEP_BYTES = 1 << 20


def must_distrust(control: Control, disk: Disk, path: Path) -> bool:
    """Whether the machine may have crashed since the control page was written."""
    words = control.words
    if words[Word.INODE] != disk.inode(path) or words[Word.FAILED]:
        return True
    boot = boot_word(disk)
    return not words[Word.CLEAN] and (boot == 0 or words[Word.BOOT] != boot)


def derived_missing(parts: Parts, root: Path) -> str | None:
    """Why the derived files cannot be believed after a crash of processes; None if they can.

    Found is what is missing or behind. What is damaged inside, `store_verify` finds.
    """
    words, disk = parts.control.words, parts.disk
    if not words[Word.DERIVED]:
        return "a rebuild was not finished"
    if words[Word.COMMITTED] == words[Word.LOG_MIN]:
        return None
    noted = words[Word.NOTE_STATE] != Note.NONE
    newest = words[Word.NOTE_INDEX_FILE if noted else Word.INDEX_FILE]
    if not disk.exists(root / "index" / str(newest)):
        return "an index file is missing"
    if not noted and not _is_indexed(parts):
        return "the index is behind"
    return next(filter(None, (_queue_missing(parts, queue) for queue in parts.queues.queues)), None)


def _is_indexed(parts: Parts) -> bool:
    """Whether the index begins with the log and ends with its last record."""
    files = [parts.index.file(name) for name in parts.index.names()]
    files = [file for file in files if file.count > 1]
    if not files:
        return False
    begin, last = files[0].begin_log_offset, files[-1].end_log_offset
    words, log = parts.control.words, parts.log
    first_end = log.base_of(words[Word.LOG_MIN]) + log.segment_bytes
    size = int.from_bytes(log.read(last, 4), "big") if last >= words[Word.LOG_MIN] else 0
    return begin < first_end and last + size == words[Word.COMMITTED]


def _queue_missing(parts: Parts, queue: Queue) -> str | None:
    """What of a queue is missing or behind."""
    name = f"{queue.topic} {queue.queue_id}"
    if not queue.topic:
        return "the queue table is behind"
    end = parts.queues.max(queue)
    if end == parts.queues.min(queue):
        return None
    first = parts.queues.min(queue)
    for at in (first, end - 1):
        unit = parts.consume_queues.read(queue.topic, queue.queue_id, at, 1)
        if not len(unit) or unit["size"][0] == 0:
            return f"ConsumeQueue {name} is behind"
    if queue.scheduled and not parts.table_of(queue).describes(first, end - 1):
        return f"the schedule table of {name} is behind"
    return None


def find_end(log: CommitLog, start: int, disk: Disk | None = None) -> int:
    """Where the log ends: the first place at or after `start` without a whole record.

    With `disk` they must be on the device as well, and the same: after a failed sync the page cache
    may hold what never got there, and the device what was overwritten since.
    """
    position = start
    while True:
        base = log.base_of(position)
        try:
            memory = memoryview(log.memory(base).memory)
        except RecordGone:
            return position
        device = memory if disk is None else memoryview(disk.read_direct(log.path(base)))
        at = position - base
        while True:
            found = check_record(device, at, len(device), base + at, sealed=True)
            if device[at : at + found.size] != memory[at : at + found.size]:
                return base + at
            if found.state is RecordState.WHOLE:
                at += found.size
            elif found.state is RecordState.FILLER:
                position = base + log.segment_bytes
                break
            else:
                return base + at


def cut(log: CommitLog, end: int, disk: Disk | None = None) -> None:
    """Blank everything behind the log's end, so that nothing torn is ever taken for a record.

    With `disk` also what only the device still holds.
    """
    for base in log.bases():
        if base > end:
            log.remove(base)
    base = log.base_of(end)
    memory = log.memory(base).memory if base in log.bases() else b""
    device = b"" if disk is None or not len(memory) else disk.read_direct(log.path(base))
    for at in range(end - base, len(memory), _STEP_BYTES):
        piece = memory[at : at + _STEP_BYTES]
        if piece.strip(b"\0") or device[at : at + _STEP_BYTES].strip(b"\0"):
            log.write(base + at, bytes(len(piece)))


class Recovery:
    """What the first one in does before anybody uses the store."""

    def __init__(self, root: Path, control: Control, index_entries: int, parts_of: PartsOf) -> None:
        self._root, self._control, self._parts_of = root, control, parts_of
        self._index_entries = index_entries
        #: What a rebuild found to be damaged.
        self.damages: list[Damage] = []

    def run(self, disk: Disk, *, distrusted: bool) -> None:
        """Make the store sound (under the append lock); see the table above."""
        # A scheduler makes its lease's files before it opens the store, so perhaps right now.
        leases = self._root / "postdate" / "leases"
        disk.remove_matching(self._root, f"*{UNFINISHED}", sparing=leases)
        if distrusted:
            self._control.set(Word.QUEUE_COUNT, 0)
        self._see_to_queue_table(disk)
        parts = self._parts_of()
        if distrusted:
            self._recut(parts)
        else:
            self._find_log(parts)
            self._rebuild_if_missing(parts)
            self._flush(parts.log)
        disk.unlink(self._root / QUEUES_BEFORE)

    def _see_to_queue_table(self, disk: Disk) -> None:
        """Do not read queues from a table that is missing or too short for them."""
        path, control = self._root / "postdate" / "queues", self._control
        size = disk.size(path) if disk.exists(path) else 0
        if not size:  # Power was lost while it was made.
            disk.unlink(path)
        if control.words[Word.QUEUE_COUNT] * ENTRY_BYTES > size:
            control.set(Word.DERIVED, 0)
            control.set(Word.QUEUE_COUNT, 0)

    def _recut(self, parts: Parts) -> None:
        """Believe nothing mapped: find the log's end, and derive everything anew."""
        control, log = self._control, parts.log
        bases = log.bases()
        start = max(control.words[Word.FLUSHED], min(bases, default=0))
        device = parts.disk if control.words[Word.FAILED] else None
        end = find_end(log, start, device) if bases else 0
        control.set(Word.NOTE_STATE, Note.NONE)
        cut(log, end, device)
        self._put_on_device(log, start, end)
        control.set(Word.COMMITTED, end)
        control.set(Word.FLUSHED, end)
        distrust_groups(parts.disk, self._root)
        last = self._rebuild(parts, end)
        if last is not None and self._is_half(last):
            end = last[0]
            cut(log, end)
            self._put_on_device(log, end, end)
            control.set(Word.COMMITTED, end)
            control.set(Word.FLUSHED, end)
            self._rebuild(parts, end)
        queues = self._parts_of().queues
        cut_groups(
            parts.disk, self._root, lambda place: queues.end(place.topic, place.queue_id), end
        )

    def _is_half(self, last: tuple[int, int]) -> bool:
        """Whether the log ends with the first record of a renewal by two.

        What is parked, or was driven again, is renewed together with the record that says so.
        Without that one it would wait again. Before the renewal it is as it was.
        """
        parts, (offset, size) = self._parts_of(), last
        record = parse(parts.log.read(offset, size), offset=offset)
        if record.letter != "R":
            return False
        committed = parts.control.words[Word.COMMITTED]
        lookup = Lookup(parts.log, parts.index, parts.queues, parts.table_of, lambda: committed)
        group = record.topic.removeprefix(DEAD_LETTER_PREFIX)
        topics = (RETRY_PREFIX + group,) if group != record.topic else ()
        told = [one for _, one in lookup.records(record.unique_id, topics) if one.letter in "PX"]
        parts.consume_queues.close()
        return any(one.continues == record.continues for one in told)

    def _put_on_device(self, log: CommitLog, start: int, end: int) -> None:
        """Sync what was found whole, and the blanks behind it, before anything is appended.

        After another power loss an old record behind the end could else stand there again.
        """
        try:
            log.sync(start, end)
        except OSError as error:
            self._control.set(Word.FAILED, 1)
            raise StoreFailed(reason=str(error)) from error

    def _flush(self, log: CommitLog) -> None:
        """Let readers see, in sync mode, what a dead process wrote and did not flush."""
        words = self._control.words
        if words[Word.FLUSHED] < words[Word.COMMITTED]:
            self._put_on_device(log, words[Word.FLUSHED], words[Word.COMMITTED])
            self._control.set(Word.FLUSHED, words[Word.COMMITTED])

    def _find_log(self, parts: Parts) -> None:
        """Learn where the log is when the control page is new."""
        control, log = self._control, parts.log
        words = control.words
        if words[Word.COMMITTED] or words[Word.NOTE_STATE] or not log.bases():
            return
        start, end = min(log.bases()), max(log.bases()) + log.segment_bytes
        # Nothing says what was flushed, so nothing whole is thrown away.
        ends = [offset + size for offset, size in Walk(log).whole_records(start, end)]
        control.set(Word.NOTE_STATE, Note.NONE)
        control.set(Word.LOG_MIN, start)
        cut(log, ends[-1] if ends else start)
        control.set(Word.COMMITTED, ends[-1] if ends else start)

    def _rebuild_if_missing(self, parts: Parts) -> None:
        control = self._control
        reason = derived_missing(parts, self._root)
        if control.words[Word.NOTE_STATE]:
            self._repair(parts, believed=reason is None)
        parts.consume_queues.close()
        if not parts.log.bases():
            control.set(Word.DERIVED, 1)
        elif reason is not None:
            logger.warning("the store is rebuilt from its log: %s", reason)
            self._rebuild(parts, control.words[Word.COMMITTED])

    def _repair(self, parts: Parts, *, believed: bool) -> None:
        """Finish or undo the write in which a process died."""
        control = self._control
        if believed:
            Appender(parts).repair()
            return
        if control.words[Word.NOTE_STATE] == Note.WRITTEN:
            control.set(Word.COMMITTED, control.words[Word.NOTE_END])
        else:
            parts.log.zero(control.words[Word.NOTE_START], control.words[Word.NOTE_END])
        control.set(Word.NOTE_STATE, Note.NONE)

    def _rebuild(self, parts: Parts, end: int) -> tuple[int, int] | None:
        """Derive everything anew; log offset and size of the last record."""
        control = self._control
        control.set(Word.LOG_MIN, min(parts.log.bases(), default=0))
        parts.consume_queues.close()
        ends_before = forget_derived(parts.disk, self._root, control)
        parts = self._parts_of()
        rebuild = Rebuild(parts, self._index_entries)
        self.damages = rebuild.damages
        rebuild.run(end, ends_before)
        parts.consume_queues.close()
        control.set(Word.DERIVED, 1)
        return rebuild.last
