"""One write: how records come into the log, and what repairs a write that was stopped half-way.

Under the append lock a writer

0. makes room in everything that step 4 touches, so that nothing after step 1 can lack space;
1. notes in the control page where it will write (note state 1);
2. writes the records, one ``pwrite`` a segment;
3. marks them written (note state 2);
4. brings ConsumeQueues, schedule table, index and queue table up to date;
5. advances ``committed``, clears the note, unlocks, rings.

Whoever takes the lock and finds state 1 blanks the noted range; state 2, dispatches it again and
commits. Nothing derived is touched before step 3, and no reader looks beyond ``committed``, so
every stop between two instructions leaves either the whole write or none of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from queues.store.batch import Batch, Column, Entries, Sealed, column, numbers, seal
from queues.store.commitlog import FILLER, FILLER_MAGIC, Piece
from queues.store.control import Note, Word
from queues.store.dispatch import Dispatcher
from queues.store.errors import StoreClosing, StoreFailed, StoreForked
from queues.store.limits import STEP_BACK_HIDDEN_MS, VECTOR_RECORDS_MIN
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.parts import Parts
from queues.store.patching import patch
from queues.store.queuetable import Queue


class Written(NamedTuple):
    """What one hold of the append lock did."""

    #: The records that were written.
    entries: Entries
    #: STORETIMESTAMP of all of them.
    store_ms: int
    #: Where the log ended after the hold.
    end: int
    #: Units of records that were not written: their source had been settled by someone else.
    settled: tuple[int, ...] = ()
    #: Units of records that were not written: not due by this hold's clock reading.
    not_due: tuple[int, ...] = ()


# Plain numbers: an enum's member costs more to look up than what is done with it.
_HOLDER, _HOLDER_PROGRESS = int(Word.HOLDER), int(Word.HOLDER_PROGRESS)
_NOTE_STATE, _STORE_MS = int(Word.NOTE_STATE), int(Word.STORE_MS)
_TOPIC = attrgetter("topic")
#: A hand-over that is later than this counts as late.
LATE_MS = 100


class Appender:
    """Writes batches, one hold of the append lock each."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._control, self._queues, self._log = parts.control, parts.queues, parts.log
        self._dispatcher = Dispatcher(
            parts.queues, parts.consume_queues, parts.index, parts.table_of, parts.marks
        )
        self._log_bell = parts.control.bell("log")
        self._loop_bells = (
            (SCHEDULE_TOPIC, Word.WAKE_LEVELS, parts.control.bell("levels")),
            (TIMER_TOPIC, Word.WAKE_WHEEL, parts.control.bell("wheel")),
        )
        self._process_id = parts.disk.process_id()
        self._holder = threading.local()
        self._closed = False

    # -- the lock -------------------------------------------------------------------------------

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the append lock, any half-done write repaired; entered twice, it is one hold."""
        entered = self.enter()
        try:
            yield
        finally:
            if entered:
                self.leave()

    def enter(self) -> bool:
        """Take the lock; False when this thread holds it already."""
        if getattr(self._holder, "held", False):
            return False
        self._take()
        return True

    def close(self) -> None:
        """Take no lock any more (inside the last hold): whoever tries gets `StoreClosing`."""
        self._closed = True

    def _take(self) -> None:
        control = self._control
        if self._parts.disk.process_id() != self._process_id:
            raise StoreForked
        self._parts.lock.acquire()
        if self._closed:
            self._parts.lock.release()
            raise StoreClosing
        self._holder.held = True
        control.set(_HOLDER, self._process_id)
        control.set(_HOLDER_PROGRESS, control.words[_HOLDER_PROGRESS] + 1)
        try:
            if control.words[_NOTE_STATE]:
                self.repair()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Let the lock go."""
        self._holder.held = False
        try:
            self._control.set(_HOLDER, 0)
        finally:
            self._parts.lock.release()

    def finish(self) -> int:
        """Finish or undo a write that its process died in, if there is one; the log's end."""
        with self.hold():
            return self._control.words[Word.COMMITTED]

    # -- one write ------------------------------------------------------------------------------

    def write(
        self, batch: Batch | Sealed, counter: str, *, privileged: bool, gated: bool = False
    ) -> Written:
        """Append the batch in one hold; records whose source is settled otherwise are left out.

        `counter` is what it counts as, one of `control.COUNTERS`.

        A `privileged` write (hand-over, cancel, retry, ack) may use what is kept back on a full
        disk. A `gated` one leaves out what is not due by the hold's own clock reading.
        Raises `StoreFull` or `DiskFull` with nothing changed, `StoreFailed` after a failed sync.
        """
        sealed = batch if isinstance(batch, Sealed) else seal(batch)
        entered = self.enter()
        try:
            if self._control.words[Word.FAILED]:
                raise StoreFailed
            now_ms = self._parts.clock.now_ms()
            settled: tuple[int, ...] = ()
            not_due: tuple[int, ...] = ()
            if any(sealed.entries.source_queues):
                sealed, settled, not_due = self._decided(sealed, now_ms if gated else None)
            if not sealed.starts:
                end = self._control.words[Word.COMMITTED]
                return Written(sealed.entries, now_ms, end, settled, not_due)
            store_ms, end = self._append(sealed, now_ms, privileged=privileged)
            self._count(counter, sealed.entries, store_ms)
        finally:
            if entered:
                self.leave()
        self.ring(sealed.entries)
        return Written(sealed.entries, store_ms, end, settled, not_due)

    def _decided(
        self, sealed: Sealed, gate_ms: int | None
    ) -> tuple[Sealed, tuple[int, ...], tuple[int, ...]]:
        """What is left of the batch, and the units of the records that lost or are early."""
        settled, not_due = self._decide(sealed.entries, gate_ms)
        if not settled and not not_due:
            return sealed, (), ()
        units = sealed.entries.units
        return (
            sealed.without(settled | not_due),
            tuple(int(units[number]) for number in sorted(settled)),
            tuple(int(units[number]) for number in sorted(not_due)),
        )

    def _decide(self, entries: Entries, gate_ms: int | None) -> tuple[set[int], set[int]]:
        """The one point where every race is decided: which records lost theirs, which are early."""
        sources = entries.source_queues
        first = sources[0] if sources else None
        if len(sources) >= VECTOR_RECORDS_MIN and sources.count(first) == len(sources):
            return self._decide_many(entries, first, gate_ms)
        settled, not_due = set(), set()
        for number, queue in enumerate(sources):
            if queue is None:
                continue
            table = self._parts.table_of(queue)
            if table.settled(entries.units[number]) != entries.expected[number]:
                settled.add(number)
            elif gate_ms is not None and entries.dues[number] > gate_ms:
                not_due.add(number)
        return settled, not_due

    def _decide_many(
        self, entries: Entries, queue: Queue | None, gate_ms: int | None
    ) -> tuple[set[int], set[int]]:
        """The same for records that settle units of one queue, or nothing at all."""
        if queue is None:
            return set(), set()
        words = self._parts.table_of(queue).settled_many(column(entries.units))
        lost = words != column(entries.expected)
        settled = set(np.flatnonzero(lost).tolist())
        if gate_ms is None:
            return settled, set()
        early = column(entries.dues) > gate_ms
        return settled, set(np.flatnonzero(early & ~lost).tolist())

    def _append(self, sealed: Sealed, now_ms: int, *, privileged: bool) -> tuple[int, int]:
        control, entries = self._control, sealed.entries
        start = control.words[Word.COMMITTED]
        pieces, end = self._log.place(start, numbers(entries.sizes))
        store_ms = self.store_ms(now_ms)
        ends = self._decide_offsets(entries, pieces, store_ms)
        index_file = self._make_room(len(entries.hashes), start, end, ends, store_ms, privileged)
        patch(sealed)
        control.note(start, end, index_file, self._parts.index.file(index_file).count)
        control.set(Word.NOTE_STATE, Note.WRITING)
        self._write_pieces(sealed, pieces)
        control.set(Word.NOTE_STATE, Note.WRITTEN)
        self._dispatcher.apply(entries, index_file)
        control.set(Word.STORE_MS, store_ms)
        self._commit(end, index_file)
        control.count("bytes_written", end - start)
        return store_ms, end

    def _count(self, counter: str, entries: Entries, store_ms: int) -> None:
        count = self._control.count
        count(counter, len(entries.sizes))
        if counter == "sent":
            topics = list(map(_TOPIC, entries.queues))
            count("sent_level", topics.count(SCHEDULE_TOPIC))
            count("sent_timed", topics.count(TIMER_TOPIC))
        elif counter == "handed_over":
            lateness_ms = store_ms * len(entries.sizes) - int(sum(numbers(entries.dues)))
            count("lateness_ms_sum", lateness_ms)
            if store_ms - min(numbers(entries.dues)) > LATE_MS:
                late = np.count_nonzero(store_ms - column(entries.dues) > LATE_MS)
                count("late_over_100ms", int(late))

    def _commit(self, end: int, index_file: int) -> None:
        self._control.set(Word.INDEX_FILE, index_file)
        self._control.set(Word.COMMITTED, end)
        self._control.set(Word.NOTE_STATE, Note.NONE)

    def store_ms(self, now_ms: int) -> int:
        """STORETIMESTAMP by this clock reading: a small step back of the clock is hidden."""
        last_ms = self._control.words[_STORE_MS]
        return last_ms if 0 < last_ms - now_ms <= STEP_BACK_HIDDEN_MS else now_ms

    def _decide_offsets(
        self, entries: Entries, pieces: list[Piece], store_ms: int
    ) -> dict[Queue, int]:
        """Give each record its place in log and queue; how far each queue then reaches."""
        if entries.members:
            return self._decide_many_offsets(entries, pieces, store_ms)
        entries.log_offsets = _log_offsets(pieces, entries.sizes)
        entries.store_ms = [store_ms] * len(entries.sizes)
        first, count = entries.queues[0], len(entries.queues)
        if entries.queues.count(first) == count:
            start = self._queues.max(first)
            entries.queue_offsets = list(range(start, start + count))
            return {first: start + count}
        entries.queue_offsets = offsets = []
        ends: dict[Queue, int] = {}
        for queue in entries.queues:
            offset = ends.get(queue)
            if offset is None:
                offset = self._queues.max(queue)
            offsets.append(offset)
            ends[queue] = offset + 1
        return ends

    def _decide_many_offsets(
        self, entries: Entries, pieces: list[Piece], store_ms: int
    ) -> dict[Queue, int]:
        """The same for many records whose queues' members are known."""
        sizes = column(entries.sizes)
        starts = [
            np.cumsum(sizes[piece.first : piece.stop]) - sizes[piece.first : piece.stop]
            + piece.offset
            for piece in pieces
        ]  # fmt: skip
        entries.log_offsets = np.concatenate(starts)
        entries.store_ms = np.full(len(sizes), store_ms, np.int64)
        entries.queue_offsets = offsets = np.empty(len(sizes), np.int64)
        ends: dict[Queue, int] = {}
        for members in entries.members:
            queue = entries.queues[members[0]]
            start = self._queues.max(queue)
            ends[queue] = start + len(members)
            offsets[members] = np.arange(start, ends[queue])
        return ends

    def _make_room(
        self, index_entries: int, start: int, end: int, ends: dict[Queue, int], store_ms: int,
        privileged: bool,
    ) -> int:  # fmt: skip
        """Step 0; returns the index file that will take the entries."""

        def make_room() -> int:
            self._log.make_room(start, end, from_spare=privileged)
            for queue, stop in ends.items():
                self._parts.consume_queues.make_room(
                    queue.topic, queue.queue_id, self._queues.max(queue), stop
                )
                if queue.scheduled:
                    self._parts.table_of(queue).make_room(stop)
            current = self._control.words[Word.INDEX_FILE]
            return self._parts.index.make_room(index_entries, store_ms, current)

        return self._parts.reserve.with_room(make_room, privileged=privileged)

    def _write_pieces(self, sealed: Sealed, pieces: list[Piece]) -> None:
        if len(pieces) == 1:
            self._log.write(pieces[0].offset, sealed.data)
            return
        view, starts = memoryview(sealed.data), [*sealed.starts, len(sealed.data)]
        for piece in pieces:
            data: bytes | memoryview = view[starts[piece.first] : starts[piece.stop]]
            if piece.filler:
                data = b"".join((data, FILLER.pack(piece.filler, FILLER_MAGIC)))
            if data:
                self._log.write(piece.offset, data)

    def ring(self, entries: Entries) -> None:
        """Wake readers, and the loops that would sleep past a new due time."""
        self._log_bell.ring()
        waiting = {queue.topic for queue in set(entries.queues) if queue.scheduled}
        for topic, wake_word, bell in self._loop_bells:
            if topic in waiting and _first_due(entries, topic) < self._control.words[wake_word]:
                bell.ring()

    # -- repair ---------------------------------------------------------------------------------

    def repair(self) -> None:
        """Finish or undo the write that the note tells of (under the append lock)."""
        control = self._control
        start, end = control.words[Word.NOTE_START], control.words[Word.NOTE_END]
        index_file = control.words[Word.NOTE_INDEX_FILE]
        if control.words[Word.NOTE_STATE] == Note.WRITTEN:
            self._parts.index.file(index_file).rewind(control.words[Word.NOTE_INDEX_COUNT])
            entries = self._parts.entries_of(start, end)
            self._dispatcher.apply(entries, index_file)
            if entries.store_ms:
                control.set(Word.STORE_MS, entries.store_ms[-1])
            control.count("repaired")
            self._commit(end, index_file)
            return
        self._log.zero(start, end)
        control.count("repaired")
        control.set(Word.NOTE_STATE, Note.NONE)

    def dispatch(self, entries: Entries) -> None:
        """Derive everything from records in the log already (a rebuild, under the lock)."""
        current = self._control.words[Word.INDEX_FILE]
        index_file = self._parts.index.make_room(len(entries.hashes), entries.store_ms[0], current)
        for queue in {queue.index: queue for queue in entries.queues}.values():
            if queue.scheduled:
                last = max(
                    offset
                    for offset, mine in zip(entries.queue_offsets, entries.queues, strict=True)
                    if mine is queue
                )
                self._parts.table_of(queue).make_room(last + 1)
        self._dispatcher.apply(entries, index_file)
        self._control.set(Word.INDEX_FILE, index_file)


def _log_offsets(pieces: list[Piece], sizes: Column) -> list[int]:
    offsets = []
    for piece in pieces:
        position = piece.offset
        for size in sizes[piece.first : piece.stop]:
            offsets.append(position)
            position += size
    return offsets


def _first_due(entries: Entries, topic: str) -> int:
    """The earliest due time of the records of a topic, ms."""
    if len(entries.queues) < VECTOR_RECORDS_MIN:
        pairs = zip(entries.dues, entries.queues, strict=True)
        return int(min(due for due, queue in pairs if queue.topic == topic))
    mine = [queue.topic == topic for queue in entries.queues]
    return int(column(entries.dues)[mine].min())
