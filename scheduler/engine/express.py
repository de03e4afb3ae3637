"""The express: what is due soon goes ahead, however much waits to be scanned before it.

Scanning takes messages in the order of arrival. Behind a flood, or in a rebuild, a message that is
due in a second might be a million messages away. So while scanning is behind, what lies behind it
is looked through by due time alone (16 bytes a message, vectorised), and what is due soon is listed
at once. It is scanned in its turn too: it settles once.

Invariant: of the messages from the scan's offset to `ahead_end`, those due until `ahead_until_ms`
are listed. The end follows what arrives, at once; the time is widened once a second, by one look at
all of them.

Example: 5,000,000 messages for next week are behind the scan, then comes one for the next second.
The looks pass over the flood in 77 turns of 0.3 ms, and the one is listed.
"""

from typing import TYPE_CHECKING

import numpy as np

from queues.store.names import TIMER_TOPIC
from scheduler.engine.books import Books
from scheduler.engine.duelist import items_of
from scheduler.engine.limits import EXPRESS_EVERY_MS, EXPRESS_MS, EXPRESS_UNITS, LISTED_MAX
from scheduler.engine.scan import QUEUE_ID

if TYPE_CHECKING:
    from queues.store.store import Store


class Express:
    """The look ahead of the scan, one stretch a turn."""

    def __init__(self) -> None:
        self._begun_ms = 0
        #: A widening under way: where it has come to, and until which due time it looks.
        self._at: int | None = None
        self._wider_ms = 0

    def step(self, books: Books, store: "Store", now_ms: int) -> bool:
        """Look through one stretch; whether there is another now."""
        end = store.queue_bounds(TIMER_TOPIC, QUEUE_ID).max_offset
        if books.queue_offset >= end:
            books.ahead_end = 0
            return False
        if books.due.size >= LISTED_MAX:
            return False
        if not books.ahead_end or now_ms < self._begun_ms:
            self._begin(books, now_ms)
        books.ahead_end = max(books.ahead_end, books.queue_offset)
        if self._at is not None:
            self._widen(books, store, self._at)
        elif books.ahead_end < end:
            stop = min(end, books.ahead_end + EXPRESS_UNITS)
            _list(books, store, (books.ahead_end, stop), (-1, books.ahead_until_ms))
            books.ahead_end = stop
        elif now_ms - self._begun_ms >= EXPRESS_EVERY_MS:
            self._begun_ms, self._wider_ms = now_ms, now_ms + EXPRESS_MS
            self._at = books.queue_offset
        return self._at is not None or books.ahead_end < end

    def _begin(self, books: Books, now_ms: int) -> None:
        """Nothing is known: the scan fell behind, or the list was begun anew."""
        self._at, self._begun_ms = None, now_ms
        books.ahead_end, books.ahead_until_ms = books.queue_offset, now_ms + EXPRESS_MS

    def _widen(self, books: Books, store: "Store", at: int) -> None:
        begin = max(at, books.queue_offset)
        stop = max(begin, min(books.ahead_end, begin + EXPRESS_UNITS))
        if begin < stop:
            _list(books, store, (begin, stop), (books.ahead_until_ms, self._wider_ms))
        self._at = stop
        if stop >= books.ahead_end:
            self._at, books.ahead_until_ms = None, max(books.ahead_until_ms, self._wider_ms)


def _list(books: Books, store: "Store", units: tuple[int, int], due: tuple[int, int]) -> None:
    """List what waits of these units and is due in (`due[0]`, `due[1]`]."""
    found = store.schedule(TIMER_TOPIC, QUEUE_ID, *units)
    fits = (found.settled == 0) & (found.due_ms > due[0]) & (found.due_ms <= due[1])
    chosen = np.flatnonzero(fits)
    if len(chosen):
        slots_ms = np.full(len(chosen), books.settled_ms, dtype=np.int64)
        books.due.add(items_of(found.due_ms[chosen], chosen + found.start, slots_ms))
        books.outstanding.add(slots_ms)
