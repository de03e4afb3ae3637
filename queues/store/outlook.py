"""The outlook: what waits and when it is due, by vectorised scans of the schedule tables.

A table is looked at a block (one file, 65,536 units, 1 MiB) at a time, in place: nothing is copied
but what fits. Of a block whose every unit is there the due times never change, so its earliest and
latest are remembered; and a settled word never becomes 0 again, so a block in which nothing waits
is never looked at again. Both are derived, belong to this process, and need no keeping in step.

Example: with 10,000,000 messages waiting, 153 blocks are scanned for a forecast; those that were
handed over since the store was made cost nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.limits import DUE_MS_MAX, SCHEDULE_UNITS, TOPICS_MAX
from queues.store.messages import QueueBounds
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.queuetable import Queue, QueueTable
from queues.store.schedule import DUE_BITS, LOST, NUMBER_MASK, Int64s, ScheduleTable

#: So many units more than wanted are kept before they are narrowed again.
_SHRUNK_ABOVE = 1000
#: Later than any unit can be due.
NEVER_MS = DUE_MS_MAX + 1
#: The zone of a block whose due times are not known.
_ANY = (-1, NEVER_MS)
Bools = npt.NDArray[np.bool_]
#: So many topics are compared one by one; of more, each unit's is looked up in a mask.
_COMPARED_MAX = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which units of the schedule tables are meant."""

    #: Due at or after, and before, ms.
    due_from_ms: int = 0
    due_before_ms: int = DUE_MS_MAX + 1
    #: Numbers of the real topics: a few, or a mask of all there can be; None: any.
    topics: Bools | tuple[int, ...] | None = None
    #: Those whose settled word is not 0, instead of those that wait.
    settled: bool = False
    #: Of the timer queue only messages of a level (they were restored or renewed), or only others.
    of_level: bool | None = None


class Found(NamedTuple):
    """Units of one block that are wanted."""

    offsets: Int64s
    due_ms: Int64s
    #: Settled words; all 0 for what waits.
    words: Int64s


@dataclass(frozen=True, slots=True)
class Dues:
    """When the units of one block that are wanted are due."""

    #: Of all units; `NEVER_MS` for those that are not wanted.
    due_ms: Int64s
    #: How many are wanted.
    count: int
    #: None is due before, and none after; -1 and `NEVER_MS` where that is not known.
    low_ms: int
    high_ms: int


class Places(NamedTuple):
    """Units of several queues, in the order of due time, holder and offset."""

    due_ms: Int64s
    #: The number that stands for the queue.
    holders: Int64s
    offsets: Int64s
    words: Int64s


