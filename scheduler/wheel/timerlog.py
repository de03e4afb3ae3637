"""The TimerLog: files of 52-byte units, appended in batches and read in spans.

Every file is given its blocks when it is made, and the next one is made before it is needed, so
that appending does not lack space. A file that is full ends with a blank record, as RocketMQ's do.

Invariant: units 0 .. `end_number` are whole and contiguous from `begin_number` on; what lies behind
the end is zero or will be written over.
"""

import contextlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from queues.store.disk import Disk, File
from queues.store.timerunits import (
    BLANK,
    BLANK_MAGIC,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    Longs,
)
from scheduler.engine.places import WHEEL_LOG
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.limits import OPEN_LOG_FILES_MAX

FOLDER_NAME = str(WHEEL_LOG)
_NAME_DIGITS = 20
_ZEROED_AT_ONCE = 1 << 20


class TimerLog:
    """The files, and where the next unit goes."""

    def __init__(self, disk: Disk, root: Path, geometry: WheelGeometry) -> None:
        self.geometry = geometry
        self._disk = disk
        self._folder = root / FOLDER_NAME
        disk.make_dirs(self._folder)
        self._files: OrderedDict[int, File] = OrderedDict()
        self._synced_number = 0
        #: Number of the oldest unit that still has a file.
        self.begin_number = self._first_file() * geometry.units_per_file
        #: Number of the next unit.
        self.end_number = self.begin_number

    @property
    def end_position(self) -> int:
        """Where the next unit goes."""
        return self.geometry.position(self.end_number)

    @property
    def begin_position(self) -> int:
        """Where the oldest unit that still has a file lies."""
        return self.geometry.position(self.begin_number)

    @property
    def file_count(self) -> int:
        """Files that exist."""
        return len(self.file_numbers())

    def file_numbers(self) -> list[int]:
        """The numbers of the files, ascending."""
        size = self.geometry.log_file_bytes
        names = self._disk.list_names(self._folder)
        return [int(name) // size for name in names if name.isdecimal()]

    def _first_file(self) -> int:
        return min(self.file_numbers(), default=0)

    def next_positions(self, count: int) -> Longs:
        """Where the next `count` units will lie."""
        return self.geometry.positions(self.end_number, count)

    def append(self, units: npt.NDArray[Any]) -> None:
        """Write units at the end, one write a file; nothing counts as written if that fails."""
        number, per_file = self.end_number, self.geometry.units_per_file
        rest = units
        while len(rest):
            file, inside = divmod(number, per_file)
            part, rest = rest[: per_file - inside], rest[per_file - inside :]
            data = part.tobytes()
            if inside + len(part) == per_file:
                data += self._blank()
            self._file(file, create=True).pwrite(data, inside * TIMER_UNIT_BYTES)
            number += len(part)
        self.end_number = number

    def _blank(self) -> bytes:
        blank = np.zeros(1, dtype=BLANK)
        blank["size"] = (
            self.geometry.log_file_bytes - self.geometry.units_per_file * TIMER_UNIT_BYTES
        )
        blank["magic"] = BLANK_MAGIC
        return blank.tobytes()

    def begin_at(self, number: int) -> None:
        """Say where the log ends; what lies before is on the device."""
        self.end_number = self._synced_number = number

    def prepare_next(self, end_number: int) -> None:
        """Make the file after the one in use, while there is space.

        Opens the file itself, so that it may run beside the thread that appends.
        """
        if not end_number:
            return
        path = self._path((end_number - 1) // self.geometry.units_per_file + 1)
        if not self._disk.exists(path):
            file = self._disk.open(path, create=True)
            try:
                file.allocate(0, self.geometry.log_file_bytes)
            finally:
                file.close()

    def read(self, first_number: int, count: int) -> npt.NDArray[Any]:
        """Up to `count` units from one on, to the end of its file at most."""
        file, inside = divmod(first_number, self.geometry.units_per_file)
        count = min(count, self.geometry.units_per_file - inside)
        try:
            data = self._file(file).pread(count * TIMER_UNIT_BYTES, inside * TIMER_UNIT_BYTES)
        except FileNotFoundError:
            return np.zeros(0, dtype=TIMER_UNIT)
        return np.frombuffer(data, dtype=TIMER_UNIT, count=len(data) // TIMER_UNIT_BYTES)

    def cut(self, end_number: int) -> None:
        """Let the log end before unit `end_number`: zero what follows it, drop later files."""
        per_file, size = self.geometry.units_per_file, self.geometry.log_file_bytes
        file, inside = divmod(end_number, per_file)
        for number in reversed(self.file_numbers()):
            if number > file:
                self._drop(number)
        if self._disk.exists(self._path(file)):
            opened = self._file(file)
            for at in range(inside * TIMER_UNIT_BYTES, size, _ZEROED_AT_ONCE):
                part = opened.pread(min(_ZEROED_AT_ONCE, size - at), at)
                if part.count(0) != len(part):
                    opened.pwrite(bytes(len(part)), at)
        self.end_number = end_number
        self._synced_number = min(self._synced_number, end_number)

    def clear(self) -> None:
        """Drop all files, newest first (before a rebuild)."""
        for number in reversed(self.file_numbers()):
            self._drop(number)
        self.begin_number = self.end_number = self._synced_number = 0

    def drop_before(self, unit_number: int) -> int:
        """Drop the files that end before a unit; how many."""
        keep = unit_number // self.geometry.units_per_file
        gone = [number for number in self.file_numbers() if number < keep]
        for number in gone:
            self._drop(number)
            self.begin_number = (number + 1) * self.geometry.units_per_file
        return len(gone)

    def sync(self, end_number: int) -> None:
        """Return after the units before `end_number` are on the device.

        Opens the files itself, so that it may run beside the thread that appends.
        """
        per_file = self.geometry.units_per_file
        begin = max(self._synced_number, self.begin_number)
        if end_number <= begin:
            return
        for number in range(begin // per_file, (end_number - 1) // per_file + 1):
            with contextlib.suppress(FileNotFoundError):  # dropped since: nobody needs it
                self._sync_file(self._path(number))
        self._disk.sync_directory(self._folder)
        self._synced_number = end_number

    def _sync_file(self, path: Path) -> None:
        file = self._disk.open(path)
        try:
            file.sync()
        finally:
            file.close()

    def _path(self, file: int) -> Path:
        return self._folder / f"{file * self.geometry.log_file_bytes:0{_NAME_DIGITS}d}"

    def _file(self, number: int, *, create: bool = False) -> File:
        if (known := self._files.get(number)) is not None:
            self._files.move_to_end(number)
            return known
        path = self._path(number)
        missing = create and not self._disk.exists(path)
        file = self._disk.open(path, create=create)
        try:
            if missing or file.size() < self.geometry.log_file_bytes:
                file.allocate(0, self.geometry.log_file_bytes)
        except BaseException:
            file.close()
            raise
        self._files[number] = file
        if len(self._files) > OPEN_LOG_FILES_MAX:
            self._files.popitem(last=False)[1].close()
        return file

    def _drop(self, number: int) -> None:
        if (file := self._files.pop(number, None)) is not None:
            file.close()
        self._disk.unlink(self._path(number))

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
