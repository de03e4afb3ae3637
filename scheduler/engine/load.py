"""Load, the fourth stage: keys into the due list, checked against the schedule table.

What was settled since is dropped; what must be placed again goes back into the engine; the rest is
listed with the due time that the schedule table promises.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import Longs, slots_of
from scheduler.engine.books import Books, Run
from scheduler.engine.duelist import items_of
from scheduler.engine.keys import ROLL_OFFSET_MS, offsets_in_slot, queue_offsets
from scheduler.engine.limits import LOADED_MAX
from scheduler.engine.scan import QUEUE_ID

if TYPE_CHECKING:
    from queues.store.store import Store

#: What is due this soon is loaded although the due list is full of later messages.
_SOON_MS = 100


def load(books: Books, store: "Store", now_ms: int, keys_max: int) -> int:
    """Load up to `keys_max` keys, the first slot's first; how many were taken."""
    loaded = 0
    while books.runs and loaded < keys_max and loadable(books, now_ms):
        run = books.runs[0]
        keys = run.keys[run.begin : run.begin + keys_max - loaded]
        _load_keys(books, store, run.slot_ms, keys, now_ms)
        run.begin += len(keys)
        loaded += len(keys)
        books.waiting_keys -= len(keys)
        if run.begin == len(run.keys):
            books.runs.popleft()
    return loaded


def loadable(books: Books, now_ms: int) -> bool:
    """Whether there is something to load and room for it."""
    if not books.runs:
        return False
    return books.due.size < LOADED_MAX or books.runs[0].next_due_ms <= now_ms + _SOON_MS


def _load_keys(books: Books, store: "Store", slot_ms: int, keys: Longs, now_ms: int) -> None:
    offsets = queue_offsets(keys)
    settled, due_ms = store.schedule_at(TIMER_TOPIC, QUEUE_ID, offsets)
    inside, later = offsets_in_slot(keys), slots_of(due_ms, books.precision_ms) > slot_ms
    # What was listed ahead of its turn, and kept in a slot before its own, is placed again as well.
    rolled = (inside == ROLL_OFFSET_MS) | (later & (inside == 0))
    again = rolled & (settled == 0) & (due_ms > now_ms)
    # A unit that leads to another record than it was written for (the log lost its end in a crash)
    # is dropped: that record has a unit of its own, in its own slot.
    foreign = ~rolled & later
    listed = (settled == 0) & ~again & ~foreign
    books.due.add(items_of(due_ms[listed], offsets[listed], slot_ms))
    if again.any():
        books.rolls.append(Run(slot_ms, keys[again]))
        books.waiting_keys += int(again.sum())
    gone = len(keys) - int(listed.sum()) - int(again.sum())
    books.outstanding.settle(np.full(gone, slot_ms, dtype=np.int64))
