"""Checkpointing: once a second, what is done becomes durable.

An engine notes its positions and then saves them: it flushes the CommitLog first, so that
hand-overs and scanned messages are on the device, then its own files, and the positions last.
Saving may run on a thread of its own, so that what is due does not wait for the device: all that it
makes durable was written before the positions were noted, or after, which harms nothing.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Generic, Protocol, TypeVar

from queues.store.errors import DiskFull
from scheduler.engine.errors import EngineBusy
from scheduler.engine.limits import CHECKPOINT_MS, IDLE_CHECKPOINT_MS


class Noted(Protocol):
    """Positions at one moment."""

    @property
    def written_ms(self) -> int:
        """When they were noted, ms."""


Positions = TypeVar("Positions", bound=Noted)


class Checkpointing(Generic[Positions]):
    """One holder's checkpoints, made one after the other."""

    def __init__(self, save: Callable[[Positions], None], executor: Executor | None = None) -> None:
        self._save = save
        self._executor = executor
        self._running: tuple[Future[None], Positions] | None = None
        self._not_before_ms = 0
        #: The last checkpoint on the device; None before the first.
        self.durable: Positions | None = None

    def step(
        self, now_ms: int, note: Callable[[], Positions], is_quiet: Callable[[Positions], bool]
    ) -> None:
        """Finish the checkpoint that was under way, begin one when it is time.

        `is_quiet` says whether nothing but the read time moved since a checkpoint.
        """
        if self._running is not None:
            if not self._running[0].done():
                return
            self._settle_running(now_ms)
        if now_ms >= self._not_before_ms and self._is_time(now_ms, is_quiet):
            self._begin(note())
            if self._executor is None:
                self._settle_running(now_ms)

    def _settle_running(self, now_ms: int) -> None:
        """Take note of the checkpoint that was made; one that was refused is tried again."""
        try:
            self.wait()
        except (DiskFull, EngineBusy):
            self._not_before_ms = now_ms + CHECKPOINT_MS

    def _is_time(self, now_ms: int, is_quiet: Callable[[Positions], bool]) -> bool:
        last = self.durable
        if last is None or now_ms < last.written_ms:
            return True
        pause_ms = IDLE_CHECKPOINT_MS if is_quiet(last) else CHECKPOINT_MS
        return now_ms - last.written_ms >= pause_ms

    def now(self, positions: Positions) -> None:
        """Make a checkpoint and wait for it."""
        self.wait()
        self._save(positions)
        self.durable = positions

    def wait(self) -> None:
        """Wait for the checkpoint under way."""
        if self._running is not None:
            (running, positions), self._running = self._running, None
            running.result()
            self.durable = positions

    def forget(self) -> None:
        """The files are begun anew: nothing of them is durable."""
        self.wait()
        self.durable = None

    def _begin(self, positions: Positions) -> None:
        running: Future[None]
        if self._executor is not None:
            running = self._executor.submit(self._save, positions)
        else:
            running = Future()
            try:
                self._save(positions)
                running.set_result(None)
            except (DiskFull, EngineBusy) as error:
                running.set_exception(error)
        self._running = running, positions