class _Nearest:
    """Keeps the first units of many, in due order, without sorting the many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[Places] = []
        self._held = 0
        #: What is due later is not among the first.
        self.worst_ms: int | None = None

    def take(self, holder: int, due_ms: Int64s, offsets: Int64s, words: Int64s) -> None:
        """Take more units of one queue."""
        self._parts.append(Places(due_ms, np.full(len(due_ms), holder), offsets, words))
        self._held += len(due_ms)
        if self._held > 2 * self._limit + _SHRUNK_ABOVE:
            self._shrink()

    def _shrink(self) -> None:
        joined = _joined(self._parts)
        worst = int(np.partition(joined.due_ms, self._limit - 1)[self._limit - 1])
        at = np.flatnonzero(joined.due_ms <= worst)
        self._parts = [Places(*(column[at] for column in joined))]
        self._held, self.worst_ms = len(at), worst

    def places(self) -> Places:
        """The first ones, in order."""
        joined = _joined(self._parts)
        order = np.lexsort((joined.offsets, joined.holders, joined.due_ms))[: self._limit]
        return Places(*(column[order] for column in joined))


def _joined(parts: Sequence[Places]) -> Places:
    if not parts:
        nothing = np.zeros(0, np.int64)
        return Places(nothing, nothing, nothing, nothing)
    return Places(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _are_after(after: tuple[int, int, int], holder: int, first: int, due_ms: Int64s) -> Bools:
    """Which units of a block, whose first one is `first`, come behind a place."""
    after_ms, after_holder, after_offset = after
    later: Bools = due_ms > after_ms
    if holder > after_holder:
        return due_ms >= after_ms
    if holder == after_holder:
        later |= (due_ms == after_ms) & (np.arange(len(due_ms)) > after_offset - first)
    return later


class Outlook:
    """Scans the schedule tables of one store."""

    def __init__(
        self, queues: QueueTable, table_of: Callable[[Queue], ScheduleTable],
        bounds_of: Callable[[Queue], QueueBounds],
    ) -> None:  # fmt: skip
        self._queues, self._table_of, self._bounds_of = queues, table_of, bounds_of
        #: Queue and block to the earliest and latest due time of a whole block.
        self._zones: dict[tuple[int, int], tuple[int, int]] = {}
        #: Whole blocks in which nothing waits.
        self._over: set[tuple[int, int]] = set()
        #: Whole blocks: how many of their units were settled, and then waited by topic's number.
        self._tallies: dict[tuple[int, int], tuple[int, Int64s, Int64s]] = {}

    def holding_queues(self) -> list[Queue]:
        """The timer queue and the levels' queues, in this order."""
        self._queues.refresh()
        timer = [queue for queue in self._queues.queues if queue.topic == TIMER_TOPIC]
        levels = [queue for queue in self._queues.queues if queue.topic == SCHEDULE_TOPIC]
        return timer + sorted(levels, key=lambda queue: queue.queue_id)

    def topic_number(self, topic: str) -> int | None:
        """The number that stands for a topic in schedule tables; None if nothing was sent to it."""
        queue_ids = self._queues.queue_ids(topic)
        queue = self._queues.find(topic, queue_ids[0]) if queue_ids else None
        return None if queue is None else queue.topic_number

    def topic_numbers(self, allow: Callable[[str], bool]) -> Bools | tuple[int, ...]:
        """The numbers of the topics that `allow` takes, for `Wanted.topics`."""
        self._queues.refresh()
        numbers = {queue.topic: queue.topic_number for queue in self._queues.queues}
        taken = tuple(number for topic, number in numbers.items() if allow(topic))
        if len(taken) <= _COMPARED_MAX:
            return taken
        mask = np.zeros(TOPICS_MAX, np.bool_)
        mask[list(taken)] = True
        return mask

    def queue(self, topic: str, queue_id: int) -> Queue:
        """A queue that there is."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            raise KeyError(topic, queue_id)
        return queue

    def end_of(self, queue: Queue) -> int:
        """Where a holding queue ends for readers."""
        return self._bounds_of(queue).max_offset

    def units(
        self, queue: Queue, wanted: Wanted, *, start: int = 0, stop: int | None = None
    ) -> Iterator[Found]:
        """The wanted units of [start, stop), by blocks."""
        for first, rows, due_ms, keep in self._blocks(queue, wanted, start, stop):
            at = np.arange(len(rows)) if keep is None else np.flatnonzero(keep)
            words = rows[at, 0] if wanted.settled else np.zeros(len(at), np.int64)
            due = due_ms.copy() if keep is None else due_ms.compress(keep)
            yield Found(at + first, due, words)

    def dues(self, queue: Queue, wanted: Wanted) -> Iterator[Dues]:
        """The due times of the wanted units, by blocks; none without one.

        Each is written over by the next.
        """
        for first, rows, due_ms, keep in self._blocks(queue, wanted, 0, None):
            count = len(rows)
            if keep is not None:
                count = int(np.count_nonzero(keep))
                np.putmask(due_ms, ~keep, NEVER_MS)
            if count:
                place = queue.index, first // SCHEDULE_UNITS
                yield Dues(due_ms, count, *self._zones.get(place, _ANY))

    def waiting_by_topic(self) -> dict[int, int]:
        """How many units wait, by the number of their real topic.

        As many settled units as before are the same units, for none ever waits again: a whole
        block is counted anew only where that number changed.
        """
        total = np.zeros(TOPICS_MAX, np.int64)
        for queue in self.holding_queues():
            for first, rows, *_ in self._blocks(queue, Wanted(), 0, None):
                place = queue.index, first // SCHEDULE_UNITS
                whole = len(rows) == SCHEDULE_UNITS
                settled = int(np.count_nonzero(rows[:, 0])) if whole else -1
                known = self._tallies.get(place) if whole else None
                if known is None or known[0] != settled:
                    known = (settled, *_tally(rows))
                    if whole:
                        self._tallies[place] = known
                total[known[1]] += known[2]
        at = np.flatnonzero(total)
        return dict(zip(at.tolist(), total[at].tolist(), strict=True))

    def _blocks(
        self, queue: Queue, wanted: Wanted, start: int, stop: int | None
    ) -> Iterator[tuple[int, Int64s, Int64s, Bools | None]]:
        """Blocks with something wanted: first unit, entries, due times, and which (None: all).

        The due times are written over by the next block's: fresh memory costs more than they do.
        """
        scratch = np.empty((2, SCHEDULE_UNITS), np.int64)
        bounds, table = self._bounds_of(queue), self._table_of(queue)
        mine = wanted if queue.topic == TIMER_TOPIC else replace(wanted, of_level=None)
        first = max(start, bounds.min_offset)
        end = bounds.max_offset if stop is None else min(stop, bounds.max_offset)
        while first < end:
            number = first // SCHEDULE_UNITS
            base = number * SCHEDULE_UNITS
            last = min(end, base + SCHEDULE_UNITS)
            place = queue.index, number
            block = None if self._is_apart(place, wanted) else table.block(number)
            if block is not None:
                rows = block[first - base : last - base]
                found = self._look(rows, place, mine, scratch[:, : len(rows)])
                if found is not None:
                    yield first, rows, *found
            first = last

    def _is_apart(self, place: tuple[int, int], wanted: Wanted) -> bool:
        """Whether nothing in the block can be wanted."""
        if not wanted.settled and place in self._over:
            return True
        low, high = self._zones.get(place, _ANY)
        return high < wanted.due_from_ms or low >= wanted.due_before_ms

    def _look(
        self, rows: Int64s, place: tuple[int, int], wanted: Wanted, scratch: Int64s
    ) -> tuple[Int64s, Bools | None] | None:
        """Due times of a block's units and which are wanted (None: all); None where none is.

        They are written into the first row of `scratch`; the second is used on the way.
        """
        due_ms, numbers = scratch
        words, whole = rows[:, 0], len(rows) == SCHEDULE_UNITS
        settled = int(np.count_nonzero(words))
        if whole and settled == len(rows):
            self._over.add(place)
        if settled == (0 if wanted.settled else len(rows)):
            return None
        seconds = rows[:, 1]
        if wanted.topics is not None:
            # Read more than once, every other word costs more than this copy of them.
            np.copyto(numbers, seconds)
            seconds = numbers
        np.bitwise_and(seconds, DUE_MS_MAX, out=due_ms)
        if whole and place not in self._zones:
            self._zones[place] = int(due_ms.min()), int(due_ms.max())
            if self._is_apart(place, wanted):
                return None
        masks: list[Bools] = []
        if wanted.settled:
            masks.append(words > LOST)
        elif settled:
            masks.append(words == 0)
        low, high = self._zones.get(place, _ANY)
        if low < wanted.due_from_ms:
            masks.append(due_ms >= wanted.due_from_ms)
        if high >= wanted.due_before_ms:
            masks.append(due_ms < wanted.due_before_ms)
        if wanted.of_level is not None:
            masks.append((seconds < 0) == wanted.of_level)
        if wanted.topics is not None:
            masks.append(_are_of(numbers, wanted.topics))
        return due_ms, _all_of(masks)

    # -- answers --------------------------------------------------------------------------------

    def count(self, wanted: Wanted) -> int:
        """How many units are wanted."""
        total = 0
        for queue in self.holding_queues():
            for _, rows, _, keep in self._blocks(queue, wanted, 0, None):
                total += len(rows) if keep is None else int(np.count_nonzero(keep))
        return total

    def nearest(
        self, queues: Sequence[tuple[int, Queue]], wanted: Wanted, *,
        after: tuple[int, int, int] | None, limit: int,
    ) -> tuple[Places, int]:  # fmt: skip
        """The first wanted units behind a place, in due order, and how many are wanted in all.

        `queues` come with the number that stands for each in a place.
        """
        nearest, count = _Nearest(limit), 0
        for holder, queue in queues:
            for first, rows, due_ms, keep in self._blocks(queue, wanted, 0, None):
                count += len(rows) if keep is None else int(np.count_nonzero(keep))
                masks = [] if keep is None else [keep]
                if after is not None:
                    masks.append(_are_after(after, holder, first, due_ms))
                if nearest.worst_ms is not None:
                    masks.append(due_ms <= nearest.worst_ms)
                close = _all_of(masks)
                at = np.arange(len(rows)) if close is None else np.flatnonzero(close)
                if len(at):
                    nearest.take(holder, due_ms[at], at + first, rows[at, 0])
        return nearest.places(), count

    def buckets(self, wanted: Wanted, step_ms: int) -> Int64s:
        """How many units are due in each step of the window, beginning at its start."""
        start_ms, end_ms = wanted.due_from_ms, wanted.due_before_ms
        counts = np.zeros(max(0, -(-(end_ms - start_ms) // step_ms)), np.int64)
        for queue in self.holding_queues():
            for _, _, due_ms, keep in self._blocks(queue, wanted, 0, None):
                # Divided before they are narrowed: that is quicker in one sweep.
                numbers = (due_ms - start_ms) // step_ms
                add_to_buckets(counts, numbers if keep is None else numbers.compress(keep))
        return counts


def _tally(rows: Int64s) -> tuple[Int64s, Int64s]:
    """Numbers of the topics for which something waits, and how many each."""
    counts = np.bincount(rows[rows[:, 0] == 0, 1] >> DUE_BITS & NUMBER_MASK)
    at = np.flatnonzero(counts)
    return at, counts[at]


def _are_of(seconds: Int64s, topics: Bools | tuple[int, ...]) -> Bools:
    """Which words are of one of some topics; they are written over."""
    if not isinstance(topics, tuple):
        # Bit 63 makes a number negative, and counted from the mask's end it is the same.
        return topics[np.right_shift(seconds, DUE_BITS, out=seconds)]
    np.bitwise_and(seconds, NUMBER_MASK << DUE_BITS, out=seconds)
    keep = np.zeros(len(seconds), np.bool_)
    for topic in topics:
        keep |= seconds == topic << DUE_BITS
    return keep


def _all_of(masks: list[Bools]) -> Bools | None:
    if not masks:
        return None
    keep = masks[0]
    for mask in masks[1:]:
        keep = keep & mask
    return keep


def add_to_buckets(counts: Int64s, numbers: Int64s) -> None:
    """Add one to the bucket of each number; all are buckets."""
    if len(numbers):
        low = int(numbers.min())
        found = np.bincount(numbers - low)
        counts[low : low + len(found)] += found
