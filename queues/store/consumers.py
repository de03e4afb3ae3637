"""The names of consumers: a small number stands for each in the ledgers' entries.

A ledger entry has 24 bits for who holds its lease, so each group keeps a ring of the names that its
consumers gave, ``postdate/consumers/<group>``. It is a help for people: a lease whose name was
overwritten by 16,384 newer ones has no holder's name any more, and nothing else hangs on it.

=====  ==========================================================================
byte   meaning (native)
=====  ==========================================================================
0      8 bytes: how many names were ever written
512 n  slot n - 1: number (8 bytes), length (2 bytes) and the name, UTF-8, cut
=====  ==========================================================================

Example: the third consumer of a group, ``worker-3``, has number 3 and lies at byte 1536.
"""

import struct
import threading
from pathlib import Path

from queues.store.disk import Disk, File
from queues.store.errors import DiskFull
from queues.store.ledgerentries import CONSUMER_MAX

_SLOTS = 16_384
_SLOT_BYTES = 512
_COUNT = struct.Struct("=q")
_HEAD = struct.Struct("=qH")
_NAME_BYTES_MAX = _SLOT_BYTES - _HEAD.size


class ConsumerNames:
    """The names in all groups; safe for threads and processes."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk, self._directory = disk, directory
        self._mutex = threading.Lock()
        #: By group: name to number, and how many were read.
        self._known: dict[str, tuple[dict[str, int], int]] = {}

    def number_of(self, group: str, name: str | None) -> int:
        """The number that stands for a name; 0 for none, or if there is no space to keep it."""
        if name is None:
            return 0
        name = name.encode()[:_NAME_BYTES_MAX].decode("utf-8", "ignore")
        numbers, count = self._known.get(group, ({}, 0))
        number = numbers.get(name, 0)
        if number > count - _SLOTS and number:
            return number
        with self._mutex:
            try:
                return self._find_or_add(group, name)
            except DiskFull:
                return 0

    def name_of(self, group: str, number: int) -> str | None:
        """The name that a number stands for; None if it is not kept any more."""
        path = self._directory / group
        if not number or not self._disk.exists(path):
            return None
        file = self._disk.open(path, write=False)
        try:
            return _name_at(file, number)
        finally:
            file.close()

    def _find_or_add(self, group: str, name: str) -> int:
        self._disk.make_dirs(self._directory)
        path = self._directory / group
        lock = self._disk.lock(path)
        file = self._disk.open(path, create=True)
        try:
            with lock:
                numbers, count = self._read_on(group, file)
                number = numbers.get(name, 0)
                if number <= count - _SLOTS or not number:
                    number = count % CONSUMER_MAX + 1
                    data = name.encode()
                    slot = _HEAD.pack(number, len(data)) + data
                    file.pwrite(slot.ljust(_SLOT_BYTES, b"\0"), _slot_at(number))
                    file.pwrite(_COUNT.pack(number), 0)
                    numbers[name] = number
                    self._known[group] = numbers, number
                return number
        finally:
            file.close()
            lock.close()

    def _read_on(self, group: str, file: File) -> tuple[dict[str, int], int]:
        """What others added since."""
        numbers, seen = self._known.get(group, ({}, 0))
        data = file.pread(_COUNT.size, 0)
        count = _COUNT.unpack(data)[0] if len(data) == _COUNT.size else 0
        if count < seen:
            numbers, seen = {}, 0  # The numbers began anew.
        for number in range(max(seen, count - _SLOTS) + 1, count + 1):
            name = _name_at(file, number)
            if name is not None:
                numbers[name] = number
        self._known[group] = numbers, count
        return numbers, count


def _slot_at(number: int) -> int:
    return _SLOT_BYTES * (1 + (number - 1) % _SLOTS)


def _name_at(file: File, number: int) -> str | None:
    data = file.pread(_SLOT_BYTES, _slot_at(number))
    if len(data) < _HEAD.size:
        return None
    found, length = _HEAD.unpack_from(data)
    if found != number:
        return None
    return data[_HEAD.size : _HEAD.size + length].decode("utf-8", "replace")
