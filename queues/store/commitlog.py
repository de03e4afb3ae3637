"""The CommitLog: every record of the store, one after another, in preallocated segments.

A segment is named by the log offset of its first byte, 20 digits (RocketMQ). A record never crosses
a segment's end: what would not leave 8 bytes there begins the next segment, and a filler of 8 bytes
(remaining length, magic 0xCBD43194) says so.

Example, with segments of 1,048,576 bytes: a record of 300 bytes at log offset 1,048,300 does not
fit (276 left). The filler at 1,048,300 holds 276 and the magic; the record goes to 1,048,576.
"""

import contextlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.disk import Disk, File, Mapped
from queues.store.errors import DiskFull, MessageIllegal, RecordGone, WrongFileSize
from queues.store.grouping import members_by_number
from queues.store.scattered import rows_at

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

FILLER = struct.Struct(">iI")
FILLER_MAGIC = 0xCBD43194
#: Bytes kept for a filler at a segment's end (RocketMQ's `END_FILE_MIN_BLANK`).
FILLER_BYTES = 8


class Piece:
    """What one write puts into one segment: records `first` to `stop`, from `offset` on."""

    __slots__ = ("filler", "first", "offset", "stop")

    def __init__(self, offset: int, first: int, stop: int, filler: int) -> None:
        self.offset, self.first, self.stop = offset, first, stop
        #: Length that a filler behind the records announces; 0 for none.
        self.filler = filler


