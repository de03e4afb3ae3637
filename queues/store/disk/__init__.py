"""The disk: every file, mapping and kernel lock of the store, behind one seam.

Nothing else in the engine touches ``os``, ``mmap`` or ``fcntl``. A test disk subclasses `Disk`,
`File` and `Mapped`, and can so stop the writer between any two writes, tear a write, fill up, or
forget what was not synced.

Two rules make that possible: mapped memory is written through `Mapped.assign`, `Mapped.put` and
`Mapped.set_word` only, and files are written through `File.pwrite` only. Reading is free.
"""

from queues.store.disk.files import File, Mapped, Searchable, find_bytes
from queues.store.disk.locks import BrokerLock, FileLock
from queues.store.disk.system import UNFINISHED, Disk

__all__ = [
    "UNFINISHED",
    "BrokerLock",
    "Disk",
    "File",
    "FileLock",
    "Mapped",
    "Searchable",
    "find_bytes",
]
