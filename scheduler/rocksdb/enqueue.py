"""Enqueue, the second stage: messages into the timeline, a batch at a time.

A first send's key is its own, for its id is. What continues an earlier record (a move, a renewal, a
restore) takes that one's entry away; where two live messages have one key, both values stay.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import Longs, slots_of
from scheduler.engine.limits import GATHER_GAP
from scheduler.engine.scan import QUEUE_ID, Waiting
from scheduler.rocksdb.entries import (
    VALUE,
    VALUE_BYTES,
    Floor,
    keys_for,
    values_of,
)
from scheduler.rocksdb.state import TimelineState
from scheduler.rocksdb.timeline import Timeline

if TYPE_CHECKING:
    from queues.store.leading import Leading
    from queues.store.store import Store

_FIRST_SEND = ord("N")


def enqueue(state: TimelineState, store: "Store", timeline: Timeline, waiting: Waiting) -> None:
    """Put messages into the timeline and list those whose time was read already."""
    own = slots_of(waiting.due_ms, state.precision_ms)
    times_ms = np.where(own < state.settled_ms, state.settled_ms + 1, waiting.due_ms)
    leading = store.read_leading(waiting.log_offsets)
    put(store, timeline, waiting, times_ms, leading, floor=Floor(state.lower_floor()))
    passed = times_ms <= state.read_to_ms
    if passed.any():
        slots_ms = slots_of(times_ms, state.precision_ms)
        state.list_arrivals(waiting.where(passed), slots_ms[passed])
    if not passed.all() and state.next_ms is not None:
        state.next_ms = min(state.next_ms, int(times_ms[~passed].min()))


def put(
    store: "Store", timeline: Timeline, waiting: Waiting, times_ms: Longs, leading: "Leading", *,
    floor: Floor | None,
) -> None:  # fmt: skip
    """Write the entries of messages, all or (with an error) none."""
    topics = topics_of(store, waiting.queue_offsets)
    keys = keys_for(times_ms, topics, leading.ids)
    values = values_of(waiting.log_offsets, waiting.queue_offsets)
    removed: list[bytes] = []
    later = np.flatnonzero(leading.letters != _FIRST_SEND)
    if len(later):
        _join(store, timeline, keys, values, later.tolist())
        removed = _replaced(store, timeline, topics, leading, later)
    kept = set(keys) if removed else set()
    removed = [key for key in removed if key not in kept]
    timeline.write(zip(keys, values, strict=True), removed, floor=floor)


def topics_of(store: "Store", queue_offsets: Longs) -> list[str]:
    """The topics that messages of the timer topic, in ascending order, are for."""
    parts = []
    for begin, end in _stretches(queue_offsets):
        first, last = int(queue_offsets[begin]), int(queue_offsets[end - 1])
        found = store.schedule(TIMER_TOPIC, QUEUE_ID, first, last + 1)
        parts.append(found.topic_number[queue_offsets[begin:end] - found.start])
    numbers = np.concatenate(parts)
    names = {number: store.topic_name(number) for number in np.unique(numbers).tolist()}
    return [names[number] for number in numbers.tolist()]


def _stretches(ascending: Longs) -> list[tuple[int, int]]:
    """Where offsets lie close enough to be read together."""
    cuts = (np.flatnonzero(np.diff(ascending) > GATHER_GAP) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(ascending)], strict=True))


def _join(
    store: "Store", timeline: Timeline, keys: list[bytes], values: list[bytes], later: list[int]
) -> None:
    """Add to these values the others of their keys that still wait."""
    chosen = [keys[number] for number in later]
    present = dict(zip(chosen, timeline.get(chosen), strict=True))
    for number in later:
        key = keys[number]
        others = waiting_values(store, present.get(key) or b"", but=values[number])
        values[number] = present[key] = values[number] + others


def waiting_values(store: "Store", value: bytes, *, but: bytes) -> bytes:
    """The parts of a value that lead to messages which wait, without one."""
    parts = [value[at : at + VALUE_BYTES] for at in range(0, len(value), VALUE_BYTES)]
    offsets = np.frombuffer(value, VALUE)["queue_offset"].astype(np.int64)
    if not len(offsets):
        return b""
    settled, _ = store.schedule_at(TIMER_TOPIC, QUEUE_ID, offsets)
    return b"".join(
        part for part, word in zip(parts, settled.tolist(), strict=True) if not word and part != but
    )


def _replaced(
    store: "Store", timeline: Timeline, topics: list[str], leading: "Leading", later: Longs
) -> list[bytes]:
    """The entries of the records that these continue."""
    before = leading.from_offsets[later]
    old = store.read_leading(before)
    there = np.flatnonzero(old.whole)
    if not len(there):
        return []
    names = [topics[number] for number in later[there].tolist()]
    keys = keys_for(old.due_ms[there], names, old.ids[there])
    return matching(timeline, keys, before[there])


def matching(timeline: Timeline, keys: list[bytes], log_offsets: Longs) -> list[bytes]:
    """Those of the keys whose entry leads to nothing but the record at its log offset."""
    found = zip(keys, timeline.get(keys), log_offsets.tolist(), strict=True)
    return [
        key
        for key, value, log_offset in found
        if value is not None
        and len(value) == VALUE_BYTES
        and int.from_bytes(value[:8], "big") == log_offset
    ]
