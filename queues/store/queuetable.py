"""The queue table: every queue of the store, its number and its bounds (`postdate/queues`).

A growing mapped file of 192-byte entries; the control page says how many are valid.

======  ============  =====================================================================
byte    field         meaning
======  ============  =====================================================================
0       topic         up to 127 bytes UTF-8, padded with NUL
128     queue_id      native 8-byte word, as all below
136     topic_number  one number a topic, in order of first use (schedule table, 19 bits)
144     min           first offset that can still be read
152     max           the offset that the next message gets
160     spare         4 words
======  ============  =====================================================================

Entries are added and maxima raised under the append lock only; both are derived from the log.
Example: the third queue of ``orders`` with offsets 0 to 41 has queue_id 2, min 0, max 42.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.control import Control, Word
from queues.store.disk import Disk, Mapped
from queues.store.errors import MessageIllegal
from queues.store.limits import TOPIC_BYTES_MAX, TOPICS_MAX
from queues.store.names import holds_schedule

ENTRY_BYTES = 192
ENTRIES_PER_STEP = 4096
_TOPIC_BYTES = 128
#: No queue gets that far; more is damage.
_END_MAX = 1 << 48
_QUEUE_ID, _TOPIC_NUMBER, _MIN, _MAX = 16, 17, 18, 19
_ENTRY_WORDS = ENTRY_BYTES // 8


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """What never changes about a queue."""

    #: Position in the table.
    index: int
    topic: str
    queue_id: int
    topic_number: int
    #: Whether a schedule table lies beside it.
    scheduled: bool


def read_ends(table: bytes) -> dict[tuple[str, int], int]:
    """The next offset of every queue in the bytes of a table."""
    ends = {}
    for at in range(0, len(table) - ENTRY_BYTES + 1, ENTRY_BYTES):
        name = table[at : at + _TOPIC_BYTES].rstrip(b"\0")
        words = memoryview(table)[at : at + ENTRY_BYTES].cast("q")
        if not name:
            break
        if 0 <= words[_MAX] < _END_MAX and 0 <= words[_QUEUE_ID] < 1 << 31:
            ends[name.decode(errors="replace"), words[_QUEUE_ID]] = words[_MAX]
    return ends


class QueueTable:
    """All queues, shared by all processes."""

    def __init__(self, disk: Disk, path: Path, control: Control, *, write: bool = True) -> None:
        self._disk, self._path, self._control, self._write = disk, path, control, write
        self._mutex = threading.RLock()
        self._by_name: dict[tuple[str, int], Queue] = {}
        self._topic_numbers: dict[str, int] = {}
        #: In order; replaced, never changed, so that other threads may read on.
        self._queue_ids: dict[str, tuple[int, ...]] = {}
        self.queues: list[Queue] = []
        self._mapped = self._map()
        self.refresh()

    def _map(self) -> Mapped:
        size = ENTRIES_PER_STEP * ENTRY_BYTES
        if self._write and not self._disk.exists(self._path):
            return self._disk.map(self._path, size_bytes=size, create=True)
        return self._disk.map(self._path, write=self._write)

    def refresh(self) -> None:
        """Learn the queues that other processes added."""
        count = self._control.words[Word.QUEUE_COUNT]
        if len(self.queues) == count:
            return
        with self._mutex:
            if count * ENTRY_BYTES > self._mapped.size_bytes:
                self._mapped = self._map()
            for index in range(len(self.queues), count):
                self._learn(index)

    def _learn(self, index: int) -> Queue:
        at = index * ENTRY_BYTES
        topic = bytes(self._mapped.memory[at : at + _TOPIC_BYTES]).rstrip(b"\0").decode()
        word = index * _ENTRY_WORDS
        words = self._mapped.words
        queue = Queue(
            index,
            topic,
            words[word + _QUEUE_ID],
            words[word + _TOPIC_NUMBER],
            holds_schedule(topic),
        )
        self._by_name[topic, queue.queue_id] = queue
        self._topic_numbers[topic] = queue.topic_number
        known = self._queue_ids.get(topic, ())
        self._queue_ids[topic] = tuple(sorted((*known, queue.queue_id)))
        self.queues.append(queue)
        return queue

    def find(self, topic: str, queue_id: int) -> Queue | None:
        """The queue, or None when nothing was ever written to it."""
        queue = self._by_name.get((topic, queue_id))
        if queue is None:
            self.refresh()
            queue = self._by_name.get((topic, queue_id))
        return queue

    def obtain(self, topic: str, queue_id: int) -> Queue:
        """The queue, added to the table if it is new (under the append lock)."""
        return self.find(topic, queue_id) or self._add(topic, queue_id)

    def _add(self, topic: str, queue_id: int) -> Queue:
        name = topic.encode()
        if not name or len(name) > TOPIC_BYTES_MAX or not 0 <= queue_id < 1 << 31:
            raise MessageIllegal(topic=topic, queue_id=queue_id, reason="no such queue can be")
        with self._mutex:
            count = self._control.words[Word.QUEUE_COUNT]
            number = self._topic_number(topic)
            if (count + 1) * ENTRY_BYTES > self._mapped.size_bytes:
                self._grow()
            word = count * _ENTRY_WORDS
            self._mapped.put(count * ENTRY_BYTES, name.ljust(_TOPIC_BYTES, b"\0"))
            self._mapped.set_word(word + _QUEUE_ID, queue_id)
            self._mapped.set_word(word + _TOPIC_NUMBER, number)
            self._mapped.set_word(word + _MIN, 0)
            self._mapped.set_word(word + _MAX, 0)
            self._control.set(Word.QUEUE_COUNT, count + 1)
            return self._learn(count)

    def _topic_number(self, topic: str) -> int:
        known = self._topic_numbers.get(topic)
        if known is not None:
            return known
        number = len(self._topic_numbers)
        if number >= TOPICS_MAX:
            raise MessageIllegal(topic=topic, reason=f"the store has {TOPICS_MAX} topics already")
        return number

    def number_of(self, topic: str) -> int:
        """The topic's number; it gets one, with its queue 0, if new (under the append lock)."""
        known = self._topic_numbers.get(topic)
        return known if known is not None else self.obtain(topic, 0).topic_number

    def topic_of(self, number: int) -> str:
        """The topic that has the number."""
        self.refresh()
        return next(topic for topic, found in self._topic_numbers.items() if found == number)

    def _grow(self) -> None:
        size = self._mapped.size_bytes
        file = self._disk.open(self._path)
        try:
            file.allocate(size, ENTRIES_PER_STEP * ENTRY_BYTES)
        finally:
            file.close()
        self._mapped = self._map()

    def topics(self) -> list[str]:
        """All topics that a queue was ever written of, in order of first use."""
        self.refresh()
        return list(self._topic_numbers)

    def queue_ids(self, topic: str) -> tuple[int, ...]:
        """The queues of a topic, in order."""
        self.refresh()
        return self._queue_ids.get(topic, ())

    def tips(self) -> npt.NDArray[np.int64]:
        """A copy of all maxima, in the table's order."""
        self.refresh()
        count = len(self.queues)
        words = self._mapped.array(np.int64, count=count * _ENTRY_WORDS)
        return words[_MAX::_ENTRY_WORDS].copy()

    def min(self, queue: Queue) -> int:
        """The first offset that can still be read."""
        return self._mapped.words[queue.index * _ENTRY_WORDS + _MIN]

    def max(self, queue: Queue) -> int:
        """The offset that the next message gets; may run ahead of what readers may see."""
        return self._mapped.words[queue.index * _ENTRY_WORDS + _MAX]

    def end(self, topic: str, queue_id: int) -> int:
        """The offset that the queue's next message gets; 0 for a queue that is not there."""
        queue = self.find(topic, queue_id)
        return 0 if queue is None else self.max(queue)

    def set_min(self, queue: Queue, value: int) -> None:
        """Raise the first readable offset (under the append lock)."""
        self._mapped.set_word(queue.index * _ENTRY_WORDS + _MIN, value)

    def set_max(self, queue: Queue, value: int) -> None:
        """Set the next offset (under the append lock)."""
        self._mapped.set_word(queue.index * _ENTRY_WORDS + _MAX, value)

    def sync(self) -> None:
        """Put the table on the device."""
        self._mapped.sync()
