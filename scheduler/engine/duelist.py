"""The due list: loaded messages in the order in which they are handed over.

Sorted runs of columns, merged as they grow, so that adding costs little whether one message comes
or sixty thousand: a run swallows the run before it until that one is more than twice as long, or
lies before it in time.

Invariant: `size` is the number of items in all runs, each run is sorted by (at_ms, queue_offset).
"""

from collections.abc import Callable
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import Longs

_ITEM_DTYPE = np.dtype(
    [("at_ms", "i8"), ("queue_offset", "i8"), ("slot_ms", "i8"), ("tries", "u1")]
)

#: An item as bytes.
_BYTES = np.dtype((np.void, _ITEM_DTYPE.itemsize))

#: Runs that follow each other in time are kept apart up to this many.
_RUNS_MAX = 24

Items = npt.NDArray[np.void]
#: What is taken when nothing is due.
_NOTHING: Items = np.empty(0, dtype=_ITEM_DTYPE)


def items_of(at_ms: Longs, queue_offsets: Longs, slots_ms: Longs | int, tries: int = 0) -> Items:
    """Items: when to hand over, which message, and the slot that waits for it."""
    items = np.empty(len(queue_offsets), dtype=_ITEM_DTYPE)
    items["at_ms"] = at_ms
    items["queue_offset"] = queue_offsets
    items["slot_ms"] = slots_ms
    items["tries"] = tries
    return items


class _Run:
    """A sorted run, given out from the front."""

    __slots__ = ("at_ms", "begin", "head_ms", "items")

    def __init__(self, items: Items) -> None:
        self.items = items
        self.at_ms: Longs = items["at_ms"]
        self.begin = 0
        #: When its first item is to be handed over; of a run that is used up, any time.
        self.head_ms = int(self.at_ms[0])

    def __len__(self) -> int:
        return len(self.items) - self.begin

    def pass_by(self, count: int) -> None:
        """Go on behind its first items."""
        self.begin += count
        if self.begin < len(self.items):
            self.head_ms = int(self.at_ms[self.begin])

    def until(self, until_ms: int, count_max: int) -> int:
        """How many of its first items are to be handed over until a time, at most `count_max`."""
        window = self.at_ms[self.begin : self.begin + count_max]
        return int(window.searchsorted(until_ms, side="right"))

    def rest(self) -> Items:
        return self.items[self.begin :]


_head_ms = attrgetter("head_ms")


class DueList:
    """Messages ahead of their hand-over."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.size = 0

    def add(self, items: Items) -> None:
        """Add items in any order."""
        if not len(items):
            return
        self.size += len(items)
        new = _sorted(items)
        while self._runs and self._swallows(new):
            new = _sorted(_joined([self._runs.pop().rest(), new]))
        self._runs.append(_Run(new))

    def _swallows(self, new: Items) -> bool:
        """Whether the last run is merged with a new one: not when it ends before that begins."""
        last = self._runs[-1]
        follows = bool(last.at_ms[-1] <= new["at_ms"][0])
        return len(last) <= 2 * len(new) and not (follows and len(self._runs) < _RUNS_MAX)

    @property
    def next_at_ms(self) -> int | None:
        """When the first item is to be handed over."""
        return min(map(_head_ms, self._runs), default=None)

    def take(self, until_ms: int, count_max: int) -> Items:
        """Remove and give the first items that are to be handed over until `until_ms`, in order.

        Gives a few more than `count_max` only where the same item is listed twice.
        """
        begun = [run for run in self._runs if run.head_ms <= until_ms]
        if not begun:
            return _NOTHING
        if len(begun) == 1:
            taken = self._of_one(begun[0], until_ms, count_max)
        else:
            taken = self._of_many(begun, until_ms, count_max)
        self._runs = [run for run in self._runs if len(run)]
        self.size -= len(taken)
        return taken

    def _of_one(self, run: _Run, until_ms: int, count_max: int) -> Items:
        count = run.until(until_ms, count_max)
        taken = run.items[run.begin : run.begin + count]
        run.pass_by(count)
        return taken

    def _of_many(self, begun: list[_Run], until_ms: int, count_max: int) -> Items:
        chosen = _first_heads(begun, until_ms, count_max)
        merged = _sorted(_joined([head for _, head in chosen]))
        last = merged[min(count_max, len(merged)) - 1]
        for run, head in chosen:
            run.pass_by(_count_until(head, last))
        return merged[: _count_until(merged, last)]

    def find(self, chosen: Callable[[Items], npt.NDArray[np.bool_]]) -> Items:
        """A copy of the chosen items."""
        found = [run.rest()[chosen(run.rest())] for run in self._runs]
        return _joined(found)

    def remove(self, chosen: Callable[[Items], npt.NDArray[np.bool_]]) -> None:
        """Drop the chosen items."""
        kept = [run.rest()[~chosen(run.rest())] for run in self._runs]
        self._runs = [_Run(items) for items in kept if len(items)]
        self.size = sum(map(len, self._runs))


def _first_heads(begun: list[_Run], until_ms: int, count_max: int) -> list[tuple[_Run, Items]]:
    """The beginnings of runs that hold the first items; later runs are left alone."""
    chosen: list[tuple[_Run, Items]] = []
    count, last_ms = 0, 0
    for run in sorted(begun, key=_head_ms):
        if count >= count_max and run.head_ms > last_ms:
            break
        head = run.items[run.begin : run.begin + run.until(until_ms, count_max)]
        chosen.append((run, head))
        count, last_ms = count + len(head), max(last_ms, int(head["at_ms"][-1]))
    return chosen


def _joined(parts: list[Items]) -> Items:
    """One after another; as bytes, which takes a tenth of the time of field by field."""
    if not parts:
        return _NOTHING
    return np.concatenate([part.view(_BYTES) for part in parts]).view(_ITEM_DTYPE)


def _sorted(items: Items) -> Items:
    if len(items) == 1:
        return items
    at_ms, offsets = items["at_ms"], items["queue_offset"]
    rising = at_ms[1:] > at_ms[:-1]
    rising |= (at_ms[1:] == at_ms[:-1]) & (offsets[1:] >= offsets[:-1])
    if rising.all():
        return items
    return items.take(np.lexsort((offsets, at_ms)))


def _count_until(items: Items, last: np.void) -> int:
    """How many of the sorted items come no later than `last`."""
    begin, end = (
        int(np.searchsorted(items["at_ms"], last["at_ms"], side=side)) for side in ("left", "right")
    )
    equal = items["queue_offset"][begin:end]
    return begin + int(np.searchsorted(equal, last["queue_offset"], side="right"))
