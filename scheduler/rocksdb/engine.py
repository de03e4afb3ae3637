"""The RocksDB engine: the timeline opened, run and put down.

What a stop leaves behind, and what a new holder does with it:

| Stopped | Left behind | Mended by |
|---|---|---|
| inside or behind a batch | nothing of it, or all | scanning begins at the checkpoint; the same entries are put again |
| before a checkpoint | an older read time | entries are read again; settled ones are dropped |
| inside beginning anew | no checkpoint | it begins anew again |
| the machine | the batches up to some point, the last checkpoint at least; a log that ends earlier | the same; what leads to another record by now is dropped when it is loaded |
"""  # noqa: E501 (a table)

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queues.store.disk import Disk
from queues.store.errors import DiskFull, StoreError
from queues.store.names import JOURNAL_TOPIC, TIMER_TOPIC
from scheduler.engine.checkpointing import Checkpointing
from scheduler.engine.errors import EngineBroken, EngineBusy, StepNotOpened
from scheduler.engine.limits import CLEAN_SLACK_MS, FAR_AHEAD_MS, LEAD_MS
from scheduler.engine.places import TIMELINE, remove_timeline, remove_wheel
from scheduler.engine.scan import QUEUE_ID, Waiting
from scheduler.rocksdb.cancelling import follow_cancels
from scheduler.rocksdb.dequeue import dequeue, first_ms, next_read_ms
from scheduler.rocksdb.enqueue import enqueue, put
from scheduler.rocksdb.entries import Checkpoint, time_key
from scheduler.rocksdb.limits import CLEAN_MS, ENQUEUE_PER_MS, STUCK_MS
from scheduler.rocksdb.state import TimelineState
from scheduler.rocksdb.timeline import Timeline

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(frozen=True, slots=True)
class _Noted:
    checkpoint: Checkpoint
    timeline: Timeline

    @property
    def written_ms(self) -> int:
        return self.checkpoint.written_ms


