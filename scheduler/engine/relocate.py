"""Relocating: a failing message moves on, so that it holds up neither hand nor memory.

The clock hand stays at the oldest slot with anything unsettled, and a new holder begins to read
there. So a message that fails for long (`stuck_ms`) is written again, into the slot being read; and
when too many fail at once, the later ones are written into a slot some seconds ahead.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.timerunits import Longs, slot_of
from scheduler.engine.duelist import Items
from scheduler.engine.limits import FAILING_MAX, SPILL_MS
from scheduler.engine.protocol import TimerEngine
from scheduler.engine.scan import messages

if TYPE_CHECKING:
    from queues.store.store import Store


def relocate_stuck(engine: TimerEngine, store: "Store") -> None:
    """Write what holds the hand too far behind into the newest slot read."""
    books = engine.books
    if books.read_ms - books.settled_ms <= engine.stuck_ms:
        return
    slot_ms = books.read_ms - books.precision_ms
    stuck = books.due.find(lambda items: items["slot_ms"] < slot_ms)
    if not len(stuck):
        return
    offsets = _write_into(engine, store, stuck, slot_ms)
    books.due.remove(lambda items: items["slot_ms"] < slot_ms)
    books.outstanding.settle(stuck["slot_ms"].astype(np.int64))
    kept = stuck[np.isin(stuck["queue_offset"], offsets)]
    kept["slot_ms"] = slot_ms
    books.due.add(kept)
    books.failing -= int(np.count_nonzero(stuck["tries"]) - np.count_nonzero(kept["tries"]))
    books.outstanding.add(kept["slot_ms"].astype(np.int64))


def spill_failing(engine: TimerEngine, store: "Store", now_ms: int) -> None:
    """Put failing messages back into the engine when they are too many for the memory."""
    books = engine.books
    if books.failing <= FAILING_MAX:
        return
    precision_ms = books.precision_ms
    slot_ms = max(slot_of(now_ms + SPILL_MS, precision_ms), books.read_ms + precision_ms)
    failing = books.due.find(lambda items: items["tries"] > 0)
    _write_into(engine, store, failing, slot_ms)
    books.due.remove(lambda items: items["tries"] > 0)
    books.failing = 0
    books.outstanding.settle(failing["slot_ms"].astype(np.int64))
    engine.note_written_ahead(slot_ms)


def _write_into(engine: TimerEngine, store: "Store", items: Items, slot_ms: int) -> Longs:
    """Write what still waits of these messages into a slot; their queue offsets."""
    waiting = messages(store, np.unique(items["queue_offset"].astype(np.int64)))
    if len(waiting):
        engine.write_into(waiting, slot_ms)
    return waiting.queue_offsets
