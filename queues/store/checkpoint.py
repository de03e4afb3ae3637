"""RocketMQ's ``checkpoint`` file: how far log, ConsumeQueues and index were flushed.

====  ======================  ================================================================
at    field (8 bytes, BE)     meaning
====  ======================  ================================================================
0     log_ms                  store time of the last record flushed to the CommitLog
8     queues_ms               store time of the last record flushed to a ConsumeQueue
16    index_ms                store time of the last record flushed to the index
24    master_flushed_offset   how far the master flushed (replication; 0 here)
32    confirmed_offset        up to where a reader may look
====  ======================  ================================================================

The file has 4,096 bytes; the rest is zero. RocketMQ starts an abnormal recovery at the newest
segment whose first record is not younger than ``min_ms``.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from queues.store.disk import Disk

CHECKPOINT_BYTES: Final = 4096
_FIELDS: Final = struct.Struct(">5q")
#: RocketMQ's margin below the smaller of the two times.
_MARGIN_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class StoreCheckpoint:
    """What the ``checkpoint`` file says."""

    #: Store time of the last record flushed to the CommitLog, ms.
    log_ms: int = 0
    #: Store time of the last record flushed to a ConsumeQueue, ms.
    queues_ms: int = 0
    #: Store time of the last record flushed to the index, ms.
    index_ms: int = 0
    #: How far the master flushed, bytes.
    master_flushed_offset: int = 0
    #: Up to which log offset a reader may look.
    confirmed_offset: int = 0

    @property
    def min_ms(self) -> int:
        """Everything stored before this time is in the log and the ConsumeQueues, ms."""
        return max(0, min(self.log_ms, self.queues_ms) - _MARGIN_MS)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what the file's bytes say; a file that is too short says nothing."""
        return cls(*_FIELDS.unpack_from(data)) if len(data) >= _FIELDS.size else cls()

    def encode(self) -> bytes:
        """Return the file's bytes."""
        fields = _FIELDS.pack(
            self.log_ms,
            self.queues_ms,
            self.index_ms,
            self.master_flushed_offset,
            self.confirmed_offset,
        )
        return fields.ljust(CHECKPOINT_BYTES, b"\0")

    @classmethod
    def load(cls, disk: Disk, path: Path) -> Self:
        """Return what the file says; nothing if it is missing."""
        try:
            return cls.decode(disk.read_bytes(path))
        except FileNotFoundError:
            return cls()

    def save(self, disk: Disk, path: Path) -> None:
        """Write the file, atomically."""
        disk.replace(path, self.encode())
