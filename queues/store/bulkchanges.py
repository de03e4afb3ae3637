"""Changes of many messages: the same records as of one (`changes`), some hundred to a hold.

Whoever asks has read the holding records and says which word each unit is expected to have; under
the append lock what was settled otherwise meanwhile is left out. A hold is bounded, so that what
is due now waits a millisecond for it at the most; pausing between holds is the caller's part.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from queues.store.append import Appender
from queues.store.batch import Batch, Source
from queues.store.clock import Clock
from queues.store.commitlog import CommitLog
from queues.store.encode import Encoder
from queues.store.errors import RecordCorrupt, RecordGone
from queues.store.handover import HandOvers
from queues.store.held import Held, take_apart
from queues.store.queuetable import Queue
from queues.store.scan import Parsed, parse, read_whole
from queues.store.schedule import Int64s

Thing = TypeVar("Thing")

#: Messages of one hold of the append lock: less than a millisecond.
BULK_RECORDS_MAX = 100
#: Bytes of one hold.
BULK_BYTES_MAX = 256 * 1024


class HeldUnit(NamedTuple):
    """A message as it is held: its unit, the word expected there, and its record."""

    queue: Queue
    unit: int
    word: int
    #: Log offset of the record.
    at: int
    record: Parsed

    @property
    def source(self) -> Source:
        """What a record that changes it settles."""
        return Source(self.queue, self.unit, self.word)


class Rehold(NamedTuple):
    """A message that is to be held again: a move or a restore."""

    #: What is settled.
    unit: HeldUnit
    #: Body, tag, keys and kind come from here.
    held: Held
    due_ms: int
    version: int
    kind: bytes


class BulkChanges:
    """Bulk changes of one store."""

    def __init__(
        self, appender: Appender, encoder: Encoder, log: CommitLog, hand_overs: HandOvers,
        clock: Clock, settle_flush: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._appender, self._encoder, self._log = appender, encoder, log
        self._hand_overs, self._clock, self._settle_flush = hand_overs, clock, settle_flush

    def units_at(self, queue: Queue, offsets: Int64s) -> npt.NDArray[np.void]:
        """The ConsumeQueue units at any offsets of a queue, in the order given."""
        return self._hand_overs.units_at(queue, offsets)

    def load(self, queue: Queue, offsets: Int64s, words: Int64s) -> Iterator[HeldUnit]:
        """The holding records at these offsets, in physical order; what is damaged is left out."""
        units = self.units_at(queue, offsets)
        places, sizes = units["log_offset"].tolist(), units["size"].tolist()
        numbers, expected = offsets.tolist(), words.tolist()
        for at in np.argsort(units["log_offset"], kind="stable").tolist():
            found = self.record_at(places[at], sizes[at])
            if found is not None:
                yield HeldUnit(queue, numbers[at], expected[at], places[at], found)

    def record_at(self, log_offset: int, size: int | None = None) -> Parsed | None:
        """The record at a log offset; None for one that is damaged or gone."""
        try:
            if size is None:
                size = int.from_bytes(self._log.read(log_offset, 4), "big")
            raw = read_whole(self._log, log_offset, size)
            return None if raw is None else parse(raw, offset=log_offset)
        except (RecordGone, RecordCorrupt):
            return None

    def finish(self) -> None:
        """Finish what a process died in, and let it be seen, so that its changes can be counted."""
        self._settle_flush(self._appender.finish())

    def cancel(self, units: Sequence[HeldUnit], *, by: str, reason: str | None) -> set[int]:
        """Cancel them; returns the units of those that someone else had settled."""
        body = json.dumps({"reason": reason} if reason else {}).encode()
        now_ms, lost = self._clock.now_ms(), set[int]()
        for some in _holds(units, [len(unit.record.raw) for unit in units]):
            batch = Batch()
            for unit in some:
                self._encoder.journal(
                    batch, take_apart(unit.record.raw), unit.source, unit.at, b"C",
                    event="cancelled", by=by, body=body, now_ms=now_ms,
                )  # fmt: skip
            lost.update(self._write(batch, "cancelled"))
        return lost

    def hold_again(
        self, messages: Sequence[Rehold], letter: bytes, *, by: str, counter: str
    ) -> set[int]:
        """Move (``M``) or restore (``S``) them; returns the units that were settled otherwise."""
        lost = set[int]()
        for some in _holds(messages, [len(one.unit.record.raw) for one in messages]):
            batch = Batch()
            for unit, held, due_ms, version, kind in some:
                self._encoder.hold_again(
                    batch, held, unit.source, unit.at, letter,
                    due_ms=due_ms, kind=kind, version=version, by=by,
                )  # fmt: skip
            lost.update(self._write(batch, counter))
        return lost

    def _write(self, batch: Batch, counter: str) -> tuple[int, ...]:
        written = self._appender.write(batch, counter, privileged=True)
        self._settle_flush(written.end)
        return written.settled


def _holds(things: Sequence[Thing], sizes: Sequence[int]) -> Iterator[Sequence[Thing]]:
    """The things in portions that one hold takes."""
    first = total = 0
    for number, size in enumerate(sizes):
        if number > first and (number - first == BULK_RECORDS_MAX or total + size > BULK_BYTES_MAX):
            yield things[first:number]
            first, total = number, 0
        total += size
    if first < len(things):
        yield things[first:]
