"""The forms in which `timer_engines` keeps waiting messages: each takes batches and reads spans.

| Form | Keeps |
|---|---|
| wheel | RocketMQ's TimerLog units and slots; the record is in the CommitLog |
| rocksdb positions | our second engine: key -> position of the record in the CommitLog |
| rocksdb records | seed 001, section 3.3.3: key -> the whole record |
| rocksdb blobs | the same with RocksDB's own separation of keys and values |
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rocksdict import Options

from queues.store.disk import Disk
from scheduler.engine.errors import EngineBusy
from scheduler.engine.keys import queue_offsets
from scheduler.engine.limits import READ_UNITS_MAX
from scheduler.engine.scan import Waiting
from scheduler.rocksdb import timeline as timeline_module
from scheduler.rocksdb.entries import VALUE, keys_for, time_key, values_of
from scheduler.rocksdb.timeline import Timeline
from scheduler.wheel.enqueue import enqueue
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.state import WheelState
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

START_MS = 1_700_000_000_000
TOPIC = "orders"
_READ_AT_ONCE = 8_192
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class Messages:
    """A batch: when each is due, its number, its id, and its record."""

    def __init__(self, chance: np.random.Generator, first: int, count: int, span_ms: int) -> None:
        self.offsets = np.arange(first, first + count, dtype=np.int64)
        self.due_ms = START_MS + 5_000 + chance.integers(1, span_ms, count)
        nibbles = chance.integers(0, 16, (count, 32), dtype=np.uint8)
        self.ids = _HEX[nibbles]


class Form(Protocol):
    """One way to keep messages in due order."""

    def put(self, messages: Messages, records: list[bytes]) -> None:
        """Take a batch in."""

    def read(self, from_ms: int, until_ms: int) -> tuple[np.ndarray, int]:
        """Numbers of the messages due in a span, in due order, and bytes of records that came."""

    def close(self) -> None:
        """Let the files go."""


class WheelForm:
    """RocketMQ's wheel, at its default size."""

    def __init__(self, root: Path) -> None:
        geometry = WheelGeometry(1000, 604_800, 16 << 20)
        wheel, log = TimerWheel(Disk(), root, geometry), TimerLog(Disk(), root, geometry)
        self._state = WheelState(
            geometry=geometry, wheel=wheel, log=log, settled_ms=START_MS, read_ms=START_MS,
            write_ms=START_MS,
        )  # fmt: skip

    def put(self, messages: Messages, records: list[bytes]) -> None:
        del records
        count = len(messages.offsets)
        sizes = np.full(count, 300, np.int32)
        waiting = Waiting(messages.offsets, messages.due_ms, messages.offsets * 300, sizes)
        enqueue(self._state, waiting)

    def read(self, from_ms: int, until_ms: int) -> tuple[np.ndarray, int]:
        found = []
        for slot_ms in range(from_ms, until_ms, 1000):
            reading = SlotReading(slot_ms, self._state.wheel, self._state.log)
            while not reading.finished:
                keys = reading.read(READ_UNITS_MAX)
                if keys is not None:
                    found.append(queue_offsets(keys))
        return np.concatenate(found), 0

    def close(self) -> None:
        self._state.log.close()
        self._state.wheel.close()


class TimelineForm:
    """RocksDB with the engine's keys."""

    def __init__(self, root: Path, *, whole: bool, blobs: bool = False) -> None:
        self._whole = whole
        self._restore = timeline_module.options
        if blobs:
            timeline_module.options = with_blobs(self._restore)
        self._path = root / "rocksdb"
        self._timeline = Timeline(self._path)

    def put(self, messages: Messages, records: list[bytes]) -> None:
        keys = keys_for(messages.due_ms, [TOPIC] * len(messages.offsets), messages.ids)
        values = records if self._whole else values_of(messages.offsets * 300, messages.offsets)
        while True:
            try:
                return self._timeline.write(zip(keys, values, strict=True), floor=None)
            except EngineBusy:
                time.sleep(0.002)

    def read(self, from_ms: int, until_ms: int) -> tuple[np.ndarray, int]:
        begin, end = time_key(from_ms + 1), time_key(until_ms + 1)
        found, record_bytes = [np.zeros(0, np.int64)], 0
        while entries := self._timeline.read(begin, end, _READ_AT_ONCE):
            values = [value for _, value in entries]
            if self._whole:
                record_bytes += sum(map(len, values))
                found.append(np.zeros(len(values), np.int64))
            else:
                joined = np.frombuffer(b"".join(values), VALUE)
                found.append(joined["queue_offset"].astype(np.int64))
            begin = entries[-1][0] + b"\0"
        return np.concatenate(found), record_bytes

    def reopen(self) -> None:
        """Close and open, so that nothing is in RocksDB's own cache."""
        self._timeline.close()
        self._timeline = Timeline(self._path)

    def close(self) -> None:
        self._timeline.close()
        timeline_module.options = self._restore


def with_blobs(options: Callable[[], Any]) -> Callable[[], Options]:
    """The same options with values in files of their own."""

    def make() -> Options:
        chosen: Options = options()
        chosen.set_enable_blob_files(True)
        chosen.set_min_blob_size(64)
        chosen.set_enable_blob_gc(True)
        return chosen

    return make


FORMS: dict[str, Callable[[Path], Form]] = {
    "wheel": WheelForm,
    "rocksdb positions": lambda root: TimelineForm(root, whole=False),
    "rocksdb records": lambda root: TimelineForm(root, whole=True),
    "rocksdb blobs": lambda root: TimelineForm(root, whole=True, blobs=True),
}
