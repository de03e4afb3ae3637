"""The lag of a group: what each queue still has for it."""

from dataclasses import dataclass

import numpy as np

from queues.store.handout import QueueReader
from queues.store.ledgerheader import Header
from queues.store.ledgers import Place
from queues.store.limits import RECEIVE_UNITS_MAX
from queues.store.seeking import store_ms_of
from queues.store.tagfilter import TagFilter


@dataclass(frozen=True, slots=True)
class QueueLag:
    """What one queue has for a group."""

    topic: str
    queue_id: int
    #: Messages that a receive would find.
    ready: int
    #: Messages on lease.
    leased: int
    #: When the oldest ready one came to its queue, wall time in ms; None without any.
    oldest_ready_ms: int | None
    #: `ready` was counted, not estimated.
    ready_exact: bool = True
    #: Of a broadcasting group: the consumer that it waits for.
    consumer_id: str | None = None


def measure_lag(
    reader: QueueReader, header: Header, first_again: int | None, place: Place, tags: TagFilter
) -> QueueLag:
    """What a queue has for the group that stands where the header says.

    `first_again` is the first offset that is ready again. With a tag filter at most
    `RECEIVE_UNITS_MAX` units are looked at and the rest is estimated from them; messages that are
    ready again are counted without asking for their tag.
    """
    _, topic, queue_id = place
    bounds = reader.queue_bounds(topic, queue_id)
    first = max(header.cursor, bounds.min_offset)
    fresh = max(0, bounds.max_offset - first)
    matching, oldest, exact = fresh, first if fresh else None, True
    if fresh and not tags.takes_all:
        units = reader.read_units(topic, queue_id, first, min(fresh, RECEIVE_UNITS_MAX))
        found = np.flatnonzero(tags.may_match(units["tags_code"]))
        exact = len(units) == fresh
        matching = len(found) if exact else len(found) * fresh // max(1, len(units))
        oldest = first + int(found[0]) if len(found) else None
    if first_again is not None:
        oldest = max(first_again, bounds.min_offset)
    return QueueLag(
        topic=topic,
        queue_id=queue_id,
        ready=matching + header.again,
        leased=header.leased,
        oldest_ready_ms=None if oldest is None else store_ms_of(reader, topic, queue_id, oldest),
        ready_exact=exact,
    )
