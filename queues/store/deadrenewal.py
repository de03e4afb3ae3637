"""Renewing dead letters: they stay in their group's topic, and keep their time of death.

A dead letter whose segment is to go is appended to its topic again; the old unit's settled word
then points at the new record. One that was redriven is renewed together with a journal record
(letter ``X``) that says when and by whom, in one hold, so that it stays marked. Past the retention
of dead letters, counted from their death, nothing keeps them.
"""

import numpy as np

from queues.store.append import Appender
from queues.store.batch import Batch, Source
from queues.store.chains import renewal_of
from queues.store.control import Word
from queues.store.encode import Encoder
from queues.store.held import remains
from queues.store.parts import Parts
from queues.store.properties import PD_BY
from queues.store.queuetable import Queue
from queues.store.record import decode_record
from queues.store.scan import letters_of, parse
from queues.store.schedule import Int64s, ScheduleSlice


class DeadRenewal:
    """Renews the dead letters of one store."""

    def __init__(
        self, parts: Parts, appender: Appender, encoder: Encoder, retention_ms: int
    ) -> None:
        self._parts, self._appender, self._encoder = parts, appender, encoder
        self._retention_ms = retention_ms

    def kept(self, found: ScheduleSlice) -> Int64s:
        """Positions of the units whose dead letters are kept, redriven ones too."""
        redriven = letters_of(self._parts.log, found.settled) == ord("X")
        cutoff_ms = self._parts.clock.now_ms() - self._retention_ms
        return np.flatnonzero(((found.settled == 0) | redriven) & (found.due_ms >= cutoff_ms))

    def renew(self, queue: Queue, unit: int, settled: int, place: int, raw: bytes) -> int:
        """Append the dead letter again; 1, or 0 if someone changed it meanwhile."""
        record, batch = parse(raw), Batch()
        link = renewal_of(raw, place, queue.topic)
        source = Source(queue, unit, settled)
        self._encoder.link(batch, link, source, now_ms=record.due_ms)
        if settled == 0:
            return len(self._appender.write(batch, "renewed", privileged=True).entries.sizes)
        with self._appender.hold():
            if self._parts.table_of(queue).settled(unit) != settled:
                return 0
            self._mark_again(batch, queue, settled)
            self._appender.write(batch, "renewed", privileged=True)
        return 1

    def _mark_again(self, batch: Batch, queue: Queue, settled: int) -> None:
        """Add the mark of a redriven dead letter that is written in the same hold."""
        log, start = self._parts.log, self._parts.control.words[Word.COMMITTED]
        raw = log.read(settled, int.from_bytes(log.read(settled, 4), "big"))
        mark = parse(raw, offset=settled)
        pieces, _ = log.place(start, [row[0] for row in batch.rows])
        held = remains(mark.due_ms, queue.topic)
        self._encoder.journal(
            batch, held._replace(unique_id=mark.unique_id.encode(), kind=b"I"),
            Source(queue, self._parts.queues.max(queue), 0), pieces[-1].offset, b"X",
            event="redriven", by=decode_record(raw, verify=False).properties.get(PD_BY),
            body=b"{}", now_ms=self._parts.clock.now_ms(),
        )  # fmt: skip
