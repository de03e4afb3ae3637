"""The list of parked messages: found in the journal, step by step, and remembered.

Only what was appended since the last look is read. A parking counts while the settled word of the
unit that it settled still points at it.
"""

import threading
from collections.abc import Callable

from queues.store.commitlog import CommitLog
from queues.store.consumequeue import ConsumeQueues
from queues.store.errors import RecordCorrupt, RecordGone
from queues.store.names import JOURNAL_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.scan import Scanner, parse
from queues.store.schedule import ScheduleTable

_STEP_UNITS = 4096


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

    def ids(self, visible: int) -> list[str]:
        """Ids of the messages that are parked, oldest parking first."""
        with self._mutex:
            self._look(visible)
            gone = [
                offset
                for offset, (_, queue, unit) in self._parked.items()
                if self._table_of(queue).settled(unit) != offset
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
            for offset, size in zip(
                units["log_offset"].tolist(), units["size"].tolist(), strict=True
            ):
                if offset + size > visible:
                    return
                self._note(offset, size)
                self._seen += 1
            if not len(units):
                return

    def _note(self, offset: int, size: int) -> None:
        try:
            record = parse(self._log.read(offset, size), offset=offset)
        except (RecordGone, RecordCorrupt):
            return
        if record.letter == "P":
            unit = self._scanner.settled_by(record)
            if unit is not None:
                self._parked[offset] = (record.unique_id, *unit)
