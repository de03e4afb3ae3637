"""The vitals: how far a store is, what it counted, and whether it is well.

They are read from the control page, which every process of the store shares.
"""

from pathlib import Path
from typing import Any

from queues.store.append import Appender
from queues.store.control import Control, Word
from queues.store.disk import Disk
from queues.store.flushing import Flusher
from queues.store.reserve import Reserve


class Vitals:
    """What an open store tells of itself; `Store` puts its parts in place."""

    root: Path
    disk: Disk
    _closed: bool
    _control: Control
    _appender: Appender
    _flusher: Flusher
    _reserve: Reserve

    @property
    def committed(self) -> int:
        """The end of the log."""
        return self._control.words[Word.COMMITTED]

    @property
    def last_store_ms(self) -> int:
        """STORETIMESTAMP of the last record, ms; 0 in a new store."""
        return self._control.words[Word.STORE_MS]

    @property
    def flushed(self) -> int:
        """The end of the log that is known to be on the device."""
        return self._control.words[Word.FLUSHED]

    def flush(self) -> int:
        """Put the log on the device; returns the flushed end, raises `StoreFailed`."""
        return self._flusher.flush()

    def flush_settled(self) -> int:
        """The same, with all that any settled word tells of by now.

        A word is set before its record is committed, so whoever made something durable of what the
        words say first waits for the write that is under way.
        """
        with self._appender.hold():
            pass
        return self._flusher.flush()

    def generation(self) -> int:
        """Raised by every control-plane commit: caches with an older one re-read."""
        return self._control.words[Word.GENERATION]

    def raise_generation(self) -> None:
        """Tell every process to re-read the control plane."""
        with self._appender.hold():
            self._control.set(Word.GENERATION, self._control.words[Word.GENERATION] + 1)

    def advance_progress(self, name: str, *, leaving: bool = False) -> None:
        """Say that the holder of lease `name` is alive, for the supervisor."""
        process_id = 0 if leaving else self.disk.process_id()
        self._control.advance_progress(name, process_id)

    def count(self, name: str, more: int = 1) -> None:
        """Add to one of the store's counters; see `control.COUNTERS`."""
        with self._appender.hold():
            self._control.count(name, more)

    def counters(self) -> dict[str, int]:
        """What was counted since the store was made."""
        return self._control.counters()

    def health(self) -> dict[str, Any]:
        """Whether sends are taken, and why not; free bytes of the disk."""
        failed = bool(self._control.words[Word.FAILED])
        whole = self._reserve.whole()
        return {
            "writable": not failed and whole and not self._closed,
            "reason": "store_failed" if failed else None if whole else "store_full",
            "free_bytes": self.disk.free_bytes(self.root),
            "log_bytes": self.committed - self._control.words[Word.LOG_MIN],
            "unflushed_bytes": self.committed - self.flushed,
        }

    @property
    def store_id(self) -> int:
        """A random number that tells this store from any other."""
        return self._control.words[Word.STORE_ID]
