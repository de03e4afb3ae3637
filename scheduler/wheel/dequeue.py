"""Dequeue, the third stage: slots out of the wheel, ahead of their time, within a memory bound."""

import numpy as np

from scheduler.engine.books import Run
from scheduler.engine.limits import WAITING_KEYS_MAX
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.state import WheelState

#: What opening a slot costs, in units looked at.
_SLOT_COST_UNITS = 1_000
_NEVER_MS = 1 << 62


def dequeue(state: WheelState, now_ms: int, units_max: int) -> bool:
    """Look at up to about `units_max` units of slots that begin soon; whether more can be done."""
    budget = units_max
    while budget > 0:
        if state.waiting_keys >= WAITING_KEYS_MAX:
            return False
        reading = state.reading or _begin(state, now_ms)
        if reading is None:
            return False
        budget -= _SLOT_COST_UNITS
        budget -= _read(state, reading, max(budget, 1))
    return True


def next_read_ms(state: WheelState) -> int | None:
    """When the next slot should be read; None when none can be before others are settled."""
    unread_ms = state.wheel.next_unread_ms
    if unread_ms is None or unread_ms >= _limit_ms(state):
        return None
    return unread_ms + 1 - state.geometry.lead_ms


def unread(state: WheelState, now_ms: int) -> tuple[int, int]:
    """Messages in slots that should have been read by now, and for how long, ms."""
    unread_ms = state.wheel.next_unread_ms
    horizon_ms = state.geometry.slot_of(now_ms + state.geometry.lead_ms)
    if unread_ms is None or unread_ms > horizon_ms:
        return 0, 0
    slots_ms = np.arange(unread_ms, horizon_ms + 1, state.geometry.precision_ms, dtype=np.int64)
    slots_ms = slots_ms[: state.geometry.slots_total]
    return int(state.wheel.slots(slots_ms)["count"].sum()), horizon_ms - unread_ms


def _limit_ms(state: WheelState) -> int:
    """The slot that cannot be read yet: a window ahead of the oldest unsettled one."""
    return state.settled_ms + state.geometry.window_ms if state.outstanding.total else _NEVER_MS


def _begin(state: WheelState, now_ms: int) -> SlotReading | None:
    """Begin with the next slot that has anything; the hands pass empty ones at once."""
    geometry, limit_ms = state.geometry, _limit_ms(state)
    horizon_ms = geometry.slot_of(now_ms + geometry.lead_ms)
    unread_ms = state.wheel.next_unread_ms
    found = unread_ms is not None and unread_ms <= horizon_ms and unread_ms < limit_ms
    stop_ms = min(horizon_ms + geometry.precision_ms, limit_ms)
    if unread_ms is not None:
        stop_ms = min(stop_ms, unread_ms)
    state.read_ms = max(state.read_ms, stop_ms)
    state.move_hand(now_ms)
    state.reading = SlotReading(state.read_ms, state.wheel, state.log) if found else None
    return state.reading


def _read(state: WheelState, reading: SlotReading, units_max: int) -> int:
    keys = reading.read(units_max)
    if keys is not None and len(keys):
        state.runs.append(Run(reading.slot_ms, keys))
        state.waiting_keys += len(keys)
        state.outstanding.add(np.full(len(keys), reading.slot_ms, dtype=np.int64))
    if reading.finished:
        state.wheel.mark_read(reading.slot_ms)
        state.read_ms = reading.slot_ms + state.geometry.precision_ms
        state.reading = None
    return units_max
