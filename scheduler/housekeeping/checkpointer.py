"""The checkpointer: flushes the log and notes in RocketMQ's `checkpoint` how far that went.

ConsumeQueues and index are derived and not synced, so their two times stay 0: whoever opens the
directory then derives them from the log again, from its beginning, and never misses a record.
"""

from queues.store import Store
from queues.store.checkpoint import StoreCheckpoint


class Checkpointer:
    """Remembers the store time that the last flush covered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.root / "checkpoint"
        self._flushed_ms = 0
        self._noted_ms = 0

    def flush(self) -> None:
        """Put the log on the device."""
        # Read before the flush: what is stored during it may not be covered.
        last_ms = self._store.last_store_ms
        self._store.flush()
        self._flushed_ms = max(self._flushed_ms, last_ms)

    def note(self) -> None:
        """Write the file, if a flush covered more since."""
        if self._flushed_ms > self._noted_ms:
            StoreCheckpoint(log_ms=self._flushed_ms).save(self._store.disk, self._path)
            self._noted_ms = self._flushed_ms
