"""Where the engines keep their files, and how these go: first what makes them count."""

from pathlib import Path

from queues.store.disk import Disk

#: RocksDB's directory.
TIMELINE = Path("postdate", "rocksdb")
#: Without this file there is no database.
_CURRENT = "CURRENT"
#: The wheel's files; without the first there is no wheel.
WHEEL_CHECKPOINT = Path("config", "timercheck")
WHEEL_FILE = Path("timerwheel")
WHEEL_LOG = Path("timerlog")


def remove_timeline(disk: Disk, root: Path) -> bool:
    """Remove RocksDB's files; whether there were any. A stop half-way leaves no database."""
    folder = root / TIMELINE
    if not disk.exists(folder):
        return False
    if disk.exists(folder / _CURRENT):
        disk.unlink(folder / _CURRENT)
        disk.sync_directory(folder)
    disk.remove_tree(folder)
    return True


def remove_wheel(disk: Disk, root: Path) -> bool:
    """Remove the wheel's files; whether there were any. A stop half-way leaves no wheel."""
    checkpoint = root / WHEEL_CHECKPOINT
    if disk.exists(checkpoint):
        disk.unlink(checkpoint)
        disk.sync_directory(checkpoint.parent)
    had = disk.exists(root / WHEEL_FILE)
    disk.unlink(root / WHEEL_FILE)
    if disk.exists(root / WHEEL_LOG):
        disk.remove_tree(root / WHEEL_LOG)
        had = True
    return had
