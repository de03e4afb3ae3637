"""Enqueue, the second stage: messages into the TimerLog and the wheel, a batch at a time.

Units are written to the TimerLog first, in one write a file, then the slots are set. A message
whose slot was read already, or is being read past it, is listed at once as well.
"""

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import (
    MAGIC_DEFAULT,
    MAGIC_ROLL,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    Longs,
    pack_reserved,
)
from scheduler.engine.keys import keys_of
from scheduler.engine.limits import FAR_AHEAD_MS
from scheduler.engine.scan import Waiting
from scheduler.wheel.chain import chain
from scheduler.wheel.placement import Placement, place
from scheduler.wheel.state import WheelState


def enqueue(state: WheelState, waiting: Waiting) -> None:
    """Place, write, link and, where their slot was read already, list messages."""
    if not len(waiting):
        return
    placement = place(
        waiting.due_ms,
        settled_ms=state.settled_ms,
        read_ms=state.read_ms,
        geometry=state.geometry,
    )
    write(state, waiting, placement)
    _list_arrivals(state, waiting, placement)


def write(state: WheelState, waiting: Waiting, placement: Placement) -> None:
    """Append the units, then let the slots lead to them."""
    positions = state.log.next_positions(len(waiting))
    chained = chain(placement.slots_ms, positions, state.wheel.slots)
    units = build_units(
        waiting, placement, chained.previous, written_ms=_written_ms(state, placement)
    )
    state.log.append(units)
    state.wheel.link(chained)


def _written_ms(state: WheelState, placement: Placement) -> Longs:
    """The write time, held within a window of the slot so that 32 bits can hold the delay."""
    window_ms = state.geometry.window_ms
    slots_ms = placement.slots_ms
    now_ms = np.full(len(slots_ms), state.write_ms, dtype=np.int64)
    return np.clip(now_ms, slots_ms - window_ms, slots_ms + window_ms)


def build_units(
    waiting: Waiting, placement: Placement, previous: Longs, *, written_ms: Longs
) -> npt.NDArray[np.void]:
    """The units' bytes."""
    units = np.empty(len(waiting), dtype=TIMER_UNIT)
    units["size"] = TIMER_UNIT_BYTES
    units["previous"] = previous
    units["magic"] = np.where(placement.rolled, MAGIC_DEFAULT | MAGIC_ROLL, MAGIC_DEFAULT)
    units["written_ms"] = written_ms
    units["delay_ms"] = placement.slots_ms - written_ms
    units["log_offset"] = waiting.log_offsets
    units["record_size"] = waiting.sizes
    units["topic_hash"] = 0
    units["reserved"] = pack_reserved(placement.offsets_in_slot_ms, waiting.queue_offsets)
    return units


def _list_arrivals(state: WheelState, waiting: Waiting, placement: Placement) -> None:
    slots_ms = placement.slots_ms
    passed = slots_ms < state.read_ms
    if state.reading is not None:
        current = np.flatnonzero(slots_ms == state.read_ms)
        keys = keys_of(placement.offsets_in_slot_ms[current], waiting.queue_offsets[current])
        passed[current[state.reading.join(keys)]] = True
        state.wheel.mark_unread(slots_ms[slots_ms > state.read_ms])
    else:
        if state.read_ms > state.write_ms + FAR_AHEAD_MS + 2 * state.geometry.precision_ms:
            # The clock was set back by more than the wheel can follow: the slot is read too late.
            passed |= placement.offsets_in_slot_ms == 0
        state.wheel.mark_unread(slots_ms[~passed])
    if passed.any():
        state.list_arrivals(waiting.where(passed), slots_ms[passed])
