"""The group offsets: ``config/consumerOffset.json``, up to where each group has settled each queue.

RocketMQ's file. The ledgers know more and are kept more often, so it only counts where a ledger is
missing: after one was lost, and for the groups of a broker's store. It is written after the ledgers
were synced, so it never promises more than they do.

Example: group ``billing`` has settled all before offset 12 in queue 0 of ``orders``:
``{"offsetTable": {"orders@billing": {"0": 12}}}``.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from queues.store.configfiles import load_with_backup, save_with_backup
from queues.store.disk import Disk
from queues.store.errors import ConfigCorrupt
from queues.store.ledgers import Ledgers, Place

_TABLE = "offsetTable"

Table = dict[str, dict[str, int]]


class GroupOffsets:
    """The file, changed by one process at a time."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._path = root / "config" / "consumerOffset.json"
        disk.make_dirs(self._path.parent)
        disk.make_dirs(root / "postdate")
        self._lock = disk.lock(root / "postdate" / "consumerOffset.lock")

    def find(self, place: Place) -> int | None:
        """The saved offset, if there is one; raises `ConfigCorrupt` for an unreadable file."""
        return self._load().get(_name(place), {}).get(str(place.queue_id))

    def save(self, floors: Mapping[Place, int]) -> None:
        """Write the offsets of these ledgers; what the file says of others stays."""
        with self._lock:
            before = self._readable()
            table: Table = {name: dict(offsets) for name, offsets in before.items()}
            for place, floor in floors.items():
                table.setdefault(_name(place), {})[str(place.queue_id)] = floor
            if table != before:
                self._write(table)

    def forget(self, group: str) -> None:
        """Take a group out of the file."""
        with self._lock:
            before = self._readable()
            table = {
                name: offsets
                for name, offsets in before.items()
                if _place(name, "0").group != group
            }
            if table != before:
                self._write(table)

    def cut(self, end_of: Callable[[Place], int]) -> None:
        """Lower what lies beyond the ends of the queues."""
        with self._lock:
            before = self._readable()
            table = {
                name: {
                    queue: min(offset, end_of(_place(name, queue)))
                    for queue, offset in offsets.items()
                }
                for name, offsets in before.items()
            }
            if table != before:
                self._write(table)

    def close(self) -> None:
        """Give the lock's descriptor back."""
        self._lock.close()

    def _load(self) -> Table:
        data: Any = load_with_backup(self._disk, self._path)
        table = data.get(_TABLE) if isinstance(data, dict) else None
        return table if isinstance(table, dict) else {}

    def _readable(self) -> Table:
        try:
            return self._load()
        except ConfigCorrupt:
            return {}  # The ledgers are the truth; the file is about to be written from them.

    def _write(self, table: Table) -> None:
        save_with_backup(self._disk, self._path, {_TABLE: table})


def _name(place: Place) -> str:
    return f"{place.topic}@{place.group}"


def _place(name: str, queue: str) -> Place:
    topic, _, group = name.partition("@")
    return Place(group, topic, int(queue))


def saved_offsets(disk: Disk, root: Path) -> dict[Place, int]:
    """All that the file says; `ConfigCorrupt` for an unreadable one."""
    data: Any = load_with_backup(disk, root / "config" / "consumerOffset.json")
    table: Table = data.get(_TABLE, {}) if isinstance(data, dict) else {}
    return {
        _place(name, queue): offset
        for name, offsets in table.items()
        for queue, offset in offsets.items()
    }


def distrust_groups(disk: Disk, root: Path) -> None:
    """Let the groups stand no farther than they were saved to, after the machine lost its power.

    Called before what the log tells of their retries is noted in the ledgers again.
    """
    ledgers = Ledgers(disk, root / "postdate" / "ledger")
    try:
        saved: dict[Place, int] = {}
        with contextlib.suppress(ConfigCorrupt):
            saved = saved_offsets(disk, root)
        ledgers.distrust(saved)
    finally:
        ledgers.close()


def cut_groups(disk: Disk, root: Path, end_of: Callable[[Place], int], log_end: int) -> None:
    """Take the groups back to the ends of queues and log, after the machine lost some of it.

    Called by whoever opens the store first, before anything is appended: what the lost messages'
    entries say must not be believed of those that will get their offsets.
    """
    ledgers, offsets = Ledgers(disk, root / "postdate" / "ledger"), GroupOffsets(disk, root)
    try:
        ledgers.cut(end_of, log_end)
        offsets.cut(end_of)
    finally:
        ledgers.close()
        offsets.close()
