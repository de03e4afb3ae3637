"""Cancelling by key: what was cancelled leaves the timeline before its time.

Cancels are decided by the settled word and told in the journal. Its records name due time, topic
and id, which are the key, so the entry is found without a search. An entry that is left because it
was put elsewhere (a late one) is dropped when its time comes: the settled word says so.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.names import JOURNAL_TOPIC
from queues.store.record import decode_record
from scheduler.rocksdb.enqueue import matching
from scheduler.rocksdb.entries import keys_for
from scheduler.rocksdb.limits import JOURNAL_UNITS
from scheduler.rocksdb.timeline import Timeline

if TYPE_CHECKING:
    from queues.store.leading import Leading
    from queues.store.store import Store

_CANCEL = ord("C")


def follow_cancels(store: "Store", timeline: Timeline, journal_offset: int) -> int:
    """Remove the entries of what was cancelled since; where to go on."""
    bounds = store.queue_bounds(JOURNAL_TOPIC, 0)
    begin = min(max(journal_offset, bounds.min_offset), bounds.max_offset)
    units = store.read_units(JOURNAL_TOPIC, 0, begin, JOURNAL_UNITS)
    if len(units):
        places = units["log_offset"].astype(np.int64)
        leading = store.read_leading(places)
        chosen = np.flatnonzero(leading.letters == _CANCEL)
        if len(chosen):
            _remove(store, timeline, units[chosen], leading, chosen)
    return begin + len(units)


def _remove(
    store: "Store", timeline: Timeline, units: np.ndarray, leading: "Leading", chosen: np.ndarray
) -> None:
    told = [
        (number, decode_record(raw).properties["REAL_TOPIC"])
        for number, raw in zip(chosen.tolist(), store.read_records(units), strict=True)
        if raw is not None
    ]
    if not told:
        return
    numbers = np.array([number for number, _ in told])
    keys = keys_for(leading.due_ms[numbers], [topic for _, topic in told], leading.ids[numbers])
    removed = matching(timeline, keys, leading.from_offsets[numbers])
    if removed:
        timeline.write((), removed, floor=None)
