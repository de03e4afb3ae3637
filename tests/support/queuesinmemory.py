"""The reading side of a store, in memory: what `Consuming` asks of one, over lists of records."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.chains import Going, Gone
from queues.store.consumequeue import UNIT
from queues.store.disk import Disk
from queues.store.hashes import tags_code
from queues.store.messages import QueueBounds
from queues.store.record import Record, decode_record
from queues.store.recordencoding import encode_record


class NoChains:
    """Nothing is written to these queues, so no message goes on by a chain."""

    def mend(self) -> None:
        """Nothing is half-done."""

    def settle(self, end: int) -> None:
        """Nothing is flushed."""

    def newest_link(self, group: str, log_offset: int) -> int | None:
        """No message failed."""
        raise AssertionError(group, log_offset)

    def read_link(self, log_offset: int) -> bytes | None:
        """No message failed."""
        raise AssertionError(log_offset)

    def go_on(self, goings: Sequence[Going]) -> Iterator[list[tuple[Going, Gone]]]:
        """No group has a rule."""
        raise AssertionError(goings)


class QueuesInMemory:
    """Topics, queues and their records; a log offset is a record's number."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self.root = root
        self.disk = disk or Disk()
        self.chains = NoChains()
        #: So many of the last messages of each queue cannot be read yet.
        self.unreadable = 0
        #: How often the control plane was changed.
        self.changes = 0
        self._records: list[bytes | None] = []
        self._units: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        self._min: dict[tuple[str, int], int] = {}

    def flush(self) -> int:
        """Nothing is to be put on a device."""
        return len(self._records)

    def add_queue(self, topic: str, queue_id: int) -> None:
        """Make an empty queue."""
        self._units.setdefault((topic, queue_id), [])

    def put(
        self, topic: str, queue_id: int, body: bytes, *, tag: str | None = None, store_ms: int = 0
    ) -> int:
        """Append a message; return its queue offset."""
        self.add_queue(topic, queue_id)
        units = self._units[topic, queue_id]
        properties = {"PD_KIND": "I000", "UNIQ_KEY": f"{len(self._records):032x}"}
        if tag is not None:
            properties["TAGS"] = tag
        record = encode_record(
            topic=topic,
            queue_id=queue_id,
            queue_offset=len(units),
            log_offset=len(self._records),
            body=body,
            born_ms=store_ms,
            store_ms=store_ms,
            properties=properties,
        )
        units.append((len(self._records), len(record), tags_code(tag)))
        self._records.append(record)
        return len(units) - 1

    def fill(self, topic: str, queue_id: int, count: int) -> None:
        """Append messages whose bodies are their offsets."""
        self.add_queue(topic, queue_id)
        for _ in range(count):
            self.put(topic, queue_id, str(len(self._units[topic, queue_id])).encode())

    def damage(self, topic: str, queue_id: int, offset: int) -> None:
        """Make a record unreadable."""
        self._records[self._units[topic, queue_id][offset][0]] = None

    def retire(self, topic: str, queue_id: int, min_offset: int) -> None:
        """Let retention remove what lies before an offset."""
        self._min[topic, queue_id] = min_offset

    def queue_ids(self, topic: str) -> list[int]:
        """The queues of a topic."""
        return sorted(queue_id for name, queue_id in self._units if name == topic)

    def queue_tips(self) -> npt.NDArray[np.int64]:
        """The next offset of every queue, in order of first use."""
        return np.array([len(units) for units in self._units.values()], np.int64)

    def generation(self) -> int:
        """How often the control plane was changed."""
        return self.changes

    def queue_place(self, number: int) -> tuple[str, int]:
        """Topic and queue of a queue's number."""
        return list(self._units)[number]

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Which offsets can be read."""
        end = max(0, len(self._units.get((topic, queue_id), ())) - self.unreadable)
        return QueueBounds(self._min.get((topic, queue_id), 0), end)

    def read_units(self, topic: str, queue_id: int, start: int, count: int) -> npt.NDArray[np.void]:
        """Units, clipped to what can be read."""
        bounds = self.queue_bounds(topic, queue_id)
        first, stop = max(start, bounds.min_offset), min(start + count, bounds.max_offset)
        chosen = self._units.get((topic, queue_id), [])[first : max(first, stop)]
        return np.array(chosen, dtype=UNIT)

    def read_record(self, log_offset: int) -> Record:
        """The record at a log offset."""
        record = self._records[log_offset]
        assert record is not None
        return decode_record(record)

    def read_records(self, units: npt.NDArray[np.void]) -> list[bytes | None]:
        """The records of units; None for a damaged one."""
        return [self._records[number] for number in units["log_offset"].tolist()]


def body_of(record: bytes) -> bytes:
    """The body of a record's bytes."""
    return decode_record(record).body
