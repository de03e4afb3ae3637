"""Progress: who holds which lock of the store and how far each has counted, read from outside.

The store's control page is mapped for reading only; the supervisor never opens the store.
"""

from collections.abc import Mapping
from pathlib import Path

from postdate.supervisor.supervisor import ReadProgress
from queues.store.control import Control, read_progress
from queues.store.disk import Disk
from queues.store.errors import StoreError


def progress_reader(store_dir: Path) -> ReadProgress:
    """Return a function that reads the progress of the store in `store_dir`, once there is one."""
    disk = Disk()
    path = store_dir / "postdate" / "control"
    mapped: list[Control] = []

    def read() -> Mapping[str, tuple[int, int]]:
        if not mapped:
            try:
                mapped.append(Control.read(disk, path))
            except (FileNotFoundError, StoreError):
                return {}  # no store yet, or one that is just being made
        return read_progress(mapped[0])

    return read
