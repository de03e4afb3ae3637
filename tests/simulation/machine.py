"""The simulated machine: a disk that fails, forgets and fills, and locks that know who is dead.

It is the forgetful machine of `tests/support` with four things more: every access is a point at
which the turn may go to another process; locks are waited for by giving turns away; the disk may be
full; and after a failed sync the device is read as it is, not as the page cache tells.
"""

import os
import random
import shutil
from pathlib import Path
from typing import Any

from queues.store.disk import BrokerLock, File, FileLock
from queues.store.errors import DiskFull, StoreClosing
from scheduler.engine.places import TIMELINE
from tests.simulation.turns import Process, Turns
from tests.support.faulty_disk import Died, Fate
from tests.support.forgetful_disk import ForgetfulDisk, Machine, _ForgetfulFile

_FREE_BYTES = 1 << 40
_PAGE = 4096


class SimulatedMachine(Machine):
    """One computer, its page cache and its device."""

    def __init__(self, root: Path, turns: Turns, chance: random.Random) -> None:
        super().__init__(root)
        self.turns, self.chance = turns, chance
        #: Nothing more can be allocated.
        self.full = False
        self._holders: dict[Path, set[SimulatedLock]] = {}
        self.disks: list[SimulatedDisk] = []
        self.process_count = 0
        #: The pages of each file that have blocks.
        self._blocks: dict[int, set[int]] = {}

    def disk_of(self, process: Process | None) -> "SimulatedDisk":
        """The disk as a new process sees it."""
        disk = SimulatedDisk(self, process)
        self.disks.append(disk)
        self._disks.append(disk)
        return disk

    def release(self, disk: "SimulatedDisk") -> None:
        """Free what a dead process held, as the kernel does."""
        disk.bury()
        for file in disk.files:
            file.close()
        self.disks.remove(disk)
        self._disks.remove(disk)
        for holders in self._holders.values():
            for lock in [lock for lock in holders if lock.disk is disk]:
                holders.remove(lock)

    def power_cut(self, chance: random.Random | None = None) -> None:
        """Cut the power; RocksDB's own files are there whole, or gone: it writes them by itself."""
        folder, aside = self.root / TIMELINE, self.root.with_name("timeline aside")
        if folder.exists():
            folder.rename(aside)
        super().power_cut(chance)
        if aside.exists():
            shutil.rmtree(folder, ignore_errors=True)
            if chance is None or chance.random() < 0.5:
                aside.rename(folder)
            else:
                shutil.rmtree(aside)

    def blocks(self, inode: int) -> set[int]:
        """The pages of a file that have blocks, by its inode."""
        return self._blocks.setdefault(inode, set())

    def forget(self, inode: int) -> None:
        """A new file has this inode now."""
        super().forget(inode)
        self._blocks.pop(inode, None)

    def holders(self, path: Path) -> "set[SimulatedLock]":
        """The locks that are held on a file."""
        return self._holders.setdefault(path, set())

    def on_device(self, path: Path) -> bytes:
        """What a read past the page cache gives."""
        return self._contents.get(path.stat().st_ino, bytes(path.stat().st_size))


class SimulatedLock(FileLock):
    """A lock of one process on a file, waited for by giving turns away."""

    def __init__(self, path: Path, disk: "SimulatedDisk") -> None:
        self.path, self.disk = path, disk
        self._exclusive = False
        self._closed = False

    def _holders(self) -> "set[SimulatedLock]":
        return self.disk.simulated.holders(self.path)

    def _may_own(self) -> bool:
        return not (self._holders() - {self})

    def _may_share(self) -> bool:
        return not any(lock._exclusive for lock in self._holders() - {self})

    def acquire(self) -> None:
        self.disk.point()
        if self._closed:
            raise StoreClosing
        process = self.disk.process
        if not self._may_own():
            assert process is not None, f"{self.path} is held while nobody else runs"
            process.wait_until(self._may_own)
        self._take(exclusive=True)

    def try_acquire(self) -> bool:
        self.disk.point()
        if not self._may_own():
            return False
        self._take(exclusive=True)
        return True

    def acquire_within(self, wait_s: float) -> bool:
        """Nobody keeps a lock for long here: whoever waits at all gets it."""
        if self.try_acquire():
            return True
        if wait_s:
            self.acquire()
        return bool(wait_s)

    def release(self) -> None:
        if not self.disk.fate.dead:
            self._holders().discard(self)
            self._exclusive = False

    def share(self) -> None:
        self.disk.point()
        if not self._may_share():
            assert self.disk.process is not None
            self.disk.process.wait_until(self._may_share)
        self._take(exclusive=False)

    def try_own(self) -> bool:
        self.disk.point()
        alone = self._may_own()
        self._take(exclusive=alone)
        return alone

    def close(self) -> None:
        self._closed = True
        self._holders().discard(self)

    def _take(self, *, exclusive: bool) -> None:
        self._exclusive = exclusive
        self._holders().add(self)


