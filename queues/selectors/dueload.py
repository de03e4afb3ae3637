"""The due load: how much comes due when, counted over everything that waits in one pass.

A pass reads 16 bytes a message (10,000,000 take 60 to 160 ms). Pages ask for it every two seconds,
so a costly pass is kept for ten times as long as it took, and a page then shows it as of its time.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from queues import wires
from queues.selectors.scheduled import Window, holders, wanted_of
from queues.store.limits import SCHEDULE_UNITS
from queues.store.outlook import Dues
from queues.store.schedule import Int64s

#: A pass this quick is not worth keeping.
_QUICK_MS = 20
#: How many times its cost a pass is kept for.
_KEPT_TIMES = 10
_KEPT_MAX = 64


@dataclass(frozen=True, slots=True)
class Span:
    """Equal steps of time from now on, rounded down to the step."""

    step_ms: int
    count: int
    #: Steps before the one that holds now.
    before: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """How many messages are due in each step of a span."""

    start_ms: int
    step_ms: int
    counts: tuple[int, ...]

    @property
    def end_ms(self) -> int:
        """Where the last step ends."""
        return self.start_ms + self.step_ms * len(self.counts)


@dataclass(frozen=True, slots=True)
class DueLoad:
    """One pass."""

    #: When it was made, ms.
    at_ms: int
    #: One for each span that was asked for.
    spans: tuple[Counted, ...]
    #: Messages that wait, and those of them whose time has come.
    waiting: int
    overdue: int
    #: When the first is due, ms.
    next_due_ms: int | None


Made = TypeVar("Made")
#: What was asked for to when it ends, of which store it is, and what was made.
_kept: dict[Hashable, tuple[int, int, Any]] = {}
_mutex = threading.Lock()


def due_load(
    *spans: Span, topic: str | None = None, kind: str | None = None, from_ms: int | None = None
) -> DueLoad:
    """Count what waits; `kind` is `level` or `timed`, `from_ms` another beginning than now."""
    now_ms = wires.wiring().get_clock().now_ms()
    return _kept_or_made(
        (spans, topic, kind, from_ms), lambda: _count(spans, topic, kind, from_ms, now_ms)
    )


def waiting_by_topic() -> dict[str, int]:
    """How many messages wait for each topic, in one pass."""
    return _kept_or_made("by topic", _count_by_topic)


def _kept_or_made(asked: Hashable, make: Callable[[], Made]) -> Made:
    wiring = wires.wiring()
    clock, store_id = wiring.get_clock(), wiring.get_store().store_id
    began_ms = clock.monotonic_ms()
    kept = _kept.get(asked)
    if kept is not None and kept[1] == store_id and began_ms < kept[0]:
        found: Made = kept[2]
        return found
    made = make()
    cost_ms = clock.monotonic_ms() - began_ms
    if cost_ms > _QUICK_MS:
        with _mutex:
            if len(_kept) >= _KEPT_MAX:
                _kept.clear()
            _kept[asked] = (began_ms + cost_ms * _KEPT_TIMES, store_id, made)
    return made


def _count(
    spans: tuple[Span, ...], topic: str | None, kind: str | None, from_ms: int | None, now_ms: int
) -> DueLoad:
    begin_ms = now_ms if from_ms is None else from_ms
    return count_dues(_due_times(topic, kind), spans, begin_ms, now_ms)


def count_dues(looks: Iterable[Dues], spans: Sequence[Span], begin_ms: int, now_ms: int) -> DueLoad:
    """Count blocks into spans that begin at the same moment."""
    tallies = [_Tally(begin_ms, span) for span in spans]
    # The longest first: what one within it needs is looked for in what that one took.
    nested = sorted(tallies, key=lambda tally: tally.start_ms - tally.end_ms)
    waiting = overdue = 0
    first: int | None = None
    for dues in looks:
        waiting += dues.count
        if dues.low_ms <= now_ms:
            overdue += int(np.count_nonzero(dues.due_ms <= now_ms))
        if first is None or dues.low_ms < first:
            soonest = int(dues.due_ms.min())
            first = soonest if first is None else min(first, soonest)
        around: _Tally | None = None
        inside = dues.due_ms
        for tally in nested:
            if tally.covers_most(dues):
                tally.add_all(dues.due_ms)
                continue
            is_within = around is not None and around.holds(tally)
            inside = tally.add_some(inside if is_within else dues.due_ms)
            around = tally
    return DueLoad(now_ms, tuple(tally.counted() for tally in tallies), waiting, overdue, first)


class _Tally:
    """Counts into the steps of one span."""

    def __init__(self, begin_ms: int, span: Span) -> None:
        self._step_ms, self._count = span.step_ms, span.count
        self.start_ms = begin_ms // span.step_ms * span.step_ms - span.before * span.step_ms
        self.end_ms = self.start_ms + span.step_ms * span.count
        #: One step more on each side, for what lies outside.
        self._counts = np.zeros(span.count + 2, np.int64)
        self._scratch = np.empty(SCHEDULE_UNITS, np.int64)

    def holds(self, other: "_Tally") -> bool:
        """Whether the other's span lies within this one's."""
        return self.start_ms <= other.start_ms and other.end_ms <= self.end_ms

    def covers_most(self, dues: Dues) -> bool:
        """Whether most of a block lies within, so that narrowing it first would cost more."""
        common_ms = min(self.end_ms, dues.high_ms) - max(self.start_ms, dues.low_ms)
        return dues.low_ms >= 0 and 2 * common_ms > dues.high_ms - dues.low_ms

    def add_all(self, due_ms: Int64s) -> None:
        """Count a whole block; what lies outside goes to the steps at the sides."""
        steps = np.subtract(due_ms, self.start_ms, out=self._scratch[: len(due_ms)])
        np.floor_divide(steps, self._step_ms, out=steps)
        np.clip(steps, -1, self._count, out=steps)
        steps += 1
        self._counts += np.bincount(steps, minlength=self._count + 2)

    def add_some(self, due_ms: Int64s) -> Int64s:
        """Count what lies within, and return that."""
        inside = due_ms[(due_ms >= self.start_ms) & (due_ms < self.end_ms)]
        if len(inside):
            steps = (inside - self.start_ms) // self._step_ms + 1
            self._counts += np.bincount(steps, minlength=self._count + 2)
        return inside

    def counted(self) -> Counted:
        """The outcome."""
        return Counted(self.start_ms, self._step_ms, tuple(self._counts[1:-1].tolist()))


def _due_times(topic: str | None, kind: str | None) -> Iterator[Dues]:
    """The due times of what waits, block by block."""
    store = wires.wiring().get_store()
    wanted = wanted_of(Window(topic=topic, kind=kind))
    if wanted is None:
        return
    for _, queue in holders(store, kind):
        yield from store.outlook.dues(queue, wanted)


def _count_by_topic() -> dict[str, int]:
    store = wires.wiring().get_store()
    found = store.outlook.waiting_by_topic()
    return {store.topic_name(number): count for number, count in found.items()}
