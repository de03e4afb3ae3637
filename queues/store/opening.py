"""Opening and leaving a store directory: refusals, the first one in, the last one out.

All openers hold ``postdate/open`` shared, and RocketMQ's ``lock`` too, so that a broker cannot
start on a live directory. Coming and going happen under the append lock. Whoever finds itself alone
on opening recovers the store; whoever finds itself alone on leaving flushes and removes ``abort``.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

from queues.store.control import Control, Word, boot_word
from queues.store.disk import BrokerLock, Disk, FileLock
from queues.store.errors import (
    FormatDamaged,
    HeldByBroker,
    NetworkFileSystem,
    NotOurStore,
    StoreVersionUnknown,
)
from queues.store.recovery import Recovery, must_distrust
from queues.store.settings import Sizes

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
FORMAT = Path("postdate", "format.json")
_DIRECTORIES = ("commitlog", "consumequeue", "index", "config", "postdate/leases")


def load_sizes(disk: Disk, root: Path, wanted: Sizes) -> Sizes:
    """The sizes of the store at `root`; a new store is made with those that are wanted.

    Raises `StoreVersionUnknown` for a newer format and `FormatDamaged` for one that is none.
    """
    path = root / FORMAT
    if disk.exists(path):
        return _read_sizes(path, disk.read_bytes(path))
    disk.replace(path, json.dumps(tell_sizes(wanted), indent=2).encode())
    return wanted


def tell_sizes(sizes: Sizes) -> dict[str, int]:
    """The sizes as `format.json` holds them."""
    return {"version": FORMAT_VERSION, **asdict(sizes)}


def _read_sizes(path: Path, data: bytes) -> Sizes:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatDamaged(path=path, reason=str(error)) from error
    if not isinstance(told, dict) or "version" not in told:
        raise FormatDamaged(path=path, reason="it names no version")
    version = told.pop("version")
    if version != FORMAT_VERSION:
        raise StoreVersionUnknown(path=path, found=version, known=FORMAT_VERSION)
    known = {field.name for field in fields(Sizes)}
    for name, value in told.items():
        if name not in known or type(value) is not int or value <= 0:
            raise FormatDamaged(path=path, reason=f"{name} is no size")
    return Sizes(**told)


def refuse_foreign(disk: Disk, root: Path) -> None:
    """Raise a `StoreUnsupported` for a directory that may not be written, before touching it."""
    kind = disk.network_file_system(root)
    if kind is not None:
        raise NetworkFileSystem(path=root, file_system=kind)
    if disk.list_names(root / "commitlog") and not disk.exists(root / FORMAT):
        # The page is made after the format is written, and by Postdate only.
        if disk.exists(root / "postdate" / "control"):
            raise FormatDamaged(path=root / FORMAT)
        raise NotOurStore(path=root)


class Presence:
    """This process's hold on the directory."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk, self._root = disk, root
        refuse_foreign(disk, root)
        for name in _DIRECTORIES:
            disk.make_dirs(root / name)
        self._broker_lock: BrokerLock = disk.broker_lock(root / "lock")
        if not self._broker_lock.try_share():
            self._broker_lock.close()
            raise HeldByBroker(path=root / "lock")
        self._open_lock: FileLock = disk.lock(root / "postdate" / "open")

    def enter(self, control: Control, recovery: Recovery) -> None:
        """Come in (under the append lock); the first one in recovers first."""
        if self._open_lock.try_own():
            path = control.mapped.path
            distrusted = must_distrust(control, self._disk, path)
            if distrusted:
                logger.warning("the machine may have crashed: %s is checked from the log", path)
            recovery.run(self._disk, distrusted=distrusted)
            control.set(Word.BOOT, boot_word(self._disk))
            control.set(Word.INODE, self._disk.inode(path))
            control.set(Word.FAILED, 0)
            control.set(Word.CLEAN, 0)
            control.mapped.sync()
            self._disk.sync_directory(path.parent)
            abort = self._root / "abort"
            self._disk.replace(abort, str(self._disk.process_id()).encode())
        self._open_lock.share()

    def leave(self, control: Control, settle: Callable[[], object]) -> None:
        """Go (under the append lock); the last one out puts all on the device."""
        if self._open_lock.try_own() and not control.words[Word.FAILED]:
            settle()
            # Everything else is on the device before the page says that it can be believed.
            self._disk.sync_file_system(self._root)
            control.set(Word.CLEAN, 1)
            control.mapped.sync()
            self._disk.unlink(self._root / "abort")

    def close(self) -> None:
        """Let go of the locks."""
        self._open_lock.close()
        self._broker_lock.close()