class _Fate(Fate):
    """Every write is a point at which the turn may go to another process."""

    def __init__(self, disk: "SimulatedDisk") -> None:
        super().__init__()
        self._disk = disk

    def step(self) -> bool:
        if not self.dead:
            self._disk.point()
        return super().step()


class _File(_ForgetfulFile):
    disk: "SimulatedDisk"

    def pread(self, size_bytes: int, offset: int) -> bytes:
        self.disk.point()
        return super().pread(size_bytes, offset)

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        self._need_blocks(offset, len(data))
        super().pwrite(data, offset)

    def _torn_at(self, count: int, offset: int) -> int:
        """A ledger relies on what kernels do: a page is written whole, or not at all."""
        torn = super()._torn_at(count, offset)
        if "ledger" not in self.path.parts:
            return torn
        return max(0, (offset + torn) // _PAGE * _PAGE - offset)

    def truncate(self, size_bytes: int) -> None:
        if self.fate.step():
            raise Died
        super().truncate(size_bytes)

    def allocate(self, offset: int, size_bytes: int) -> None:
        self._need_blocks(offset, size_bytes)
        super().allocate(offset, size_bytes)

    def _need_blocks(self, offset: int, size_bytes: int) -> None:
        """Give a range blocks, if the disk is not full."""
        blocks = self.disk.simulated.blocks(os.fstat(self._descriptor).st_ino)
        pages = range(offset // _PAGE, (offset + max(1, size_bytes) - 1) // _PAGE + 1)
        if self.disk.simulated.full and not blocks.issuperset(pages):
            raise DiskFull(path=self.path)
        blocks.update(pages)

    def sync(self) -> None:
        self.disk.point()
        super().sync()


class SimulatedDisk(ForgetfulDisk):
    """The disk as one process of the simulated machine sees it."""

    def __init__(self, machine: SimulatedMachine, process: Process | None) -> None:
        super().__init__(machine)
        self.simulated, self.process = machine, process
        machine.process_count += 1
        self._process_id = machine.process_count
        self.fate = _Fate(self)
        #: What was opened: the kernel closes it when the process is dead.
        self.files: list[File] = []

    def point(self) -> None:
        """A place at which the turn may go to another process."""
        if self.fate.dead:
            raise Died
        self.simulated.turns.point(self.process)

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        if create and self.simulated.full and not path.exists():
            raise DiskFull(path=path)
        plain = super().open(path, create=create, write=write)
        file = _File(path, plain._descriptor)
        file.fate, file.machine, file.disk = self.fate, self.machine, self
        self.files.append(file)
        return file

    def create_whole(self, path: Path, size_bytes: int) -> None:
        if self.simulated.full:
            raise DiskFull(path=path)
        super().create_whole(path, size_bytes)

    def list_names(self, path: Path) -> list[str]:
        self.point()
        return super().list_names(path)

    def exists(self, path: Path) -> bool:
        self.point()
        return super().exists(path)

    def free_bytes(self, path: Path) -> int:  # noqa: ARG002
        return 0 if self.simulated.full else _FREE_BYTES

    def read_direct(self, path: Path) -> bytes:
        return self.simulated.on_device(path)

    def lock(self, path: Path) -> FileLock:
        self.make_dirs(path.parent)
        path.touch()
        return SimulatedLock(path, self)

    def broker_lock(self, path: Path) -> BrokerLock:
        lock: Any = super().broker_lock(path)
        return lock  # type: ignore[no-any-return]

    def network_file_system(self, path: Path) -> str | None:  # noqa: ARG002
        return None

    def random_bytes(self, count: int) -> bytes:
        return self.simulated.chance.randbytes(count)

    def process_id(self) -> int:
        return self._process_id
