"""The list of parked messages: found in the journal, step by step, and remembered.

Only what was appended since the last look is read. A parking counts while the settled word of the
unit that it settled still points at it.
"""

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from queues.store.commitlog import CommitLog
from queues.store.consumequeue import ConsumeQueues
from queues.store.errors import RecordCorrupt, RecordGone
from queues.store.names import JOURNAL_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.scan import Parsed, Scanner, letters_of, parse
from queues.store.schedule import LOST, ScheduleTable

_STEP_UNITS = 65_536


class ParkedList:
    """The messages that are parked now."""

    def __init__(
        self, queues: QueueTable, consume_queues: ConsumeQueues, log: CommitLog,
        table_of: Callable[[Queue], ScheduleTable],
    ) -> None:  # fmt: skip
        self._queues, self._consume_queues, self._log = queues, consume_queues, log
        self._table_of = table_of
        self._scanner = Scanner(log, queues)
        self._mutex = threading.Lock()
        self._seen = 0
        #: Log offset of the parking record -> message id and the unit that it settled.
        self._parked: dict[int, tuple[str, Queue, int]] = {}
        #: Log offset of a holding record -> of its parking record.
        self._parked_from: dict[int, int] = {}

    def ids(self, visible: int) -> list[str]:
        """Ids of the messages that are parked, oldest parking first."""
        with self._mutex:
            self._look(visible)
            gone = [
                offset
                for offset, (_, queue, unit) in self._parked.items()
                # What is damaged beyond finding again counts as lost; it was parked as such.
                if self._table_of(queue).settled(unit) not in (offset, LOST)
            ]
            for offset in gone:
                del self._parked[offset]
            return [message_id for message_id, _, _ in self._parked.values()]

    def _look(self, visible: int) -> None:
        journal = self._queues.find(JOURNAL_TOPIC, 0)
        if journal is None:
            return
        self._seen = max(self._seen, self._queues.min(journal))
        while self._seen < self._queues.max(journal):
            count = min(_STEP_UNITS, self._queues.max(journal) - self._seen)
            units = self._consume_queues.read(JOURNAL_TOPIC, 0, self._seen, count)
            units = units[units["log_offset"] + units["size"] <= visible]
            self._note_those(units["log_offset"].astype(np.int64), units["size"])
            self._seen += len(units)
            if len(units) < count:
                return

    def _note_those(self, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int32]) -> None:
        """Parse the parkings, and what cancels one; most of the journal is neither."""
        letters = letters_of(self._log, offsets)
        wanted = np.flatnonzero((letters == ord("P")) | (letters == ord("C")))
        for at in wanted.tolist():
            if letters[at] == ord("P") or self._parked_from:
                self._note(int(offsets[at]), int(sizes[at]))

    def _note(self, offset: int, size: int) -> None:
        try:
            record = parse(self._log.read(offset, size), offset=offset)
        except (RecordGone, RecordCorrupt):
            return
        if record.letter == "P":
            unit = parked_unit(record, self._queues) or self._scanner.settled_by(record)
            if unit is not None:
                self._parked[offset] = (record.unique_id, *unit)
                self._parked_from[record.continues] = offset
        elif record.letter == "C":
            # The word of what is damaged beyond finding again does not say so.
            former = self._parked_from.pop(record.continues, None)
            if former is not None:
                self._parked.pop(former, None)


def held_place(queue: Queue, queue_offset: int) -> dict[str, Any]:
    """What the parking record of a damaged record says of where that was held."""
    return {"held": [queue.topic, queue.queue_id, queue_offset]}


def parked_unit(record: Parsed, queues: QueueTable) -> tuple[Queue, int] | None:
    """The holding unit that the parking record of a damaged record names."""
    body = record.raw[88 : 88 + int.from_bytes(record.raw[84:88], "big")]
    told = json.loads(body) if body else {}
    if not isinstance(told, dict) or not isinstance(told.get("held"), list):
        return None
    topic, queue_id, unit = told["held"]
    queue = queues.find(topic, queue_id)
    return None if queue is None else (queue, unit)
