"""A disk on which a process dies between any two writes, or in the middle of one.

Every write counts: a ``pwrite``, a mapped assignment, a word, a rename, an unlink, an allocation.
At the chosen one the process dies with `Died`: of the bytes of that write a part may have arrived,
as `torn` says. From then on the disk refuses everything, as a dead process does nothing more; its
kernel locks are freed by `bury`.
"""

from pathlib import Path
from typing import Any

import numpy.typing as npt

from queues.store.disk import Disk, File, FileLock, Mapped

#: Bytes that a processor stores at once, where they are aligned; and when they do arrive.
_WORDS, _HALF = (1, 2, 4, 8), 0.5


class UnsyncedFile(File):
    """A file that is never put on the device."""

    def sync(self) -> None:
        """Do nothing: a process's death does not lose what the kernel has."""


class UnsyncedMapped(Mapped):
    """Mapped memory that is never put on the device."""

    def sync(self) -> None:
        """Do nothing."""


class CollectedLock(FileLock):
    """A kernel lock whose descriptor goes with it: tests leave thousands of stores behind."""

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()


class UnsyncedDisk(Disk):
    """A disk without the cost of syncs, for tests in which only processes die."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        """Open a file."""
        file = super().open(path, create=create, write=write)
        return UnsyncedFile(path, file._descriptor)

    def _mapped(self, path: Path, memory: Any, write: bool) -> Mapped:
        return UnsyncedMapped(path, memory, writable=write)

    def lock(self, path: Path) -> FileLock:
        """A kernel lock."""
        return CollectedLock(path)

    def sync_directory(self, path: Path) -> None:
        """Do nothing."""

    def sync_file_system(self, path: Path) -> None:
        """Do nothing."""


class Died(BaseException):
    """The process died here."""


class Fate:
    """Counts writes and says when the process dies."""

    def __init__(self, die_at: int | None = None, *, torn: float = 0.0) -> None:
        #: The number of the write that kills, from 0; None: never.
        self.die_at = die_at
        #: Which part of that write still arrives, 0.0 to 1.0.
        self.torn = torn
        self.writes = 0
        self.dead = False

    def step(self) -> bool:
        """Count one write; True when it is the one that kills."""
        if self.dead:
            raise Died
        self.writes += 1
        if self.die_at is not None and self.writes > self.die_at:
            self.dead = True
        return self.dead


class FaultyFile(UnsyncedFile):
    """A file of a process that may die."""

    fate: Fate

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all, or a part and die."""
        if self.fate.step():
            part = data[: self._torn_at(len(data), offset)]
            if part:
                super().pwrite(part, offset)
            raise Died
        super().pwrite(data, offset)

    def _torn_at(self, count: int, offset: int) -> int:  # noqa: ARG002 (others tear at pages)
        """How many of the bytes of the write that kills still arrive."""
        return int(count * self.fate.torn)

    def allocate(self, offset: int, size_bytes: int) -> None:
        """Allocate, or die."""
        if self.fate.step():
            raise Died
        super().allocate(offset, size_bytes)


class FaultyMapped(UnsyncedMapped):
    """Mapped memory of a process that may die."""

    fate: Fate

    def assign(self, array: npt.NDArray[Any], index: Any, values: Any) -> None:
        """Assign all, or the first values and die."""
        if not self.fate.step():
            super().assign(array, index, values)
            return
        if self.fate.torn and not isinstance(index, int | str):
            target = array[index]
            count = int(len(target) * self.fate.torn)
            whole = target.copy()
            whole[:] = values
            target[:count] = whole[:count]
            array[index] = target
        raise Died

    def put(self, offset: int, data: bytes) -> None:
        """Write all bytes, or the first ones and die; an aligned word arrives whole or not."""
        if self.fate.step():
            count = int(len(data) * self.fate.torn)
            if len(data) in _WORDS and offset % len(data) == 0:
                count = len(data) if self.fate.torn >= _HALF else 0
            super().put(offset, data[:count])
            raise Died
        super().put(offset, data)

    def set_word(self, index: int, value: int) -> None:
        """Set the word, or die: a word is never torn."""
        if self.fate.step():
            raise Died
        super().set_word(index, value)


class FaultyDisk(UnsyncedDisk):
    """The disk of a process that may die."""

    def __init__(self, fate: Fate) -> None:
        self.fate = fate
        self._files: list[File] = []
        self._locks: list[FileLock] = []
        self._presences: list[Any] = []

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        """Open a file through which the process may die."""
        file = super().open(path, create=create, write=write)
        faulty = FaultyFile(path, file._descriptor)
        faulty.fate = self.fate
        if type(self) is FaultyDisk:  # One that wraps the descriptor again closes it, too.
            self._files.append(faulty)
        return faulty

    def _mapped(self, path: Path, memory: Any, write: bool) -> Mapped:
        mapped = FaultyMapped(path, memory, writable=write)
        mapped.fate = self.fate
        return mapped

    def unlink(self, path: Path) -> None:
        """Remove a file, or die."""
        if self.fate.step():
            raise Died
        super().unlink(path)

    def rename(self, source: Path, target: Path) -> None:
        """Rename, or die."""
        if self.fate.step():
            raise Died
        super().rename(source, target)

    def lock(self, path: Path) -> FileLock:
        """A kernel lock that `bury` frees."""
        lock = super().lock(path)
        self._locks.append(lock)
        return lock

    def broker_lock(self, path: Path) -> Any:
        """RocketMQ's lock; `bury` frees it."""
        lock = super().broker_lock(path)
        self._presences.append(lock)
        return lock

    def bury(self) -> None:
        """Free the dead process's kernel locks and close its files, as the kernel does."""
        self.fate.dead = True
        for held in [*self._locks, *self._presences, *self._files]:
            held.close()
