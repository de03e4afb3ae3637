"""The wheel's checkpoint: `config/timercheck`, 4 KiB with RocketMQ's 56 bytes.

| At | Field |
|---|---|
| 0 | read time: slots before it hold nothing unsettled, ms |
| 8 | TimerLog position up to which log and wheel are on the device |
| 16 | queue offset in the timer topic up to which messages are in the TimerLog |
| 24 | the same of RocketMQ's master: the same number |
| 32, 40, 48 | data version: 0, time of writing ms, counter |

It is replaced as a whole, after CommitLog, TimerLog and wheel were synced, in this order. While it
is missing, the wheel counts as missing and is rebuilt.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from queues.store.disk import Disk
from scheduler.engine.places import WHEEL_CHECKPOINT

CHECKPOINT_BYTES = 4096
_FIELDS = struct.Struct(">7q")


@dataclass(frozen=True, slots=True)
class WheelCheckpoint:
    """What is known to be on the device."""

    #: Slots before this time hold nothing unsettled, ms.
    read_ms: int
    #: Where the TimerLog ended.
    log_position: int
    #: The first queue offset that may not be in the TimerLog.
    queue_offset: int
    #: When it was written, ms.
    written_ms: int
    #: How often it was written.
    counter: int = 0

    def encode(self) -> bytes:
        """The file's bytes."""
        fields = _FIELDS.pack(
            self.read_ms,
            self.log_position,
            self.queue_offset,
            self.queue_offset,
            0,
            self.written_ms,
            self.counter,
        )
        return fields.ljust(CHECKPOINT_BYTES, b"\0")


def checkpoint_path(root: Path) -> Path:
    """Where the checkpoint lies."""
    return root / WHEEL_CHECKPOINT


def load_checkpoint(disk: Disk, root: Path) -> WheelCheckpoint | None:
    """The checkpoint; None when it is missing or no checkpoint."""
    try:
        data = disk.read_bytes(checkpoint_path(root))
    except FileNotFoundError:
        return None
    if len(data) < _FIELDS.size:
        return None
    read_ms, log_position, queue_offset, _master, _state, written_ms, counter = _FIELDS.unpack_from(
        data
    )
    if read_ms <= 0 or log_position < 0 or queue_offset < 0:
        return None
    return WheelCheckpoint(read_ms, log_position, queue_offset, written_ms, counter)


def save_checkpoint(disk: Disk, root: Path, checkpoint: WheelCheckpoint) -> None:
    """Replace the checkpoint."""
    path = checkpoint_path(root)
    disk.make_dirs(path.parent)
    disk.replace(path, checkpoint.encode())


def forget_checkpoint(disk: Disk, root: Path) -> None:
    """Remove the checkpoint: from here on the wheel counts as missing."""
    path = checkpoint_path(root)
    if disk.exists(path):
        disk.unlink(path)
        disk.sync_directory(path.parent)