class RocksEngine:
    """Keeps timed messages in RocksDB."""

    name = "rocksdb"
    enqueue_per_ms = ENQUEUE_PER_MS
    stuck_ms = STUCK_MS

    def __init__(
        self,
        store: "Store",
        *,
        disk: Disk | None = None,
        sync_beside: bool = True,
        open_timeline: Callable[[Path], Timeline] = Timeline,
    ) -> None:
        """`sync_beside`: checkpoints are synced on a thread of their own, not in the step."""
        self._store = store
        self._disk = disk or store.disk
        self._sync_beside = sync_beside
        self._open_timeline = open_timeline
        self._path = store.root / TIMELINE
        self._executor: ThreadPoolExecutor | None = None
        self._state: TimelineState | None = None
        self._timeline: Timeline | None = None
        self._failed = False
        #: Where the last holder's settled hand stood at its checkpoint, ms.
        self.stood_ms = 0
        self._cleaned_ms = self._clean_at_ms = 0

    @property
    def books(self) -> TimelineState:
        """The state."""
        if self._state is None:
            raise StepNotOpened
        return self._state

    @property
    def durable(self) -> Checkpoint | None:
        """The last checkpoint on the device."""
        noted = self._checkpointing.durable
        return None if noted is None else noted.checkpoint

    @property
    def durable_ms(self) -> int | None:
        """When that was made."""
        return None if self.durable is None else self.durable.written_ms

    @property
    def timeline(self) -> Timeline:
        """The database; opened again after it refused something for lack of space."""
        if self._timeline is None:
            self._timeline = self._open_timeline(self._path)
        return self._timeline

    # -- coming and going -----------------------------------------------------------------------

    def open(self) -> bool:
        """Take the timeline up where its checkpoint says; False when there is none to trust."""
        store = self._store
        remove_wheel(self._disk, store.root)
        self._executor = ThreadPoolExecutor(1, "timeline-sync") if self._sync_beside else None
        self._checkpointing: Checkpointing[_Noted] = Checkpointing(self._save, self._executor)
        self._state = TimelineState(precision_ms=store.sizes.timer_precision_ms)
        self._clean_at_ms = 0
        try:
            checkpoint = self.timeline.checkpoint()
            if checkpoint is None or not self._is_ours(checkpoint):
                return False
            floor = self.timeline.floor()
        except EngineBroken:
            self._let_go()
            return False
        floor_ms = checkpoint.settled_ms if floor is None else floor.floor_ms
        self.stood_ms = checkpoint.settled_ms
        self._state.begin_at(min(checkpoint.settled_ms, floor_ms))
        # Not behind the last batch: what it passed over as settled may wait again, for the log may
        # have lost what settled it.
        bounds = store.queue_bounds(TIMER_TOPIC, QUEUE_ID)
        self._state.queue_offset = max(bounds.min_offset, checkpoint.queue_offset)
        self._state.journal_offset = checkpoint.journal_offset
        self._cleaned_ms = checkpoint.cleaned_ms
        return True

    def _is_ours(self, checkpoint: Checkpoint) -> bool:
        store = self._store
        return (
            checkpoint.store_id == store.store_id
            and checkpoint.precision_ms == store.sizes.timer_precision_ms
            and checkpoint.queue_offset <= store.queue_bounds(TIMER_TOPIC, QUEUE_ID).max_offset
        )

    def begin_anew(self, now_ms: int) -> None:
        """Remove the database and make an empty one."""
        state, store = self.books, self._store
        self._checkpointing.forget()
        self._let_go()
        remove_timeline(self._disk, store.root)
        self._timeline = self._open_timeline(self._path)
        state.begin_at(state.slot_of(now_ms))
        state.queue_offset = store.first_unsettled(TIMER_TOPIC, QUEUE_ID)
        state.journal_offset = store.queue_bounds(JOURNAL_TOPIC, 0).max_offset
        self._cleaned_ms = 0

    def close(self, now_ms: int) -> None:
        """Make what was done durable and let the database go."""
        state = self._state
        if state is None:
            return
        try:
            # Without a last checkpoint the next holder reads a little more again.
            with contextlib.suppress(DiskFull, EngineBusy):
                self._checkpointing.wait()
                if now_ms:
                    state.move_hand(now_ms)
                    self._checkpointing.now(self._note(state, now_ms))
        finally:
            if self._executor is not None:
                self._executor.shutdown()
            self._state = None
            self._let_go()

    def _let_go(self) -> None:
        timeline, self._timeline = self._timeline, None
        if timeline is not None:
            with contextlib.suppress(StoreError):
                timeline.close()

    # -- the stages -----------------------------------------------------------------------------

    def follow_clock(self, now_ms: int) -> None:
        """Bring the hands back with the clock."""
        state = self.books
        clock_ms = state.slot_of(now_ms)
        if state.read_ms - clock_ms > FAR_AHEAD_MS + 2 * state.precision_ms:
            state.rewind(clock_ms)
            self._cleaned_ms = min(self._cleaned_ms, state.settled_ms)
        state.settled_ms = min(state.settled_ms, clock_ms)

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow."""
        self.books.move_hand(now_ms)

    def enqueue(self, waiting: Waiting) -> None:
        """Put entries, list what is late."""
        with self._reopened_when_full():
            enqueue(self.books, self._store, self.timeline, waiting)

    def write_into(self, waiting: Waiting, slot_ms: int) -> None:
        """Put entries with the first time of a slot."""
        times_ms = np.full(len(waiting), slot_ms + 1, dtype=np.int64)
        leading = self._store.read_leading(waiting.log_offsets)
        with self._reopened_when_full():
            put(self._store, self.timeline, waiting, times_ms, leading, floor=None)

    def note_written_ahead(self, slot_ms: int) -> None:
        """The next entry may have become another."""
        state = self.books
        if state.next_ms is not None:
            state.next_ms = min(state.next_ms, slot_ms + 1)

    @contextlib.contextmanager
    def _reopened_when_full(self) -> Any:
        """After it lacked space RocksDB takes nothing until it is opened again."""
        try:
            yield
        except DiskFull:
            self._checkpointing.wait()
            self._let_go()
            raise

    def dequeue(self, now_ms: int, units_max: int) -> bool:
        """Read entries out."""
        return dequeue(self.books, self.timeline, now_ms, units_max)

    def next_read_ms(self) -> int | None:
        """When the next slot should be read."""
        return next_read_ms(self.books, self.timeline)

    def roll(self, keys_max: int) -> None:
        """Nothing: every message lies at its own time, however far."""

    def tend(self, now_ms: int, slack_ms: int) -> None:
        """Follow cancels, make a checkpoint, remove what is settled."""
        state = self.books
        if slack_ms > CLEAN_SLACK_MS:
            with contextlib.suppress(EngineBusy):
                state.journal_offset = follow_cancels(
                    self._store, self.timeline, state.journal_offset
                )
                self._clean(now_ms)
        before = self._checkpointing.durable
        self._checkpointing.step(
            now_ms,
            lambda: self._note(state, now_ms),
            lambda last: _is_quiet(state, last.checkpoint),
        )
        if self._checkpointing.durable is not before:
            state.floor_ms = state.next_floor_ms

    def _clean(self, now_ms: int) -> None:
        """Remove what lies before the durable read time, as one range."""
        durable = self.durable
        if durable is None or (0 <= now_ms - self._clean_at_ms < CLEAN_MS):
            return
        self._clean_at_ms = now_ms
        # The clock may have been set back since the checkpoint: what came then lies before it.
        settled_ms = min(durable.settled_ms, self.books.settled_ms)
        if settled_ms > self._cleaned_ms:
            self.timeline.remove_range(time_key(self._cleaned_ms), time_key(settled_ms + 1))
            self._cleaned_ms = settled_ms

    def unread(self, now_ms: int) -> tuple[int | None, int]:
        """Since when a slot should have been read; its messages are not counted."""
        state = self.books
        horizon_ms = state.slot_of(now_ms + LEAD_MS)
        late_ms = horizon_ms - state.slot_of(first_ms(state, self.timeline))
        return (None, late_ms) if late_ms > 0 else (0, 0)

    def files(self) -> dict[str, Any]:
        """Entries and bytes of the database."""
        return dict(self.timeline.figures())

    # -- checkpoints ----------------------------------------------------------------------------

    def _note(self, state: TimelineState, now_ms: int) -> _Noted:
        state.next_floor_ms = state.settled_ms
        checkpoint = Checkpoint(
            settled_ms=state.settled_ms,
            queue_offset=state.queue_offset,
            journal_offset=state.journal_offset,
            written_ms=now_ms,
            store_id=self._store.store_id,
            precision_ms=state.precision_ms,
            cleaned_ms=self._cleaned_ms,
        )
        return _Noted(checkpoint, self.timeline)

    def _save(self, noted: _Noted) -> None:
        """Flush the CommitLog first: what settled the messages before the read time."""
        self._store.flush_settled()
        noted.timeline.save(noted.checkpoint)


def _is_quiet(state: TimelineState, last: Checkpoint) -> bool:
    still = replace(last, queue_offset=state.queue_offset, journal_offset=state.journal_offset)
    return still == last and state.outstanding.total == 0
