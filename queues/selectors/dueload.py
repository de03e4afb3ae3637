"""The due load: how much comes due when, counted over everything that waits in one pass.

A pass reads 16 bytes a message (10,000,000 take some 100 ms). Pages ask for it every two seconds,
so a costly pass is kept for ten times as long as it took, and a page then shows it as of its time.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from queues import wires
from queues.limits import SCAN_UNITS
from queues.selectors.scheduled import Window, holders, wanted_of

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
    starts = [begin_ms // one.step_ms * one.step_ms - one.before * one.step_ms for one in spans]
    tallies = [np.zeros(one.count, dtype=np.int64) for one in spans]
    waiting = overdue = 0
    first: int | None = None
    for due_ms in _due_times(topic, kind):
        waiting += len(due_ms)
        overdue += int(np.count_nonzero(due_ms <= now_ms))
        soonest = int(due_ms.min())
        first = soonest if first is None else min(first, soonest)
        for index, one in enumerate(spans):
            # Narrowed before they are divided: most lie outside of a short span.
            end_ms = starts[index] + one.step_ms * one.count
            inside = due_ms[(due_ms >= starts[index]) & (due_ms < end_ms)]
            if len(inside):
                steps = (inside - starts[index]) // one.step_ms
                tallies[index] += np.bincount(steps, minlength=one.count)
    counted = tuple(
        Counted(start_ms, one.step_ms, tuple(tally.tolist()))
        for one, start_ms, tally in zip(spans, starts, tallies, strict=True)
    )
    return DueLoad(now_ms, counted, waiting, overdue, first)


def _due_times(topic: str | None, kind: str | None) -> Iterator[npt.NDArray[np.int64]]:
    """The due times of what waits, block by block; none of them empty."""
    store = wires.wiring().get_store()
    wanted = wanted_of(Window(topic=topic))
    if wanted is None:
        return
    for _, queue in holders(store, kind):
        for found in store.outlook.units(queue, wanted):
            if len(found.due_ms):
                yield found.due_ms


def _count_by_topic() -> dict[str, int]:
    store = wires.wiring().get_store()
    tally: dict[int, int] = {}
    for _, queue in holders(store):
        held_topic, queue_id = queue.topic, queue.queue_id
        at = store.first_unsettled(held_topic, queue_id)
        end = store.queue_bounds(held_topic, queue_id).max_offset
        while at < end:
            stop = min(end, at + SCAN_UNITS)
            found = store.schedule(held_topic, queue_id, at, stop)
            counts = np.bincount(found.topic_number[found.settled == 0])
            for number in np.flatnonzero(counts).tolist():
                tally[number] = tally.get(number, 0) + int(counts[number])
            at = stop
    return {store.topic_name(number): count for number, count in tally.items()}
