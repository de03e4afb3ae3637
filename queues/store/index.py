"""The index: where messages with a key lie, in RocketMQ's index files (derived from the log).

`IndexSet` keeps the files of one store: the newest takes entries, and a full one is followed by
another, named by its creation time (17 digits, ``yyyyMMddHHmmssSSS``, UTC here).
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from queues.store.disk import Disk
from queues.store.indexfile import IndexFile, index_file_bytes

#: How far sender's and store's clock may differ when a lookup narrows the files by time.
SKEW_MS = 3_600_000


class IndexSet:
    """All index files of a store."""

    def __init__(
        self, disk: Disk, directory: Path, slots: int, entries: int, *, write: bool
    ) -> None:
        self._disk, self._directory, self._write = disk, directory, write
        self._slots, self._entries = slots, entries
        self._files: dict[int, IndexFile] = {}

    @property
    def entries_max(self) -> int:
        """How many entries a file takes."""
        return self._entries

    def names(self) -> list[int]:
        """The files by name, oldest first."""
        return [int(name) for name in self._disk.list_names(self._directory) if name.isdigit()]

    def file(self, name: int) -> IndexFile:
        """One file, mapped."""
        found = self._files.get(name)
        if found is None:
            size = index_file_bytes(self._slots, self._entries)
            path = self._directory / str(name)
            mapped = self._disk.map(path, size_bytes=size, write=self._write)
            found = self._files[name] = IndexFile(mapped, self._slots, self._entries)
        return found

    def _file_if_there(self, name: int) -> IndexFile | None:
        try:
            return self.file(name)
        except FileNotFoundError:
            return None  # Another process's retention was faster.

    def make_room(self, entries: int, store_ms: int, current: int) -> int:
        """See that the current file has room for `entries` more; returns the file to write to."""
        assert entries < self._entries, "one write's entries must fit an index file"
        if current and self.file(current).room >= entries:
            return current
        name = max(_name_of(store_ms), current + 1)
        path = self._directory / str(name)
        self._disk.map(
            path, size_bytes=index_file_bytes(self._slots, self._entries), create=True
        ).close()
        return name

    def lookup(
        self, key_hash: int, *, begin_ms: int = 0, end_ms: int = 1 << 62, limit: int = 64
    ) -> list[int]:
        """Log offsets of records that may have the key, newest first; hashes collide."""
        found: list[int] = []
        for file in self.files():
            if file.end_ms < begin_ms or file.begin_ms > end_ms:
                continue
            found += file.lookup(key_hash, begin_ms, end_ms, limit - len(found))
            if len(found) >= limit:
                break
        return found

    def files(self, from_file: int = 0) -> Iterator[IndexFile]:
        """The files, newest first, down to the one named `from_file`."""
        names = self.names()
        for name in set(self._files) - set(names):
            self._files.pop(name, None)
        for name in reversed(names):
            file = self._file_if_there(name) if name >= from_file else None
            if file is not None:
                yield file

    def remove_below(self, log_min: int) -> None:
        """Remove the files whose last entry lies below `log_min`, never the newest."""
        for name in self.names()[:-1]:
            if self.file(name).end_log_offset < log_min:
                self._files.pop(name)
                self._disk.unlink(self._directory / str(name))

    def sync(self) -> None:
        """Put the newest file on the device."""
        names = self.names()
        if names:
            self.file(names[-1]).sync()

    def close(self) -> None:
        """Drop the mappings."""
        self._files.clear()


def _name_of(store_ms: int) -> int:
    moment = datetime.fromtimestamp(store_ms / 1000, UTC)
    return int(moment.strftime("%Y%m%d%H%M%S") + f"{store_ms % 1000:03d}")
