"""Chaining: the links between units of one slot, for a whole batch at once.

A slot's chain runs from its newest unit to its oldest through `previous`. A batch is sorted stably
by slot; inside each group the units point at one another, and the oldest of a group points at what
was the slot's newest unit before.

Example: slots [7, 8, 7] at positions [0, 52, 104], slot 7's newest unit so far at 40, slot 8 empty:
previous is [40, -1, 0], and the slots' newest units become 104 and 52.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues.store.grouping import stable_order
from queues.store.timerunits import Longs

Slots = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Chained:
    """A batch's links and what becomes of its slots."""

    #: For each unit, in the order given: the position of the next older unit of its slot, or -1.
    previous: Longs
    #: The slots touched, ms, ascending.
    slots_ms: Longs
    #: Position of each slot's oldest unit of the batch.
    first: Longs
    #: Position of each slot's newest unit.
    last: Longs
    #: Units that the batch adds to each slot.
    count: Longs
    #: The slots as they were.
    before: Slots


def chain(slots_ms: Longs, positions: Longs, read_slots: Callable[[Longs], Slots]) -> Chained:
    """Link a non-empty batch; `read_slots` gives each slot as it is, `last` -1 for an empty one."""
    order = stable_order(slots_ms)
    sorted_slots, sorted_positions = slots_ms[order], positions[order]
    begins = np.empty(len(order), dtype=np.bool_)
    begins[0] = True
    np.not_equal(sorted_slots[1:], sorted_slots[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(order))
    linked = np.empty_like(sorted_positions)
    linked[1:] = sorted_positions[:-1]
    before = read_slots(sorted_slots[starts])
    linked[starts] = before["last"]
    previous = np.empty_like(linked)
    previous[order] = linked
    return Chained(
        previous=previous,
        slots_ms=sorted_slots[starts],
        first=sorted_positions[starts],
        last=sorted_positions[ends - 1],
        count=ends - starts,
        before=before,
    )