class CommitLog:
    """The segments of one store directory."""

    def __init__(self, disk: Disk, directory: Path, spare: Path, segment_bytes: int) -> None:
        self._disk, self._directory, self._spare = disk, directory, spare
        self.segment_bytes = segment_bytes
        self._files: dict[int, File] = {}
        self._maps: dict[int, Mapped] = {}

    def bases(self) -> list[int]:
        """Log offsets at which the segments begin."""
        return [int(name) for name in self._disk.list_names(self._directory) if name.isdigit()]

    def check_sizes(self) -> None:
        """Raise `WrongFileSize` for a segment that is not as long as all others."""
        for base in self.bases():
            size_bytes = self._disk.size(self.path(base))
            if size_bytes != self.segment_bytes or base % self.segment_bytes:
                expected_bytes = self.segment_bytes
                raise WrongFileSize(
                    path=self.path(base), size_bytes=size_bytes, expected_bytes=expected_bytes
                )

    def path(self, base: int) -> Path:
        """The file of the segment that begins at `base`."""
        return self._directory / f"{base:020d}"

    def base_of(self, offset: int) -> int:
        """The start of the segment that holds `offset`."""
        return offset - offset % self.segment_bytes

    # -- writing (under the append lock) --------------------------------------------------------

    def place(self, start: int, sizes: Sequence[int]) -> tuple[list[Piece], int]:
        """Where records of these sizes go from `start` on, and where the log ends then."""
        total = sum(sizes)
        if start % self.segment_bytes + total + FILLER_BYTES <= self.segment_bytes:
            return [Piece(start, 0, len(sizes), 0)], start + total
        pieces, first, offset = [], 0, start
        position = start
        for number, size in enumerate(sizes):
            end = self.base_of(position) + self.segment_bytes
            if position + size + FILLER_BYTES > end:
                if size + FILLER_BYTES > self.segment_bytes:
                    raise MessageIllegal(size_bytes=size, segment_bytes=self.segment_bytes)
                pieces.append(Piece(offset, first, number, end - position))
                first, offset, position = number, end, end
            position += size
        pieces.append(Piece(offset, first, len(sizes), 0))
        return pieces, position

    def make_room(self, start: int, end: int, *, from_spare: bool) -> None:
        """See that all segments that [start, end) touches exist, with real blocks (`DiskFull`)."""
        base = self.base_of(start)
        while base < end or base == self.base_of(start):
            if base not in self._files:
                self._obtain(base, from_spare=from_spare)
            base += self.segment_bytes

    def _obtain(self, base: int, *, from_spare: bool) -> None:
        path = self.path(base)
        self._let_go()
        if not self._disk.exists(path):
            try:
                self._disk.create_whole(path, self.segment_bytes)
            except DiskFull:
                if not from_spare or not self._has_spare():
                    raise
                self._disk.rename(self._spare, path)
            self._disk.sync_directory(self._directory)
        self._files[base] = self._disk.open(path)

    def has_room(self, start: int, size_bytes: int) -> bool:
        """Whether a record fits at `start`, in a segment that this process has open already."""
        at = start % self.segment_bytes
        return start - at in self._files and at + size_bytes + FILLER_BYTES <= self.segment_bytes

    def _has_spare(self) -> bool:
        """Whether there is one of a segment's length: a loss of power may have cut it off."""
        try:
            return self._disk.size(self._spare) == self.segment_bytes
        except FileNotFoundError:
            return False

    def keep_spare(self) -> bool:
        """Make the spare segment if it is missing; False when there is no room for it."""
        if self._has_spare():
            return True
        if self._disk.exists(self._spare):
            self._disk.unlink(self._spare)
        try:
            self._disk.create_whole(self._spare, self.segment_bytes)
        except DiskFull:
            return False
        return True

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at a log offset; they lie inside one segment."""
        base = self.base_of(offset)
        file = self._files.get(base)
        if file is None:
            self._let_go()
            file = self._files[base] = self._disk.open(self.path(base))
        file.pwrite(data, offset - base)

    def zero(self, start: int, end: int) -> None:
        """Blank a range that may cross segments; segments that are missing are passed over."""
        while start < end:
            base = self.base_of(start)
            stop = min(end, base + self.segment_bytes)
            if self._disk.exists(self.path(base)):
                for position in range(start, stop, 1 << 20):
                    self.write(position, bytes(min(1 << 20, stop - position)))
            start = stop

    def sync(self, start: int, end: int) -> None:
        """Put [start, end) on the device."""
        for base in range(self.base_of(start), max(end, start + 1), self.segment_bytes):
            file = self._files.get(base)
            if file is None and self._disk.exists(self.path(base)):
                file = self._files[base] = self._disk.open(self.path(base))
            if file is not None:
                file.sync()

    def remove(self, base: int) -> None:
        """Drop a whole segment, for good: power loss must not bring it back behind a later one.

        What was handed over would else wait again, its delivery's segment gone before its own.
        """
        self._disk.unlink(self.path(base))
        self._disk.sync_directory(self._directory)
        self._let_go()

    def _let_go(self) -> None:
        """Close what retention removed, in this process or another: only then is the space free."""
        kept = set(self.bases())
        for base in set(self._files) - kept:
            file = self._files.pop(base, None)
            if file is not None:
                file.close()
        for base in set(self._maps) - kept:
            self._maps.pop(base, None)

    # -- reading --------------------------------------------------------------------------------

    def memory(self, base: int) -> Mapped:
        """The segment's bytes, mapped for reading; `RecordGone` if retention removed it."""
        mapped = self._maps.get(base)
        if mapped is None:
            self._let_go()
            try:
                mapped = self._disk.map(self.path(base), write=False)
            except FileNotFoundError:
                raise RecordGone(path=self.path(base), offset=base) from None
            self._maps[base] = mapped
        return mapped

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Bytes at a log offset, within one segment; fewer at its end."""
        base = offset - offset % self.segment_bytes
        mapped = self._maps.get(base) or self.memory(base)
        at = offset - base
        return mapped.memory[at : at + size_bytes]

    def read_rows(self, offsets: Int64s, size_bytes: int) -> tuple[Octets, npt.NDArray[np.bool_]]:
        """Stretches of one length at log offsets, one a row; and which of them are there."""
        rows = np.empty((len(offsets), size_bytes), np.uint8)
        there = np.zeros(len(offsets), np.bool_)
        bases = offsets - offsets % self.segment_bytes
        whole = (offsets >= 0) & (offsets - bases + size_bytes <= self.segment_bytes)
        for here in members_by_number(np.where(whole, bases, -1)):
            base = int(bases[here[0]])
            if not whole[here[0]]:
                continue
            with contextlib.suppress(RecordGone):
                found = rows_at(self.memory(base).memory, offsets[here] - base, size_bytes)
                if len(here) == len(offsets):
                    return found, np.ones(len(offsets), np.bool_)
                rows[here], there[here] = found, True
        return rows, there

    def walk(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Offset and size of each record in [start, end), by their lengths alone, fillers skipped.

        Stops at the first length that cannot be one.
        """
        position = start
        while position < end:
            base = self.base_of(position)
            memory = self.memory(base).memory
            limit = min(end, base + self.segment_bytes) - base
            at = position - base
            while at + FILLER_BYTES <= limit:
                size, magic = FILLER.unpack_from(memory, at)
                if magic == FILLER_MAGIC:
                    at = self.segment_bytes
                    break
                if size <= FILLER_BYTES or at + size > limit:
                    return
                yield base + at, size
                at += size
            position = base + at
            if at < self.segment_bytes:
                return

    def close(self) -> None:
        """Close all files and mappings."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._maps.clear()
