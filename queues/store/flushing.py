"""Flushing: putting the log on the device, once for everybody who waits (group commit).

Whoever takes the flush lock syncs all that is committed by then; whoever waited behind finds its
own record flushed already. After a failed sync nothing is certain any more (the kernel may have
dropped the pages), so the store then refuses writes until it is reopened and verified.
"""

from queues.store.commitlog import CommitLog
from queues.store.control import Control, Word
from queues.store.disk import FileLock
from queues.store.errors import StoreFailed


class Flusher:
    """Flushes one store's log."""

    def __init__(
        self, control: Control, log: CommitLog, lock: FileLock, *, sync_flush: bool
    ) -> None:
        self._control, self._log, self._lock = control, log, lock
        self._sync_flush = sync_flush
        # What was appended becomes visible by its flush, so the loops are woken a second time.
        self._bells = [control.bell(name) for name in ("log", "levels", "wheel") if sync_flush]

    def settle(self, end: int) -> None:
        """In sync mode, return after the flush that covers the log up to `end`."""
        if self._sync_flush and end > self._control.words[Word.FLUSHED]:
            self.flush(end)

    def flush(self, wanted: int | None = None) -> int:
        """Put the log on the device, if it is not there up to `wanted`; returns the flushed end.

        Raises `StoreFailed` when the device refuses.
        """
        control = self._control
        with self._lock:
            if control.words[Word.FAILED]:
                raise StoreFailed
            start, end = control.words[Word.FLUSHED], control.words[Word.COMMITTED]
            if end > start and (wanted is None or wanted > start):
                self._sync(start, end)
                control.set(Word.FLUSHED, end)
                control.count("syncs")
                for bell in self._bells:
                    bell.ring()
            return control.words[Word.FLUSHED]

    def _sync(self, start: int, end: int) -> None:
        try:
            self._log.sync(start, end)
        except OSError as error:
            self._control.set(Word.FAILED, 1)
            raise StoreFailed(reason=str(error)) from error
