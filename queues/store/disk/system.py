"""The file system as the store uses it."""

import contextlib
import ctypes
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from queues.store.disk.files import File, Mapped, libc, translated
from queues.store.disk.locks import BrokerLock, FileLock
from queues.store.errors import WrongFileSize

#: File systems on which neither locks nor mapped memory are shared between machines (statfs magic).
_NETWORK_FILE_SYSTEMS = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.s3fs", "lustre", "gfs2", "ocfs2", "beegfs",
}  # fmt: skip


#: How the name of a file ends that is not whole yet.
UNFINISHED = ".new"
#: How much is read past the cache at once; a multiple of any device's block.
_DIRECT_BYTES = 1 << 20


class Disk:
    """The file system as the store uses it."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        """Open a file for positioned reads and writes; `FileNotFoundError` unless `create`."""
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return File(path, os.open(path, flags, 0o644))
        except OSError as error:
            raise translated(error, path) from error

    def map(
        self, path: Path, *, size_bytes: int | None = None, create: bool = False, write: bool = True
    ) -> Mapped:
        """Map a whole file.

        With `create` a missing file is made, zero-filled and given real blocks first (a full disk
        is then `DiskFull`, never a SIGBUS); it appears under its name only when it is whole.
        A file whose length is not `size_bytes` is refused with `WrongFileSize`.
        """
        if create and size_bytes is not None and not self.exists(path):
            self.create_whole(path, size_bytes)
        descriptor = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)
        try:
            length = os.fstat(descriptor).st_size
            if size_bytes is not None and length != size_bytes:
                raise WrongFileSize(path=path, size_bytes=length, expected_bytes=size_bytes)
            access = mmap.ACCESS_WRITE if write else mmap.ACCESS_READ
            return self._mapped(path, mmap.mmap(descriptor, length, access=access), write)
        finally:
            os.close(descriptor)

    def _mapped(self, path: Path, memory: mmap.mmap, write: bool) -> Mapped:
        return Mapped(path, memory, writable=write)

    def create_whole(self, path: Path, size_bytes: int) -> None:
        """Make a zero-filled file with real blocks that appears under its name when it is whole."""
        self.make_dirs(path.parent)
        temporary = path.with_name(
            f"{path.name}.{self.process_id()}.{threading.get_ident()}{UNFINISHED}"
        )
        file = self.open(temporary, create=True)
        try:
            file.allocate(0, size_bytes)
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            file.close()
            os.unlink(temporary)

    def exists(self, path: Path) -> bool:
        """Whether the path names anything."""
        return path.exists()

    def is_directory(self, path: Path) -> bool:
        """Whether the path names a directory."""
        return path.is_dir()

    def size(self, path: Path) -> int:
        """The length of a file in bytes."""
        return path.stat().st_size

    def modified_ms(self, path: Path) -> int:
        """When the file was last written, ms since the epoch."""
        return path.stat().st_mtime_ns // 1_000_000

    def inode(self, path: Path) -> int:
        """The file's inode number: another one means a copied directory."""
        return path.stat().st_ino

    def list_names(self, path: Path) -> list[str]:
        """The names in a directory, sorted; empty when there is none."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def make_dirs(self, path: Path) -> None:
        """Make a directory with its parents, if missing."""
        path.mkdir(parents=True, exist_ok=True)

    def unlink(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with all in it (derived files, while nobody has the store open)."""
        for parent, directories, names in os.walk(path, topdown=False):
            for name in names:
                self.unlink(Path(parent, name))
            for name in directories:
                os.rmdir(Path(parent, name))
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)

    def remove_matching(self, path: Path, pattern: str, *, sparing: Path) -> None:
        """Remove the files below a directory whose names match (what dead processes left).

        Those directly in `sparing` stay: there, processes that live make files as well.
        """
        for found in path.rglob(pattern):
            if found.parent != sparing:
                self.unlink(found)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, atomically."""
        os.replace(source, target)

    def sync_directory(self, path: Path) -> None:
        """Return after the directory's names are on the device."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_file_system(self, path: Path) -> None:
        """Return after all that was written to the file system of `path` is on the device."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if libc().syncfs(descriptor) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(path))
        finally:
            os.close(descriptor)

    def read_bytes(self, path: Path) -> bytes:
        """A whole small file."""
        return path.read_bytes()

    def read_direct(self, path: Path) -> bytes:
        """A whole file from the device itself: after a failed sync the cache may lie."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
        found = bytearray()
        try:
            with mmap.mmap(-1, _DIRECT_BYTES) as aligned:
                while count := os.preadv(descriptor, [aligned], len(found)):
                    found += aligned[:count]
        finally:
            os.close(descriptor)
        return bytes(found)

    def replace(self, path: Path, data: bytes) -> None:
        """Replace a small file atomically: temporary file, sync, rename, sync of the directory."""
        temporary = path.with_name(
            f"{path.name}.{self.process_id()}.{threading.get_ident()}{UNFINISHED}"
        )
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.pwrite(data, 0)
            file.sync()
        finally:
            file.close()
        self.rename(temporary, path)
        self.sync_directory(path.parent)

    def free_bytes(self, path: Path) -> int:
        """Bytes that this user may still allocate on the file system of `path`."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def lock(self, path: Path) -> FileLock:
        """A kernel lock on a lock file, which is made if missing."""
        return FileLock(path)

    def broker_lock(self, path: Path) -> BrokerLock:
        """RocketMQ's ``lock`` file."""
        return BrokerLock(path)

    def network_file_system(self, path: Path) -> str | None:
        """The name of the network file system that holds `path`; None on a local one."""
        best, kind = "", None
        target = str(path.resolve())
        for mount, name in self._mounts():
            inside = target == mount or target.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, name
        return kind if kind in _NETWORK_FILE_SYSTEMS else None

    def _mounts(self) -> Iterator[tuple[str, str]]:
        try:
            text = Path("/proc/self/mounts").read_text()
        except OSError:
            return
        for line in text.splitlines():
            fields = line.split(" ")
            yield fields[1].replace("\\040", " "), fields[2]

    def boot_id(self) -> str:
        """The kernel's name of this boot; empty when it cannot be read."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""

    def random_bytes(self, count: int) -> bytes:
        """Bytes that nobody can guess."""
        return os.urandom(count)

    def process_id(self) -> int:
        """The number of this process."""
        return os.getpid()
