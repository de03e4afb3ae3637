"""ConsumeQueues: for every topic and queue, where its messages lie in the log (derived from it).

One 20-byte big-endian unit a message, 300,000 a file, named by the byte offset of the file's first
unit (RocketMQ):

=====  ==========  ====================================================================
byte   field       meaning
=====  ==========  ====================================================================
0      log_offset  where the record lies
8      size        its length
12     tags_code   Java hash of the tag; of a level's holding queue: the due time in ms
=====  ==========  ====================================================================

Example: unit 300,001 of a queue is at byte 20 of file ``00000000000006000000``.
Files have their full length from the start and get real blocks ahead of the writes, in steps of 4
KiB at first and of 64 KiB later.
"""

import struct
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.disk import Disk, File, Mapped
from queues.store.grouping import members_by_number
from queues.store.limits import MAPPED_QUEUE_FILES_MAX, OPEN_QUEUE_FILES_MAX

UNIT_BYTES = 20
#: A unit on disk.
DISK_UNIT = np.dtype([("log_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
#: A unit in memory, native.
UNIT = np.dtype([("log_offset", "i8"), ("size", "i4"), ("tags_code", "i8")])
#: A unit as bytes: moved so, many cost a tenth of what they do field by field.
_BYTES = np.dtype(f"V{UNIT_BYTES}")
#: What RocketMQ writes before the first unit of a queue that does not begin at 0.
BLANK_UNIT = (0).to_bytes(8, "big") + (0x7FFFFFFF).to_bytes(4, "big") + (0).to_bytes(8, "big")
_ONE_UNIT = struct.Struct(">qiq")
#: Real blocks are asked for in steps of so many bytes; beyond so many of a file, in larger ones.
_STEP_BYTES, _LATER_STEP_BYTES = 4_096, 65_536
#: Up to so many scattered units a read each costs less than mapping the file.
_READ_ONE_BY_ONE = 64


class ConsumeQueues:
    """The ConsumeQueue files of a store, with a bounded number of them open."""

    def __init__(self, disk: Disk, directory: Path, units_per_file: int, *, write: bool) -> None:
        self._disk, self._directory, self._write = disk, directory, write
        self._file_bytes = units_per_file * UNIT_BYTES
        self._open: OrderedDict[tuple[str, int, int], File] = OrderedDict()
        self._mapped: OrderedDict[tuple[str, int, int], Mapped] = OrderedDict()
        self._allocated: dict[tuple[str, int], int] = {}
        self._mutex = threading.Lock()

    def path(self, topic: str, queue_id: int, base: int) -> Path:
        """The file that begins at byte `base` of the queue."""
        return self._directory / topic / str(queue_id) / f"{base:020d}"

    def bases(self, topic: str, queue_id: int) -> list[int]:
        """The byte offsets at which the queue's files begin."""
        names = self._disk.list_names(self._directory / topic / str(queue_id))
        return [int(name) for name in names if name.isdigit()]

    def _file(self, topic: str, queue_id: int, base: int) -> File:
        key = (topic, queue_id, base)
        file = self._open.get(key)
        if file is not None:
            self._open.move_to_end(key)
            return file
        file = self._disk.open(self.path(topic, queue_id, base), write=self._write)
        self._open[key] = file
        if len(self._open) > OPEN_QUEUE_FILES_MAX:
            self._open.popitem(last=False)[1].close()
        return file

    def make_room(self, topic: str, queue_id: int, first_unit: int, end_unit: int) -> None:
        """Give real blocks to units [first_unit, end_unit) (`DiskFull` when there are none).

        Below `first_unit` room was made when those were written, or retention removed the file.
        """
        key, end = (topic, queue_id), end_unit * UNIT_BYTES
        if self._allocated.get(key, 0) >= end:
            return
        with self._mutex:
            first = first_unit * UNIT_BYTES
            file_start = first - first % self._file_bytes
            start = max(self._allocated.get(key, 0), file_start, first // _STEP_BYTES * _STEP_BYTES)
            while start < end:
                base = start - start % self._file_bytes
                self._create(topic, queue_id, base)
                wanted = min(end, base + self._file_bytes) - base
                step = _STEP_BYTES if wanted < _LATER_STEP_BYTES else _LATER_STEP_BYTES
                stop = base + min(self._file_bytes, -(-wanted // step) * step)
                self._file(topic, queue_id, base).allocate(start - base, stop - start)
                start = stop
            self._allocated[key] = start

    def _create(self, topic: str, queue_id: int, base: int) -> None:
        path = self.path(topic, queue_id, base)
        if self._disk.exists(path) and self._disk.size(path) >= self._file_bytes:
            return
        self._disk.make_dirs(path.parent)
        file = self._disk.open(path, create=True)
        try:
            file.truncate(self._file_bytes)
        finally:
            file.close()

    def write(self, topic: str, queue_id: int, first_unit: int, data: bytes) -> None:
        """Write units from `first_unit` on; room was made for them."""
        offset, view = first_unit * UNIT_BYTES, memoryview(data)
        with self._mutex:
            while view:
                base = offset - offset % self._file_bytes
                part = view[: base + self._file_bytes - offset]
                self._file(topic, queue_id, base).pwrite(part, offset - base)
                offset += len(part)
                view = view[len(part) :]

    def has_room(self, topic: str, queue_id: int, end_unit: int) -> bool:
        """Whether this process knows that units below `end_unit` have real blocks."""
        return self._allocated.get((topic, queue_id), 0) >= end_unit * UNIT_BYTES

    def write_one(self, topic: str, queue_id: int, unit: int, data: bytes) -> None:
        """Write one unit; room was made for it."""
        offset = unit * UNIT_BYTES
        base = offset - offset % self._file_bytes
        with self._mutex:
            self._file(topic, queue_id, base).pwrite(data, offset - base)

    def read(self, topic: str, queue_id: int, first_unit: int, count: int) -> npt.NDArray[np.void]:
        """Units as native `UNIT`s; fewer where the files end."""
        parts, offset, rest = [], first_unit * UNIT_BYTES, count * UNIT_BYTES
        with self._mutex:
            while rest > 0:
                base = offset - offset % self._file_bytes
                wanted = min(rest, base + self._file_bytes - offset)
                try:
                    part = self._file(topic, queue_id, base).pread(wanted, offset - base)
                except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                    break
                parts.append(part)
                offset, rest = offset + len(part), rest - len(part)
                if len(part) < wanted:
                    break
        data = b"".join(parts)
        return np.frombuffer(data, DISK_UNIT, count=len(data) // UNIT_BYTES).astype(UNIT)

    def read_one(self, topic: str, queue_id: int, unit: int) -> tuple[int, int, int] | None:
        """Log offset, size and tag's code of one unit; None where the files end."""
        offset = unit * UNIT_BYTES
        base = offset - offset % self._file_bytes
        with self._mutex:
            try:
                data = self._file(topic, queue_id, base).pread(UNIT_BYTES, offset - base)
            except FileNotFoundError:
                return None
        if len(data) < UNIT_BYTES:
            return None
        log_offset, size, tags_code = _ONE_UNIT.unpack(data)
        return log_offset, size, tags_code

    def read_at(
        self, topic: str, queue_id: int, units: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.void]:
        """Units at any offsets, native, in the order given; zeros where there is no file.

        A few are read one by one; many are taken from a mapping of the file, which has its full
        length. The last mappings are kept: a burst takes its units from the same few files.
        """
        if len(units) <= _READ_ONE_BY_ONE:
            return self._read_each(topic, queue_id, units.tolist())
        found = np.zeros(len(units), DISK_UNIT)
        numbers = units * UNIT_BYTES // self._file_bytes
        for here in members_by_number(numbers):
            base = int(numbers[here[0]]) * self._file_bytes
            with self._mutex:
                mapped = self._map(topic, queue_id, base)
                if mapped is not None:
                    inside = units[here] - base // UNIT_BYTES
                    whole = mapped.array(_BYTES, count=mapped.size_bytes // UNIT_BYTES)
                    found.view(_BYTES)[here] = whole.take(inside)
                    del whole
        return found.astype(UNIT)

    def _map(self, topic: str, queue_id: int, base: int) -> Mapped | None:
        """The mapping of a file; None where there is no file."""
        key = (topic, queue_id, base)
        mapped = self._mapped.get(key)
        if mapped is not None:
            self._mapped.move_to_end(key)
            return mapped
        path = self.path(topic, queue_id, base)
        if not self._disk.exists(path):
            return None
        mapped = self._mapped[key] = self._disk.map(path, write=False)
        if len(self._mapped) > MAPPED_QUEUE_FILES_MAX:
            self._mapped.popitem(last=False)[1].close()
        return mapped

    def _read_each(self, topic: str, queue_id: int, units: list[int]) -> npt.NDArray[np.void]:
        blank = bytes(UNIT_BYTES)
        parts = []
        with self._mutex:
            for unit in units:
                offset = unit * UNIT_BYTES
                base = offset - offset % self._file_bytes
                try:
                    part = self._file(topic, queue_id, base).pread(UNIT_BYTES, offset - base)
                except FileNotFoundError:
                    part = b""
                parts.append(part if len(part) == UNIT_BYTES else blank)
        return np.frombuffer(b"".join(parts), DISK_UNIT).astype(UNIT)

    def fill_blank(self, topic: str, queue_id: int, first_unit: int) -> None:
        """Fill the file that holds `first_unit` with RocketMQ's blanks up to it."""
        base = first_unit * UNIT_BYTES // self._file_bytes * self._file_bytes
        count = first_unit - base // UNIT_BYTES
        self._create(topic, queue_id, base)
        if count:
            self.write(topic, queue_id, base // UNIT_BYTES, BLANK_UNIT * count)

    def remove_below(self, topic: str, queue_id: int, min_unit: int) -> None:
        """Remove the files whose last unit is below `min_unit`, never the last file."""
        for base in self.bases(topic, queue_id)[:-1]:
            if base + self._file_bytes <= min_unit * UNIT_BYTES:
                with self._mutex:
                    key = (topic, queue_id, base)
                    if key in self._open:
                        self._open.pop(key).close()
                    if key in self._mapped:
                        self._mapped.pop(key).close()
                self._disk.unlink(self.path(topic, queue_id, base))

    def sync(self) -> None:
        """Put the open files on the device."""
        with self._mutex:
            files = list(self._open.values())
        if self._write:
            for file in files:
                file.sync()

    def close(self) -> None:
        """Close all files."""
        with self._mutex:
            for file in self._open.values():
                file.close()
            for mapped in self._mapped.values():
                mapped.close()
            self._open.clear()
            self._mapped.clear()
