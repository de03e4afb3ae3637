"""Dequeue, the third stage: entries out of the timeline, ahead of their time, in bounded pieces.

Reading goes on behind the last key that was read, never before it, so nothing that was removed or
handed over is passed again.
"""

import numpy as np

from queues.store.timerunits import Longs, slots_of
from scheduler.engine.books import Run
from scheduler.engine.keys import keys_of
from scheduler.engine.limits import LEAD_MS, WAITING_KEYS_MAX
from scheduler.rocksdb.entries import TIMES_END, VALUE, VALUE_BYTES, Entry, time_key, times_of
from scheduler.rocksdb.state import TimelineState
from scheduler.rocksdb.timeline import Timeline

_NEVER_MS = 1 << 62


def dequeue(state: TimelineState, timeline: Timeline, now_ms: int, count_max: int) -> bool:
    """Read up to `count_max` entries of slots that begin soon; whether more can be done."""
    if state.waiting_keys >= WAITING_KEYS_MAX:
        return False
    horizon_ms = state.slot_of(now_ms + LEAD_MS) + state.precision_ms
    if first_ms(state, timeline) > horizon_ms:
        state.read_to_ms = max(state.read_to_ms, horizon_ms)
        state.next_key = max(state.next_key, time_key(horizon_ms + 1))
        state.read_ms = max(state.read_ms, horizon_ms)
        return False
    entries = timeline.read(state.next_key, time_key(horizon_ms + 1), count_max)
    if entries:
        _take(state, entries)
    state.next_ms = None
    if len(entries) < count_max:
        state.read_to_ms = state.read_ms = horizon_ms
        state.next_key = time_key(horizon_ms + 1)
        return False
    state.next_key = entries[-1][0] + b"\0"
    state.read_to_ms = int.from_bytes(entries[-1][0][:8], "big")
    state.read_ms = max(state.read_ms, state.slot_of(state.read_to_ms))
    return True


def first_ms(state: TimelineState, timeline: Timeline) -> int:
    """The time of the first entry that was not read; a far one if there is none."""
    if state.next_ms is None:
        found = timeline.read(state.next_key, TIMES_END, 1)
        state.next_ms = int.from_bytes(found[0][0][:8], "big") if found else _NEVER_MS
    return state.next_ms


def next_read_ms(state: TimelineState, timeline: Timeline) -> int | None:
    """When the next slot should be read."""
    at_ms = first_ms(state, timeline)
    return None if at_ms == _NEVER_MS else state.slot_of(at_ms) + 1 - LEAD_MS


def _take(state: TimelineState, entries: list[Entry]) -> None:
    """Turn entries into sorted keys, a run for each slot."""
    times_ms, offsets = _columns(entries)
    slots_ms = slots_of(times_ms, state.precision_ms)
    keys = keys_of(times_ms - slots_ms, offsets)
    starts = np.flatnonzero(np.diff(slots_ms, prepend=-1))
    for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=True):
        state.runs.append(Run(int(slots_ms[begin]), np.sort(keys[begin:end])))
    state.waiting_keys += len(keys)
    state.outstanding.add(slots_ms)


def _columns(entries: list[Entry]) -> tuple[Longs, Longs]:
    """Times and queue offsets; a value of several messages gives each."""
    times_ms = times_of([key for key, _ in entries])
    values = [value for _, value in entries]
    parts = np.array([len(value) // VALUE_BYTES for value in values])
    joined = np.frombuffer(b"".join(values), VALUE)["queue_offset"].astype(np.int64)
    return np.repeat(times_ms, parts), joined
