"""A timeline whose process dies at a write: before it, or right after it.

RocksDB takes a batch whole or not at all, so there is nothing in between.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from scheduler.rocksdb.entries import Checkpoint, Entry, Floor
from scheduler.rocksdb.timeline import Timeline
from tests.support.faulty_disk import Died, Fate


class FaultyTimeline(Timeline):
    """The database of a process that may die."""

    def __init__(self, path: Path, fate: Fate) -> None:
        self._fate = fate
        super().__init__(path)

    def _dies(self) -> bool:
        """Whether the process dies here; it dies at once unless the write still arrives."""
        dies = self._fate.step()
        if dies and self._fate.torn < 0.5:
            raise Died
        return dies

    def write(
        self, entries: Iterable[Entry], removed: Sequence[bytes] = (), *, floor: Floor | None
    ) -> None:
        """Write, or die."""
        dies = self._dies()
        super().write(entries, removed, floor=floor)
        if dies:
            raise Died

    def save(self, checkpoint: Checkpoint) -> None:
        """Save, or die."""
        dies = self._dies()
        super().save(checkpoint)
        if dies:
            raise Died

    def sync(self) -> None:
        """Do nothing: a process's death does not lose what the kernel has."""

    def remove_range(self, begin: bytes, end: bytes) -> None:
        """Remove, or die."""
        dies = self._dies()
        super().remove_range(begin, end)
        if dies:
            raise Died
