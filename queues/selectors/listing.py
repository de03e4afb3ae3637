"""Listing: the messages that wait, by topic, kind, due window, key and tag, in due order.

Without a key or tag nothing but the schedule table is read, and the count is exact. With one,
records are read in due order until the page is full, and the counting stops at a bound.
"""

from dataclasses import dataclass

from queues import wires
from queues.access import Caller
from queues.limits import FILTER_READS_MAX
from queues.selectors.scheduled import (
    Place,
    Window,
    message_id,
    waiting_places,
    waiting_record,
)
from queues.store import MessageView
from queues.store.properties import REAL_TOPIC
from queues.store.record import Record


@dataclass(frozen=True, slots=True)
class Filter:
    """Which waiting messages are meant."""

    window: Window
    key: str | None = None
    tag: str | None = None

    @property
    def reads_records(self) -> bool:
        """Whether the schedule table is not enough to decide."""
        return self.key is not None or self.tag is not None

    def takes(self, record: Record) -> bool:
        """Whether the message's key and tag are those asked for."""
        return (self.tag is None or record.tag == self.tag) and (
            self.key is None or self.key in record.keys
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """A page."""

    views: list[MessageView]
    #: Where the next page goes on; None at the end.
    last: Place | None
    #: How many fit in all, or at least so many.
    count: int
    exact: bool


def list_waiting(wanted: Filter, *, caller: Caller, after: Place | None, limit: int) -> Listed:
    """A page of what waits; what the caller's patterns leave out is neither shown nor counted."""
    if not wanted.reads_records and (wanted.window.topic is not None or caller.topics.takes_all):
        places, count = waiting_places(wanted.window, after=after, limit=limit + 1)
        views = [view for place in places[:limit] if (view := _view(place)) is not None]
        last = places[limit - 1] if len(places) > limit else None
        return Listed(views, last, count, exact=True)
    return _list_reading(wanted, caller=caller, after=after, limit=limit)


def _list_reading(wanted: Filter, *, caller: Caller, after: Place | None, limit: int) -> Listed:
    """Read records in due order: a page, and a count as far as the bound goes."""
    places, _ = waiting_places(wanted.window, after=None, limit=FILTER_READS_MAX + 1)
    exact = len(places) <= FILTER_READS_MAX
    if after is not None and not exact and after >= places[-1]:
        more, _ = waiting_places(wanted.window, after=after, limit=FILTER_READS_MAX + 1)
        places = places[:-1] + more
    page: list[Place] = []
    count = 0
    for place in places:
        record = waiting_record(place)
        if record is None or not wanted.takes(record):
            continue
        if not caller.topics.allow(record.properties.get(REAL_TOPIC, "")):
            continue
        count += 1
        if (after is None or place > after) and len(page) <= limit:
            page.append(place)
    last = page[limit - 1] if len(page) > limit else None
    if last is None and not exact:
        last = places[-1]
    views = [view for place in page[:limit] if (view := _view(place)) is not None]
    return Listed(views, last, count, exact)


def _view(place: Place) -> MessageView | None:
    found = message_id(place)
    view = None if found is None else wires.wiring().get_store().find(found)
    return view if view is not None and view.state == "scheduled" else None
