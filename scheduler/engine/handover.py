"""Hand over, the fifth stage: what is due leaves the timer for its topic, in due order.

The store decides under its lock; this stage only keeps the books: what is settled leaves the list,
what failed comes again after a back-off, what can never be handed over is parked.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from queues.store.grouping import are_different
from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import Longs
from scheduler.engine.books import Books
from scheduler.engine.duelist import Items
from scheduler.engine.limits import BACK_OFF_MS, BACK_OFF_MS_MAX, BACK_OFF_STEPS
from scheduler.engine.scan import QUEUE_ID

if TYPE_CHECKING:
    from queues.store.messages import Failure, HandOver
    from queues.store.store import Store


def hand_over(books: Books, store: "Store", now_ms: int, count_max: int) -> int:
    """Hand over up to about `count_max` messages that are due; how many went to their topics."""
    taken = books.due.take(now_ms, count_max)
    if not len(taken):
        return 0
    books.failing -= int(np.count_nonzero(taken["tries"]))
    items = _once_each(books, taken)
    try:
        result = store.hand_over(TIMER_TOPIC, QUEUE_ID, items["queue_offset"].astype(np.int64))
    except BaseException:
        _put_back(books, items)
        raise
    if result.not_due or result.failed:
        gone = _see_to_the_rest(books, store, items, result, now_ms)
    else:
        gone = items
    books.outstanding.settle(gone["slot_ms"].astype(np.int64))
    books.meter.note(gone["at_ms"][gone["tries"] == 0], now_ms)
    return int(result.handed)


def _see_to_the_rest(
    books: Books, store: "Store", items: Items, result: "HandOver", now_ms: int
) -> Items:
    """List again what did not go, park what never can; the items that are done with."""
    offsets = items["queue_offset"].astype(np.int64)
    not_due = np.isin(offsets, np.array(result.not_due, dtype=np.int64))
    failed = _failed(offsets, result.failed)
    gone = ~not_due & ~failed
    if not_due.any():
        _wait_for_clock(books, store, items[not_due])
    if failed.any():
        gone |= _park(store, offsets, result.failed)
        _back_off(books, items[~gone & failed], now_ms)
    return items[gone]


def back_off_ms(tries: npt.NDArray[np.uint8]) -> Longs:
    """How long to wait after so many failures: 100 ms, doubling to 10 s."""
    doubled = BACK_OFF_MS << np.minimum(tries, BACK_OFF_STEPS).astype(np.int64)
    return np.asarray(np.minimum(doubled, BACK_OFF_MS_MAX), dtype=np.int64)


def _once_each(books: Books, taken: Items) -> Items:
    """A message that was listed twice (its unit was written again after a crash) goes once."""
    if len(taken) == 1 or are_different(taken["queue_offset"]):
        return taken
    _, firsts = np.unique(taken["queue_offset"], return_index=True)
    firsts.sort()
    again = np.ones(len(taken), dtype=np.bool_)
    again[firsts] = False
    books.outstanding.settle(taken["slot_ms"][again].astype(np.int64))
    return taken[firsts]


def _failed(offsets: Longs, failures: Sequence["Failure"]) -> npt.NDArray[np.bool_]:
    if not failures:
        return np.zeros(len(offsets), dtype=np.bool_)
    return np.isin(offsets, np.array([failure.queue_offset for failure in failures]))


def _park(store: "Store", offsets: Longs, failures: Sequence["Failure"]) -> npt.NDArray[np.bool_]:
    parked = [
        failure.queue_offset
        for failure in failures
        if failure.permanent
        and store.park(TIMER_TOPIC, QUEUE_ID, failure.queue_offset, reason=failure.reason)
    ]
    return np.isin(offsets, np.array(parked, dtype=np.int64))


def _back_off(books: Books, items: Items, now_ms: int) -> None:
    again = items.copy()
    again["at_ms"] = now_ms + back_off_ms(items["tries"])
    again["tries"] = np.minimum(items["tries"], 254) + 1
    _put_back(books, again)


def _wait_for_clock(books: Books, store: "Store", items: Items) -> None:
    """The store's clock says that these are not due: wait for the time that was promised."""
    again = items.copy()
    offsets = items["queue_offset"].astype(np.int64)
    again["at_ms"] = store.schedule_at(TIMER_TOPIC, QUEUE_ID, offsets)[1]
    _put_back(books, again)


def _put_back(books: Books, items: Items) -> None:
    books.due.add(items)
    books.failing += int(np.count_nonzero(items["tries"]))
