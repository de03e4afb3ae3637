"""The fresh CommitLog of an export: RocketMQ's segments of 1 GiB, sparse, written front to back."""

from pathlib import Path
from typing import Final

from queues.store.batch import CRC_BYTES
from queues.store.crc import crc32
from queues.store.disk import Disk, File
from queues.store.names import TIMER_TOPIC
from queues.store.record import (
    BODY_AT,
    CRC_MASK,
    FILLER_BYTES,
    LOG_OFFSET_AT,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
    TOTAL_SIZE_AT,
    crc_property,
)
from queues.store.recordencoding import encode_filler

#: RocketMQ's default `mappedFileSizeCommitLog`, so that a broker needs no setting.
SEGMENT_BYTES: Final = 1 << 30
_BUFFER_BYTES: Final = 1 << 20
_TIMER_TOPIC: Final = bytes([len(TIMER_TOPIC)]) + TIMER_TOPIC.encode()
_HOLDING: Final = b"\x02REAL_TOPIC\x01"
#: The digits of `PD_DUE`, the first property.
_DUE: Final = slice(7, 20)


class FreshLog:
    """Writes records one behind the other; closed, it is on the device."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk, self._directory = disk, directory
        disk.make_dirs(directory)
        self._buffer = bytearray()
        self._base = 0
        #: Where the next record goes.
        self.end = 0
        self._file = self._begin()

    def append(self, record: bytearray, queue_offset: int) -> None:
        """Put a record at the end, with its new offsets and CRC."""
        if self.end + len(record) + FILLER_BYTES > self._base + SEGMENT_BYTES:
            self._roll()
        record[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8] = queue_offset.to_bytes(8, "big")
        record[LOG_OFFSET_AT : LOG_OFFSET_AT + 8] = self.end.to_bytes(8, "big")
        crc = crc32(memoryview(record)[:-CRC_BYTES]) & CRC_MASK
        record[-CRC_BYTES:] = crc_property(crc)
        self._buffer += record
        self.end += len(record)
        if len(self._buffer) >= _BUFFER_BYTES:
            self._write()

    def close(self) -> None:
        """Put all of it on the device."""
        self._write()
        self._file.sync()
        self._file.close()
        self._disk.sync_directory(self._directory)

    def _roll(self) -> None:
        rest = self._base + SEGMENT_BYTES - self.end
        self._buffer += encode_filler(rest)
        self.end += FILLER_BYTES
        self._write()
        self._file.sync()
        self._file.close()
        self._base += SEGMENT_BYTES
        self.end = self._base
        self._file = self._begin()

    def _begin(self) -> File:
        file = self._disk.open(self._directory / f"{self._base:020d}", create=True)
        file.truncate(SEGMENT_BYTES)
        return file

    def _write(self) -> None:
        self._file.pwrite(self._buffer, self.end - len(self._buffer) - self._base)
        self._buffer.clear()


def timed_record(raw: bytes, precision_ms: int) -> bytearray:
    """A waiting record as one of the timer topic, due at the same millisecond."""
    body_end = BODY_AT + int.from_bytes(raw[BODY_AT - 4 : BODY_AT], "big")
    properties = raw[body_end + 3 + raw[body_end] : -CRC_BYTES]
    due_ms = int(properties[_DUE])
    slot_ms = (due_ms - 1) // precision_ms * precision_ms
    own_end = properties.rfind(_HOLDING) + 1
    real = [pair for pair in properties[own_end:].split(b"\x02") if pair.startswith(b"REAL_")]
    told = b"TIMER_DELIVER_MS\x01%d" % due_ms, b"TIMER_OUT_MS\x01%d" % slot_ms, b""
    text = properties[:own_end] + b"\x02".join((*real, *told))
    length = len(text) + CRC_BYTES
    record = bytearray(raw[:body_end]) + _TIMER_TOPIC + length.to_bytes(2, "big") + text
    record += bytes(CRC_BYTES)
    record[TOTAL_SIZE_AT : TOTAL_SIZE_AT + 4] = len(record).to_bytes(4, "big")
    record[QUEUE_ID_AT : QUEUE_ID_AT + 4] = bytes(4)
    return record
