"""Placement: in which slot of the wheel a message waits.

| Its own slot | It lies in | Marked |
|---|---|---|
| before `settled_ms` (late) | slot `settled_ms` | |
| in [`settled_ms`, `read_ms` + window) | its own slot | |
| farther | the last slot of the window | ROLL, and is placed again when that slot is read |

`read_ms` is the slot being read, `settled_ms` the oldest slot that holds anything unsettled.

Invariant: a placed slot lies in [`settled_ms`, `read_ms` + window), and ``read_ms - settled_ms``
never exceeds the window; the file has two windows, so no slot is reused before it was read.

Example with P = 1000 and a window of 10 slots, read and settled at 5000: due 3500 goes to 5000, due
7250 to 7000, due 14,500 to 14,000, due 15,001 to 14,000 with ROLL.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import Longs, slots_of
from scheduler.engine.keys import ROLL_OFFSET_MS
from scheduler.wheel.geometry import WheelGeometry


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each of a batch of messages waits."""

    #: The slot, ms.
    slots_ms: Longs
    #: Milliseconds within it: 0 when late, `ROLL_OFFSET_MS` when it must be placed again.
    offsets_in_slot_ms: Longs
    #: Which must be placed again.
    rolled: npt.NDArray[np.bool_]


def place(due_ms: Longs, *, settled_ms: int, read_ms: int, geometry: WheelGeometry) -> Placement:
    """Where messages due at `due_ms` wait."""
    own = slots_of(due_ms, geometry.precision_ms)
    last = read_ms + geometry.window_ms - geometry.precision_ms
    rolled = own > last
    slots = np.clip(own, settled_ms, last)
    inside = np.where(own < settled_ms, 0, due_ms - slots)
    return Placement(slots, np.where(rolled, ROLL_OFFSET_MS, inside), rolled)
