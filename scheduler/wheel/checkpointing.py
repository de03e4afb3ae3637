"""Checkpointing: once a second, what is done becomes durable, in this order.

1. The positions are noted. 2. The CommitLog is flushed, so that hand-overs and scanned messages are
   on the device. 3. The TimerLog is synced. 4. The wheel is synced. 5. The checkpoint is replaced.

Steps 2 to 5 may run on a thread of their own, so that what is due does not wait for the device: all
that they make durable was written before the positions were noted, or after, which harms nothing.
"""

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queues.store.disk import Disk
from queues.store.errors import DiskFull
from scheduler.wheel.checkpoint import WheelCheckpoint, save_checkpoint
from scheduler.wheel.limits import CHECKPOINT_MS, IDLE_CHECKPOINT_MS
from scheduler.wheel.state import WheelState

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(frozen=True, slots=True)
class _Noted:
    checkpoint: WheelCheckpoint
    log_end_number: int


class Checkpointing:
    """The wheel's checkpoints, made one after the other."""

    def __init__(
        self, store: "Store", disk: Disk, executor: Executor | None = None, *, counter: int = 0
    ) -> None:
        self._store = store
        self._disk = disk
        self._executor = executor
        self._running: tuple[Future[None], WheelCheckpoint] | None = None
        self._counter = counter
        self._not_before_ms = 0
        #: The last checkpoint on the device; None before the first.
        self.durable: WheelCheckpoint | None = None

    def step(self, state: WheelState, now_ms: int) -> None:
        """Finish the checkpoint that was under way, begin one when it is time."""
        if self._running is not None:
            if not self._running[0].done():
                return
            self._settle_running(now_ms)
        if now_ms >= self._not_before_ms and self._is_time(state, now_ms):
            self._begin(state, now_ms)
            if self._executor is None:
                self._settle_running(now_ms)

    def _settle_running(self, now_ms: int) -> None:
        """Take note of the checkpoint that was made; one that found no room is tried again."""
        try:
            self.wait()
        except DiskFull:
            self._not_before_ms = now_ms + CHECKPOINT_MS

    def _is_time(self, state: WheelState, now_ms: int) -> bool:
        last = self.durable
        if last is None or now_ms < last.written_ms:
            return True
        still = (
            last.log_position == state.log.end_position and last.queue_offset == state.queue_offset
        )
        quiet = still and state.outstanding.total == 0
        return now_ms - last.written_ms >= (IDLE_CHECKPOINT_MS if quiet else CHECKPOINT_MS)

    def now(self, state: WheelState, now_ms: int) -> None:
        """Make a checkpoint and wait for it."""
        self.wait()
        noted = self._note(state, now_ms)
        self._save(state, noted)
        self.durable = noted.checkpoint

    def wait(self) -> None:
        """Wait for the checkpoint under way."""
        if self._running is not None:
            (running, checkpoint), self._running = self._running, None
            running.result()
            self.durable = checkpoint

    def _begin(self, state: WheelState, now_ms: int) -> None:
        noted = self._note(state, now_ms)
        running: Future[None]
        if self._executor is not None:
            running = self._executor.submit(self._save, state, noted)
        else:
            running = Future()
            try:
                self._save(state, noted)
                running.set_result(None)
            except DiskFull as error:
                running.set_exception(error)
        self._running = running, noted.checkpoint

    def _note(self, state: WheelState, now_ms: int) -> _Noted:
        self._counter += 1
        checkpoint = WheelCheckpoint(
            read_ms=state.settled_ms,
            log_position=state.log.end_position,
            queue_offset=state.queue_offset,
            written_ms=now_ms,
            counter=self._counter,
        )
        return _Noted(checkpoint, state.log.end_number)

    def _save(self, state: WheelState, noted: _Noted) -> None:
        self._store.flush()
        state.log.sync(noted.log_end_number)
        state.wheel.sync()
        save_checkpoint(self._disk, self._store.root, noted.checkpoint)
        state.log.prepare_next(noted.log_end_number)
