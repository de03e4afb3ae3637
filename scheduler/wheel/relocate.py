"""Relocating: a failing message moves on in the wheel, so that it holds up neither hand nor memory.

The clock hand stays at the oldest slot with anything unsettled, and the hands must stay within a
window of each other. So a message that fails for a quarter of the window is written again, into the
slot being read; and when too many fail at once, the later ones are written into a slot some seconds
ahead.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.timerunits import Longs
from scheduler.wheel.duelist import Items
from scheduler.wheel.enqueue import write
from scheduler.wheel.limits import FAILING_MAX, SPILL_MS
from scheduler.wheel.placement import Placement
from scheduler.wheel.scan import messages
from scheduler.wheel.state import WheelState

if TYPE_CHECKING:
    from queues.store.store import Store


def relocate_stuck(state: WheelState, store: "Store") -> None:
    """Write what holds the hand a quarter of the window behind into the newest slot read."""
    if state.read_ms - state.settled_ms <= state.geometry.window_ms // 4:
        return
    slot_ms = state.read_ms - state.geometry.precision_ms
    stuck = state.due.find(lambda items: items["slot_ms"] < slot_ms)
    if not len(stuck):
        return
    offsets = _write_into(state, store, stuck, slot_ms)
    state.due.remove(lambda items: items["slot_ms"] < slot_ms)
    state.outstanding.settle(stuck["slot_ms"].astype(np.int64))
    kept = stuck[np.isin(stuck["queue_offset"], offsets)]
    kept["slot_ms"] = slot_ms
    state.due.add(kept)
    state.failing -= int(np.count_nonzero(stuck["tries"]) - np.count_nonzero(kept["tries"]))
    state.outstanding.add(kept["slot_ms"].astype(np.int64))


def spill_failing(state: WheelState, store: "Store", now_ms: int) -> None:
    """Put failing messages back into the wheel when they are too many for the memory."""
    if state.failing <= FAILING_MAX:
        return
    precision_ms = state.geometry.precision_ms
    slot_ms = max(state.geometry.slot_of(now_ms + SPILL_MS), state.read_ms + precision_ms)
    failing = state.due.find(lambda items: items["tries"] > 0)
    _write_into(state, store, failing, slot_ms)
    state.due.remove(lambda items: items["tries"] > 0)
    state.failing = 0
    state.outstanding.settle(failing["slot_ms"].astype(np.int64))
    state.wheel.mark_unread(np.array([slot_ms], dtype=np.int64))


def _write_into(state: WheelState, store: "Store", items: Items, slot_ms: int) -> Longs:
    """Append units for what still waits of these messages; their queue offsets."""
    waiting = messages(store, np.unique(items["queue_offset"].astype(np.int64)))
    if len(waiting):
        nothing = np.zeros(len(waiting), dtype=np.int64)
        write(state, waiting, Placement(nothing + slot_ms, nothing, nothing.astype(np.bool_)))
    return waiting.queue_offsets
