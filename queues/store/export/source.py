"""A store held still: as it was at one log offset, whatever the platform does meanwhile.

No lock is taken. A prefix of the log is a whole state of the store, and a settled word tells by
itself whether it was set before the prefix ended: it is the log offset of the record that settled
the unit. So a word at or behind the end means that the message waited then. One that was restored
or released since may have been away then: it counts as waiting unless it is away now.

Retention may remove files meanwhile. Segments and schedule tables are therefore mapped first, and
what is mapped stays readable. A segment that is gone by then was listed after everything waiting in
it had been appended again, so the end, which is read after the list, lies behind that.
"""

from dataclasses import replace
from pathlib import Path

from queues.store.batch import FROM_LETTER_AT
from queues.store.control import Control
from queues.store.disk import Disk, Mapped
from queues.store.errors import NotAStore, StoreError
from queues.store.inspection.layout import Layout, find_layout
from queues.store.limits import SCHEDULE_UNITS
from queues.store.names import TIMER_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.record import BODY_AT, QUEUE_OFFSET_AT
from queues.store.schedule import ScheduleTable

#: How often segments may vanish between listing and mapping: retention removes a few an hour.
_TRIES = 10
#: ``PD_FROM`` of a restore or release, and of a cancel and a parking.
_RESTORED, _AWAY = b"S", (b"C", b"P")


class StoreMoving(StoreError):
    """Segments went faster than they could be opened."""

    hint = "Try again in a moment."


class _Holding(Disk):
    """A disk that keeps what it mapped, so that a removed file can still be read."""

    def __init__(self) -> None:
        self._held: dict[Path, Mapped] = {}

    def map(
        self, path: Path, *, size_bytes: int | None = None, create: bool = False, write: bool = True
    ) -> Mapped:
        """Map a file, or give the mapping again."""
        if write or create:
            return super().map(path, size_bytes=size_bytes, create=create, write=write)
        held = self._held.get(path)
        if held is None:
            held = self._held[path] = super().map(path, size_bytes=size_bytes, write=False)
        return held

    def size(self, path: Path) -> int:
        """The length of a file, also of one that is held and was removed."""
        held = self._held.get(path)
        return super().size(path) if held is None else held.size_bytes


class Source:
    """One store of ours, at one moment. Raises ``NotAStore``."""

    def __init__(self, root: Path) -> None:
        self._disk = _Holding()
        if not find_layout(self._disk, root).ours:
            raise NotAStore(path=root)
        control = Control.read(self._disk, root / "postdate" / "control")
        self._queues = QueueTable(self._disk, root / "postdate" / "queues", control, write=False)
        self._tables: dict[int, ScheduleTable] = {}
        self._root = root
        self._mins = {queue.index: self._queues.min(queue) for queue in self._queues.queues}
        for queue in self._queues.queues:
            if queue.scheduled:
                self._hold_table(queue)
        #: How the log lies, up to the moment.
        self.layout = self._hold_segments()

    def _hold_table(self, queue: Queue) -> None:
        table = self._table(queue)
        for unit in range(self._mins[queue.index], self._queues.max(queue), SCHEDULE_UNITS):
            table.describes(unit)

    def _hold_segments(self) -> Layout:
        for _ in range(_TRIES):
            layout = find_layout(self._disk, self._root)
            if all(layout.map(segment.path) for segment in layout.segments):
                break
        else:
            raise StoreMoving(path=self._root)
        last = layout.segments[-1] if layout.segments else None
        end = last.base + last.size if last else 0
        return replace(layout, committed=min(layout.committed or 0, end))

    @property
    def end(self) -> int:
        """The log offset that the moment is."""
        return self.layout.committed or 0

    def find(self, topic: str, queue_id: int) -> Queue | None:
        """The queue."""
        return self._queues.find(topic, queue_id)

    def min_offset(self, queue: Queue) -> int:
        """The first offset of a queue that could be read at the moment."""
        return self._mins.get(queue.index, 0)

    def settled_by(self, queue: Queue, unit: int) -> bytes | None:
        """What settled a unit before the moment (``PD_FROM``'s letter); None when it waited."""
        word = self._table(queue).settled(unit)
        if word == 0:
            return None
        letter, holding_unit = self._settling(word)
        if word < self.end:
            return letter
        if letter != _RESTORED:
            return None
        while letter == _RESTORED:
            queue = self._queues.find(TIMER_TOPIC, 0) or queue
            word = self._table(queue).settled(holding_unit)
            letter, holding_unit = self._settling(word) if word else (b"", 0)
        return letter if letter in _AWAY else None

    def _settling(self, offset: int) -> tuple[bytes, int]:
        """What the record at a log offset did, and its queue offset; nothing for one gone."""
        base = offset - offset % max(1, self.layout.segment_bytes)
        mapped = self.layout.map(self.layout.root / "commitlog" / f"{base:020d}")
        if mapped is None:
            return b"", 0
        memory, at = mapped.memory, offset - base
        topic_at = at + BODY_AT
        topic_at += int.from_bytes(memory[topic_at - 4 : topic_at], "big")
        if topic_at >= mapped.size_bytes:
            return b"", 0
        letter_at = topic_at + 3 + memory[topic_at] + FROM_LETTER_AT
        unit = int.from_bytes(memory[at + QUEUE_OFFSET_AT : at + QUEUE_OFFSET_AT + 8], "big")
        return memory[letter_at : letter_at + 1], unit

    def _table(self, queue: Queue) -> ScheduleTable:
        table = self._tables.get(queue.index)
        if table is None:
            path = self._root / "postdate" / "schedule" / queue.topic / str(queue.queue_id)
            table = self._tables[queue.index] = ScheduleTable(self._disk, path, write=False)
        return table
