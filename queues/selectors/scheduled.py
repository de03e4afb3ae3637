"""What waits: scans of the schedule table, vectorised, exact and without anything to keep in step.

A message waits in a level's queue or in the timer queue until its settled word is set. The table
says of each unit when it is due and for which topic, so windows and counts read no message.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues import wires
from queues.limits import SCAN_UNITS
from queues.store import Store, StoreError
from queues.store.limits import DUE_MS_MAX
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.record import Record

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """Which waiting messages are meant; None is any."""

    topic: str | None = None
    #: `level` or `timed`.
    kind: str | None = None
    #: Due at or after, ms.
    due_from_ms: int = 0
    #: Due before, ms.
    due_before_ms: int = DUE_MS_MAX


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a waiting message is, in the order of due times."""

    due_ms: int
    #: Its holding queue: 0 is the timer queue, 1 and up are the levels.
    holder: int
    #: Offset in that queue.
    offset: int


def count_waiting(topic: str) -> int:
    """How many messages wait for the topic."""
    return sum(len(offsets) for _, offsets, _ in _matches(Window(topic=topic)))


def waiting_ids(topic: str, limit: int = 1000) -> list[str]:
    """Ids of some messages that wait for the topic."""
    places, _ = waiting_places(Window(topic=topic), after=None, limit=limit)
    return [record_id for place in places if (record_id := message_id(place)) is not None]


def waiting_places(window: Window, *, after: Place | None, limit: int) -> tuple[list[Place], int]:
    """The first places after one, in due order, and how many there are in the whole window."""
    count = 0
    best: list[Place] = []
    for holder, offsets, due_ms in _matches(window):
        count += len(offsets)
        if after is not None:
            later = _is_after(after, holder, offsets, due_ms)
            offsets, due_ms = offsets[later], due_ms[later]  # noqa: PLW2901 (narrowed, not reused)
        if len(offsets) > limit:
            nearest = np.lexsort((offsets, due_ms))[:limit]
            offsets, due_ms = offsets[nearest], due_ms[nearest]  # noqa: PLW2901
        best += [
            Place(due, holder, offset)
            for due, offset in zip(due_ms.tolist(), offsets.tolist(), strict=True)
        ]
        best.sort()
        del best[limit:]
    return best, count


def message_id(place: Place) -> str | None:
    """The id of the message at a place; None if its record is damaged."""
    record = waiting_record(place)
    return None if record is None else record.unique_id


def waiting_record(place: Place) -> Record | None:
    """The holding record at a place; None if it is damaged or gone."""
    store = wires.wiring().get_store()
    topic, queue_id = holding_queue(place.holder)
    units = store.read_units(topic, queue_id, place.offset, 1)
    if not len(units):
        return None
    with contextlib.suppress(StoreError):
        return store.read_record(int(units["log_offset"][0]))
    return None


def holding_queue(holder: int) -> tuple[str, int]:
    """Topic and queue of a holder's number."""
    return (TIMER_TOPIC, 0) if holder == 0 else (SCHEDULE_TOPIC, holder - 1)


def _holders(store: Store, kind: str | None) -> list[int]:
    timer = [] if kind == "level" else [0]
    levels = [] if kind == "timed" else [queue + 1 for queue in store.queue_ids(SCHEDULE_TOPIC)]
    return timer + sorted(levels)


def _matches(window: Window) -> Iterator[tuple[int, Int64s, Int64s]]:
    """Holder, offsets and due times of what waits in the window, a bounded stretch at a time."""
    store = wires.wiring().get_store()
    number = None if window.topic is None else store.topic_number(window.topic)
    if window.topic is not None and number is None:
        return
    for holder in _holders(store, window.kind):
        topic, queue_id = holding_queue(holder)
        start = store.first_unsettled(topic, queue_id)
        end = store.queue_bounds(topic, queue_id).max_offset
        while start < end:
            stop = min(end, start + SCAN_UNITS)
            found = store.schedule(topic, queue_id, start, stop)
            fits = found.settled == 0
            fits &= found.due_ms >= window.due_from_ms
            fits &= found.due_ms < window.due_before_ms
            if number is not None:
                fits &= found.topic_number == number
            at = np.flatnonzero(fits)
            yield holder, at + found.start, found.due_ms[at]
            start = stop


def _is_after(after: Place, holder: int, offsets: Int64s, due_ms: Int64s) -> npt.NDArray[np.bool_]:
    same_due = due_ms == after.due_ms
    if holder == after.holder:
        beyond = offsets > after.offset
    else:
        beyond = np.full(len(offsets), holder > after.holder)
    later: npt.NDArray[np.bool_] = (due_ms > after.due_ms) | (same_due & beyond)
    return later
