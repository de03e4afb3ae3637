"""A machine whose disk forgets at a power cut what was not synced.

`Machine` keeps, beside the real files, what is *on the device*: the content of each file at its
last sync, and the names of each directory at its last sync. A power cut puts that back. With a
`Random` some 4 KiB pages and names of what came after are kept too, as a real device does that
writes in an order of its own.
"""

import random
from pathlib import Path
from typing import Any

from queues.store.disk import File
from tests.support.faulty_disk import Fate, FaultyDisk, FaultyFile, FaultyMapped

_PAGE = 4096


class Machine:
    """A computer with one store directory; every process on it has a disk of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.boots = 1
        self.syncs_fail = False
        self._disks: list[ForgetfulDisk] = []
        #: What is on the device: content by inode, inodes by name.
        self._contents: dict[int, bytes] = {}
        self._names: dict[Path, int] = {}

    def disk(self) -> "ForgetfulDisk":
        """The disk of a new process."""
        disk = ForgetfulDisk(self)
        self._disks.append(disk)
        return disk

    def kill(self) -> None:
        """All processes die; the kernel goes on and loses nothing."""
        for disk in self._disks:
            disk.bury()
        self._disks.clear()

    def power_cut(self, chance: random.Random | None = None) -> None:
        """The machine stops and starts again; what was not synced is gone, or some of it."""
        self.kill()
        self.boots += 1
        newest = {path: path.read_bytes() for path in _files(self.root)}
        inodes = {path: path.stat().st_ino for path in newest}
        for path, data in newest.items():
            inode = inodes[path]
            kept = self._names.get(path) == inode
            if not kept and (chance is None or chance.random() < 0.5):
                path.unlink()
                continue
            self._put_back(path, self._contents.get(inode, bytes(len(data))), data, chance)
        for path, inode in self._names.items():
            if not path.exists() and (chance is None or chance.random() < 0.5):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._contents.get(inode, b""))
        self.sync_everything()

    def power_cut_behind(self, segment: Path, size_bytes: int) -> None:
        """The power is cut, and all that is lost lies behind so many bytes of a segment."""
        data = segment.read_bytes()
        segment.write_bytes(data[:size_bytes].ljust(len(data), b"\0"))
        self.sync_everything()
        self.power_cut()

    def _put_back(self, path: Path, old: bytes, new: bytes, chance: random.Random | None) -> None:
        if old == new:
            return
        data = bytearray(old[: len(new)].ljust(len(new), b"\0"))
        for at in range(0, len(new), _PAGE):
            if chance is not None and chance.random() < 0.5:
                data[at : at + _PAGE] = new[at : at + _PAGE]
        with path.open("r+b") as file:
            file.write(data)

    def sync_file(self, path: Path, inode: int) -> None:
        """A file's content reaches the device."""
        if self.syncs_fail:
            raise OSError(5, "the device does not answer", str(path))
        if path.exists() and path.stat().st_ino == inode:
            self._contents[inode] = path.read_bytes()

    def forget(self, inode: int) -> None:
        """A new file has this inode now; nothing of it is on the device."""
        self._contents.pop(inode, None)

    def sync_names(self, directory: Path) -> None:
        """A directory's names reach the device."""
        for path in [path for path in self._names if path.parent == directory]:
            del self._names[path]
        for path in directory.iterdir():
            if path.is_file():
                self._names[path] = path.stat().st_ino

    def sync_everything(self) -> None:
        """All that was written reaches the device."""
        self._contents.clear()
        self._names.clear()
        for path in _files(self.root):
            self._names[path] = path.stat().st_ino
            self._contents[path.stat().st_ino] = path.read_bytes()


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


class _ForgetfulFile(FaultyFile):
    machine: Machine

    def sync(self) -> None:
        self.machine.sync_file(self.path, self.path.stat().st_ino if self.path.exists() else 0)


class _ForgetfulMapped(FaultyMapped):
    machine: Machine

    def sync(self) -> None:
        self.machine.sync_file(self.path, self.path.stat().st_ino if self.path.exists() else 0)


class ForgetfulDisk(FaultyDisk):
    """The disk as one process of a `Machine` sees it; the process may die at any write too."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(Fate())
        self.machine = machine

    def boot_id(self) -> str:
        return f"boot {self.machine.boots}"

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        new = create and not path.exists()
        file = super().open(path, create=create, write=write)
        if new:
            self.machine.forget(path.stat().st_ino)
        forgetful = _ForgetfulFile(path, file._descriptor)
        forgetful.fate, forgetful.machine = self.fate, self.machine
        return forgetful

    def _mapped(self, path: Path, memory: Any, write: bool) -> _ForgetfulMapped:
        mapped = _ForgetfulMapped(path, memory, writable=write)
        mapped.fate, mapped.machine = self.fate, self.machine
        return mapped

    def sync_directory(self, path: Path) -> None:
        self.machine.sync_names(path)

    def sync_file_system(self, path: Path) -> None:
        if self.machine.syncs_fail:
            raise OSError(5, "the device does not answer", str(path))
        self.machine.sync_everything()
