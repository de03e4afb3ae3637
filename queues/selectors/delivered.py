"""What was handed over: the records of a topic's own queues, in the order of the log.

A message is never handed over before it is due, so what is due from a time on lies behind the
records that were stored by then. How late a message was is not known beforehand; the queues are
read to their end, a bounded number of records at a time.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from queues import wires
from queues.limits import FILTER_READS_MAX
from queues.selectors.control import find_topic
from queues.store import Store
from queues.store.index import SKEW_MS
from queues.store.scan import Parsed

_UNITS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Delivered:
    """A page of ids."""

    ids: list[str]
    #: Log offset of the last record looked at; None at the end.
    last: int | None
    #: How many there are, or at least so many (exact only on a first page).
    count: int
    exact: bool


def list_delivered(
    topic: str, due_from_ms: int, due_before_ms: int, *,
    takes: Callable[[Parsed], bool], after: int | None, limit: int,
) -> Delivered:  # fmt: skip
    """The next messages of a topic that are due in the window and taken."""
    store = wires.wiring().get_store()
    ids: list[str] = []
    last: int | None = None
    count = looked = 0
    for log_offset, size in heapq.merge(*_queues(store, topic, due_from_ms, after)):
        if looked == FILTER_READS_MAX:
            return Delivered(ids, last, count, exact=False)
        looked += 1
        if len(ids) < limit:
            last = log_offset
        record = store.bulk.record_at(log_offset, size)
        if record is None or record.letter not in "NH":
            continue
        if due_from_ms <= record.due_ms < due_before_ms and takes(record):
            count += 1
            if len(ids) < limit:
                ids.append(record.unique_id)
            elif after is not None:
                return Delivered(ids, last, count, exact=False)
    return Delivered(ids, last if count > len(ids) else None, count, exact=True)


def _queues(
    store: Store, topic: str, due_from_ms: int, after: int | None
) -> list[Iterator[tuple[int, int]]]:
    declared = find_topic(topic)
    firsts = {} if declared is None else declared.first_offsets
    return [
        _units(store, topic, queue, due_from_ms - SKEW_MS, after, firsts.get(queue, 0))
        for queue in store.queue_ids(topic)
    ]


def _units(
    store: Store, topic: str, queue_id: int, store_ms: int, after: int | None, first: int
) -> Iterator[tuple[int, int]]:
    """Log offsets and sizes of a queue's records behind a log offset or from a store time on."""
    bounds = store.queue_bounds(topic, queue_id)
    low, high = max(bounds.min_offset, first), bounds.max_offset
    end = high
    while low < high:
        middle = (low + high) // 2
        units = store.read_units(topic, queue_id, middle, 1)
        if not len(units) or _is_behind(store, units[0], store_ms, after):
            high = middle
        else:
            low = middle + 1
    while low < end:
        units = store.read_units(topic, queue_id, low, min(_UNITS_AT_ONCE, end - low))
        if not len(units):
            return
        yield from zip(units["log_offset"].tolist(), units["size"].tolist(), strict=True)
        low += len(units)


def _is_behind(store: Store, unit: object, store_ms: int, after: int | None) -> bool:
    log_offset, size = int(unit["log_offset"]), int(unit["size"])  # type: ignore[index]
    if after is not None:
        return log_offset > after
    record = store.bulk.record_at(log_offset, size)
    # A damaged one says no time; what lies behind it is looked at as well.
    return record is None or record.store_ms >= store_ms
