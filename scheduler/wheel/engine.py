"""The wheel as an engine: RocketMQ's `timerwheel` and `timerlog`, opened, run and put down."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from queues.store.disk import Disk
from queues.store.errors import DiskFull, WrongFileSize
from queues.store.names import TIMER_TOPIC
from scheduler.engine.checkpointing import Checkpointing
from scheduler.engine.errors import EngineBroken, StepNotOpened
from scheduler.engine.limits import CLEAN_SLACK_MS, FAR_AHEAD_MS
from scheduler.engine.places import remove_timeline
from scheduler.engine.scan import QUEUE_ID, Waiting
from scheduler.wheel.checkpoint import (
    WheelCheckpoint,
    forget_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from scheduler.wheel.cleaning import Cleaning
from scheduler.wheel.dequeue import dequeue, next_read_ms, unread
from scheduler.wheel.enqueue import enqueue, write
from scheduler.wheel.errors import WheelSizeDiffers
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.limits import ENQUEUE_PER_MS
from scheduler.wheel.placement import Placement
from scheduler.wheel.recovery import recover
from scheduler.wheel.roll import roll
from scheduler.wheel.state import WheelState
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(frozen=True, slots=True)
class _Noted:
    checkpoint: WheelCheckpoint
    log_end_number: int
    state: WheelState

    @property
    def written_ms(self) -> int:
        return self.checkpoint.written_ms


class WheelEngine:
    """Keeps timed messages in RocketMQ's timing wheel."""

    name = "wheel"
    enqueue_per_ms = ENQUEUE_PER_MS

    def __init__(
        self, store: "Store", *, disk: Disk | None = None, sync_beside: bool = True
    ) -> None:
        """`sync_beside`: checkpoints are synced on a thread of their own, not in the step."""
        self._store = store
        self._disk = disk or store.disk
        self._sync_beside = sync_beside
        self.geometry = WheelGeometry.of(store.sizes)
        #: A message that fails for longer is written again, into the newest slot that was read.
        self.stuck_ms = self.geometry.window_ms // 4
        self._executor: ThreadPoolExecutor | None = None
        self._state: WheelState | None = None
        self._counter = 0
        #: Where the last holder's settled hand stood at its checkpoint, ms.
        self.stood_ms = 0

    @property
    def books(self) -> WheelState:
        """The wheel's state."""
        if self._state is None:
            raise StepNotOpened
        return self._state

    @property
    def durable(self) -> WheelCheckpoint | None:
        """The last checkpoint on the device."""
        noted = self._checkpointing.durable
        return None if noted is None else noted.checkpoint

    @property
    def durable_ms(self) -> int | None:
        """When that was made."""
        return None if self.durable is None else self.durable.written_ms

    # -- coming and going -----------------------------------------------------------------------

    def open(self) -> bool:
        """Recover wheel and TimerLog; False where that cannot be."""
        store, disk = self._store, self._disk
        remove_timeline(disk, store.root)
        checkpoint = load_checkpoint(disk, store.root)
        had_wheel = TimerWheel.exists(disk, store.root)
        wheel, log = self._files()
        self._executor = ThreadPoolExecutor(1, "wheel-sync") if self._sync_beside else None
        self._checkpointing: Checkpointing[_Noted] = Checkpointing(self._save, self._executor)
        self._counter = checkpoint.counter if checkpoint else 0
        self._cleaning = Cleaning()
        self._state = state = WheelState(geometry=self.geometry, wheel=wheel, log=log)
        if checkpoint is None or not had_wheel:
            return False
        try:
            state.queue_offset, read_ms = recover(store, wheel, log, checkpoint)
        except EngineBroken:
            return False
        self.stood_ms = checkpoint.read_ms
        state.settled_ms = state.read_ms = read_ms
        wheel.mark_unread_from(read_ms)
        return True

    def _files(self) -> tuple[TimerWheel, TimerLog]:
        disk, root = self._disk, self._store.root
        try:
            wheel = TimerWheel(disk, root, self.geometry)
        except WrongFileSize as error:
            raise WheelSizeDiffers(**error.fields) from error
        return wheel, TimerLog(disk, root, self.geometry)

    def begin_anew(self, now_ms: int) -> None:
        """Empty wheel and log."""
        state = self.books
        self._checkpointing.forget()
        forget_checkpoint(self._disk, self._store.root)
        state.wheel.clear()
        state.log.clear()
        clock_ms = self.geometry.slot_of(now_ms)
        state.settled_ms = state.read_ms = clock_ms
        state.rewind(clock_ms)
        state.queue_offset = self._store.first_unsettled(TIMER_TOPIC, QUEUE_ID)

    def close(self, now_ms: int) -> None:
        """Make what was done durable and let the files go."""
        state, self._state = self._state, None
        if state is None:
            return
        try:
            # Without room for a last checkpoint the next holder replays a little more.
            with contextlib.suppress(DiskFull):
                self._checkpointing.wait()
                if now_ms:
                    state.move_hand(now_ms)
                    self._checkpointing.now(self._note(state, now_ms))
        finally:
            if self._executor is not None:
                self._executor.shutdown()
            state.log.close()
            state.wheel.close()

    # -- the stages -----------------------------------------------------------------------------

    def follow_clock(self, now_ms: int) -> None:
        """Bring the hands back with the clock, as far as the file's two windows allow."""
        state, geometry = self.books, self.geometry
        clock_ms = max(geometry.slot_of(now_ms), state.wheel.oldest_possible_ms)
        if state.read_ms - clock_ms > FAR_AHEAD_MS + 2 * geometry.precision_ms:
            state.rewind(clock_ms)
        state.settled_ms = min(state.settled_ms, state.clock_slot_ms(now_ms))

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow."""
        self.books.move_hand(now_ms)

    def enqueue(self, waiting: Waiting) -> None:
        """Append units, link them, list what is late."""
        enqueue(self.books, waiting)

    def write_into(self, waiting: Waiting, slot_ms: int) -> None:
        """Append units of a slot that is not their messages' own."""
        nothing = np.zeros(len(waiting), dtype=np.int64)
        write(self.books, waiting, Placement(nothing + slot_ms, nothing, nothing.astype(np.bool_)))

    def note_written_ahead(self, slot_ms: int) -> None:
        """Count a slot as not read."""
        self.books.wheel.mark_unread(np.array([slot_ms], dtype=np.int64))

    def dequeue(self, now_ms: int, units_max: int) -> bool:
        """Read slots out."""
        return dequeue(self.books, now_ms, units_max)

    def next_read_ms(self) -> int | None:
        """When the next slot should be read."""
        return next_read_ms(self.books)

    def roll(self, keys_max: int) -> None:
        """Place what was marked ROLL again."""
        roll(self.books, self._store, keys_max)

    def tend(self, now_ms: int, slack_ms: int) -> None:
        """Make a checkpoint, and drop a TimerLog file that nothing needs."""
        state = self.books
        self._checkpointing.step(
            now_ms, lambda: self._note(state, now_ms), lambda last: _is_quiet(state, last)
        )
        if self.durable is not None and slack_ms > CLEAN_SLACK_MS:
            self._cleaning.step(state, self.durable.read_ms)

    def unread(self, now_ms: int) -> tuple[int | None, int]:
        """Messages in slots that should have been read by now."""
        return unread(self.books, now_ms)

    def files(self) -> dict[str, Any]:
        """Files of the TimerLog, and where it begins and ends."""
        log = self.books.log
        return {
            "window_ms": self.geometry.window_ms,
            "log_files": log.file_count,
            "log_begin": log.begin_position,
            "log_end": log.end_position,
        }

    # -- checkpoints ----------------------------------------------------------------------------

    def _note(self, state: WheelState, now_ms: int) -> _Noted:
        self._counter += 1
        checkpoint = WheelCheckpoint(
            read_ms=state.settled_ms,
            log_position=state.log.end_position,
            queue_offset=state.queue_offset,
            written_ms=now_ms,
            counter=self._counter,
        )
        return _Noted(checkpoint, state.log.end_number, state)

    def _save(self, noted: _Noted) -> None:
        """Flush the CommitLog, sync TimerLog and wheel, replace the checkpoint, in this order."""
        self._store.flush_settled()
        noted.state.log.sync(noted.log_end_number)
        noted.state.wheel.sync()
        save_checkpoint(self._disk, self._store.root, noted.checkpoint)
        noted.state.log.prepare_next(noted.log_end_number)


def _is_quiet(state: WheelState, last: _Noted) -> bool:
    checkpoint = last.checkpoint
    still = (
        checkpoint.log_position == state.log.end_position
        and checkpoint.queue_offset == state.queue_offset
    )
    return still and state.outstanding.total == 0
