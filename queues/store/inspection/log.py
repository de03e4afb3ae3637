"""Walking the CommitLog in order, stepping over what is damaged.

Behind a damaged place the walk goes on at the next place that looks like a record: its magic is
there, and it tells its own offset. The search is a search for bytes, so a hole of any length costs
little. What nothing follows is the log's end: its last place is kept in ``tail`` for the caller to
judge, because the end of a log that was being written may be unfinished.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from queues.store.disk import Searchable, find_bytes
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout, Segment
from queues.store.inspection.runs import Run, check_run, single_run
from queues.store.record import (
    FILLER_BYTES,
    FIXED_BYTES,
    LOG_OFFSET_AT,
    MAGIC_AT,
    MAGIC_FILLER,
    MAGIC_V1,
    MAGIC_V2,
    Checked,
    RecordState,
    check_record,
)

#: After a run as short as this, so many records are looked at one by one: they are of a kind that
#: runs do not take, and each start of a run costs as much as ten of them.
ONE_BY_ONE: Final = 64

_RECORD_MAGIC: Final = MAGIC_V1.to_bytes(4, "big")[:3]
_MAGIC_ENDS: Final = (MAGIC_V1 & 0xFF, MAGIC_V2 & 0xFF)
_FILLER_MAGIC: Final = MAGIC_FILLER.to_bytes(4, "big")


class Located(NamedTuple):
    """A whole record and where it lies."""

    #: The bytes of its segment.
    memory: memoryview
    #: Where it begins in ``memory``.
    at: int
    #: Its length.
    size: int
    #: Its log offset.
    offset: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of the log that holds no readable record."""

    path: Path
    #: Log offset.
    start: int
    #: Log offset of the first byte behind it.
    end: int
    #: Byte in the file.
    at: int
    reason: str


class LogWalk:
    """One walk over a log."""

    def __init__(self, layout: Layout, report: Report) -> None:
        self._layout, self._report = layout, report
        #: What could not be read, so far.
        self.damaged: list[Stretch] = []
        #: What no record followed, if it is not merely blank.
        self.tail: Stretch | None = None
        #: The log offset behind the last record.
        self.end = layout.log_min
        self._ended_early: Stretch | None = None

    def records(self) -> Iterator[Located]:
        """Give every whole record in log order."""
        for run in self.runs():
            for at, size in zip(run.ats, run.sizes, strict=True):
                yield Located(run.view, at, size, run.base + at)

    def runs(self) -> Iterator[Run]:
        """Give all whole records in log order, many at a time."""
        for segment in self._layout.segments:
            mapped = self._layout.map(segment.path)
            if mapped is None:
                continue
            limit = mapped.size_bytes
            if self._layout.committed is not None:
                limit = min(limit, self._layout.committed - segment.base)
            yield from self._segment(segment, memoryview(mapped.memory), mapped.memory, limit)
        if self._layout.committed is not None:
            self._settle_tail()  # What is committed was whole, and nothing of it blank.

    def readable_end(self) -> int | None:
        """Return from where on what is derived may be ahead of the walk; None if nothing may be.

        Records may have come since the walk, and a killed broker may have lost the log's end.
        """
        if self._layout.committed is not None:
            return self._layout.committed
        return None if self._layout.closed else self.end

    def take_tail(self) -> None:
        """Take the tail down as damage after all."""
        if self.tail is not None:
            self._settle_tail()

    def _segment(
        self, segment: Segment, view: memoryview, memory: Searchable, limit: int
    ) -> Iterator[Run]:
        at, one_by_one = 0, 0
        while at < limit:
            if one_by_one:
                run, one_by_one = None, one_by_one - 1
            else:
                run = check_run(view, segment.base, at, limit, sealed=self._layout.ours)
                one_by_one = 0 if run and len(run.ats) >= ONE_BY_ONE else ONE_BY_ONE
            found = (
                None
                if run
                else check_record(view, at, limit, segment.base + at, sealed=self._layout.ours)
            )
            if found and found.state is RecordState.WHOLE:
                run = single_run(view, segment.base, at, found.size)
            if run:
                self._settle_tail()
                at = run.end
                self.end = segment.base + at
                yield run
            elif found and found.state is RecordState.FILLER and at + found.size == limit:
                self._report.counts["fillers"] += 1
                return
            elif found:
                at = self._step_over(segment, memory, at, limit, found)

    def _step_over(
        self, segment: Segment, memory: Searchable, at: int, limit: int, found: Checked
    ) -> int:
        """Take down what is no record, and return where the walk goes on."""
        following = find_next(memory, at + 1, limit, segment.base)
        end = limit if following is None else following
        blank = found.state is RecordState.BLANK
        reason = "nothing was written here" if blank else found.reason or "a filler in the middle"
        stretch = Stretch(segment.path, segment.base + at, segment.base + end, at, reason)
        self._meet(stretch, last=following is None, blank=blank)
        return end

    def _meet(self, stretch: Stretch, *, last: bool, blank: bool) -> None:
        if not last:
            self._settle_tail()
            self._damage(stretch)
        elif blank:
            # The log's end, unless records follow in a later segment.
            self._ended_early = self._ended_early or stretch
        else:
            self._settle_tail()
            self.tail = stretch

    def _settle_tail(self) -> None:
        """A record follows, or the end is known to have been whole."""
        for stretch in (self.tail, self._ended_early):
            if stretch is not None:
                self._damage(stretch)
        self.tail = self._ended_early = None

    def _damage(self, stretch: Stretch) -> None:
        self.damaged.append(stretch)
        self._report.counts["damaged_stretches"] += 1
        self._report.add(stretch.path, stretch.at, stretch.reason)


def find_next(memory: Searchable, start: int, limit: int, base: int) -> int | None:
    """Return the next place that looks like a record or the segment's filler; None if none does."""
    places = (
        _next_record(memory, start, limit, base),
        _next_filler(memory, start, limit),
    )
    return min((place for place in places if place is not None), default=None)


def _next_record(memory: Searchable, start: int, limit: int, base: int) -> int | None:
    at = start + MAGIC_AT
    while True:
        at = find_bytes(memory, _RECORD_MAGIC, at, limit)
        if at < 0:
            return None
        place = at - MAGIC_AT
        head = memory[place : place + LOG_OFFSET_AT + 8]
        told = int.from_bytes(head[LOG_OFFSET_AT:], "big")
        size = int.from_bytes(head[:MAGIC_AT], "big")
        if (
            told == base + place
            and head[MAGIC_AT + 3] in _MAGIC_ENDS
            and FIXED_BYTES <= size <= limit - place
        ):
            return place
        at += 1


def _next_filler(memory: Searchable, start: int, limit: int) -> int | None:
    at = start + MAGIC_AT
    while True:
        at = find_bytes(memory, _FILLER_MAGIC, at, limit)
        if at < 0:
            return None
        place = at - MAGIC_AT
        size = int.from_bytes(memory[place:at], "big")
        if size >= FILLER_BYTES and place + size == limit:
            return place
        at += 1
