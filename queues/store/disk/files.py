"""An open file and a mapped file: the two ways in which bytes of the store are read and written."""

import contextlib
import ctypes
import errno
import mmap
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queues.store.errors import DiskFull

#: What can be searched; a mapping does not copy what is searched.
Searchable: TypeAlias = mmap.mmap | bytes

#: ``MS_SYNC`` of Linux.
_MS_SYNC = 4


class File:
    """One open file, read and written at positions."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Up to `size_bytes` bytes at `offset`; fewer at the end of the file."""
        return os.pread(self._descriptor, size_bytes, offset)

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`, or raise `DiskFull` or `OSError`."""
        written = self._pwrite_once(data, offset)
        if written == len(data):
            return
        rest = memoryview(data)[written:]
        while rest:
            offset += written
            written = self._pwrite_once(rest, offset)
            rest = rest[written:]

    def _pwrite_once(self, data: bytes | bytearray | memoryview, offset: int) -> int:
        try:
            return os.pwrite(self._descriptor, data, offset)
        except OSError as error:
            raise translated(error, self.path) from error

    def allocate(self, offset: int, size_bytes: int) -> None:
        """Give the range real blocks, so that a later write cannot lack space, or `DiskFull`."""
        try:
            os.posix_fallocate(self._descriptor, offset, size_bytes)
        except OSError as error:
            raise translated(error, self.path) from error

    def punch(self, offset: int, size_bytes: int) -> None:
        """Give the blocks of a range back; it reads as zeros afterwards. A hint: may do nothing."""
        keep_size_and_punch_hole = 0x03
        libc().fallocate(
            self._descriptor,
            keep_size_and_punch_hole,
            ctypes.c_longlong(offset),
            ctypes.c_longlong(size_bytes),
        )

    def truncate(self, size_bytes: int) -> None:
        """Set the length: longer is sparse, shorter only while nobody else has the store open."""
        os.ftruncate(self._descriptor, size_bytes)

    def size(self) -> int:
        """The length in bytes."""
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        """Return after what was written is on the device (``fdatasync``)."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Give the descriptor back; harmless if repeated."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Mapped:
    """A whole file through one shared mapping. Reading is free; writing has its methods."""

    def __init__(self, path: Path, memory: mmap.mmap, *, writable: bool) -> None:
        self.path = path
        self.size_bytes = len(memory)
        self.memory = memory
        #: Native 8-byte words of the file, for reading one at a time.
        self.words = memoryview(memory)[: len(memory) & ~7].cast("q")
        self._writable = writable

    def array(self, dtype: npt.DTypeLike, offset: int = 0, count: int = -1) -> npt.NDArray[Any]:
        """A live view of the file from byte `offset` on; write to it with `assign` only."""
        return np.frombuffer(self.memory, dtype=dtype, offset=offset, count=count)

    def assign(self, array: npt.NDArray[Any], index: Any, values: Any) -> None:
        """``array[index] = values`` for a view that `array` gave."""
        array[index] = values

    def put(self, offset: int, data: bytes) -> None:
        """Write `data` at byte `offset`."""
        self.memory[offset : offset + len(data)] = data

    def set_word(self, index: int, value: int) -> None:
        """Set the native word `index` by one aligned 8-byte store: no reader sees a half."""
        self.words[index] = value

    def address(self, offset: int) -> int:
        """Where byte `offset` lies in this process's memory (for the kernel's futex)."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory, offset))

    def sync(self) -> None:
        """Return after the mapping is on the device (``msync``); other threads go on meanwhile.

        (``mmap.flush`` would hold the interpreter for as long as the device takes.)
        """
        if not self._writable:
            return
        length = ctypes.c_size_t(self.size_bytes)
        if libc().msync(ctypes.c_void_p(self.address(0)), length, _MS_SYNC):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(self.path))

    def close(self) -> None:
        """Drop the mapping; it goes when the last view of it has gone."""
        self.words.release()
        with contextlib.suppress(BufferError):
            self.memory.close()


def translated(error: OSError, path: Path) -> Exception:
    """`DiskFull` for what a full disk, a quota or a size limit says; the error itself otherwise."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return DiskFull(path=path)
    return error


def find_bytes(memory: Searchable, wanted: bytes, start: int, end: int) -> int:
    """Where `wanted` first lies within [start, end); -1: nowhere.

    Before 3.11.5 Python's own `mmap.find` may read the byte behind the mapping, and die of it
    (python/cpython#105235). It is kept one byte away; the last place is looked at by itself.
    """
    end = min(end, len(memory))
    last = end - len(wanted)
    if last < start:
        return -1
    found = memory.find(wanted, start, end - 1)
    return last if found < 0 and memory[last:end] == wanted else found


def libc() -> ctypes.CDLL:
    """The C library, for the calls that the standard library has no name for."""
    return ctypes.CDLL(None, use_errno=True)
