"""Listing: messages by topic, kind, due window, key, tag and state.

Of what waits nothing but the schedule table is read unless a tag is asked for, so its count is
exact. With a tag, and for what no longer waits, records are looked at until the page is full; a
look reads a bounded number of them, and the count then is "at least". A key is looked up in the
index, and its messages are found in whatever state they are.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queues import wires
from queues.access import Caller
from queues.limits import FILTER_READS_MAX
from queues.selectors.delivered import list_delivered
from queues.selectors.scheduled import (
    Place,
    Window,
    holders,
    is_users,
    nearest,
    nearest_places,
    places_of,
    waiting_view,
)
from queues.store import MessageView
from queues.store.bulkchanges import HeldUnit
from queues.store.hashes import tags_code
from queues.store.names import TIMER_TOPIC
from queues.store.outlook import Places
from queues.store.scan import Parsed

#: Settled units that one page of cancelled or parked messages looks at.
_SETTLED_LOOKS_MAX = 200_000
_LETTERS = {"cancelled": b"C", "parked": b"P"}
_KINDS = {"immediate": "I", "level": "L", "timed": "T"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages are meant."""

    window: Window
    state: str | None = "scheduled"
    key: str | None = None
    tag: str | None = None

    def takes_record(self, record: Parsed) -> bool:
        """Whether the message's tag and key are those asked for, by its bytes."""
        own = record.own
        if self.tag is not None and not own.startswith(b"TAGS\x01%b\x02" % self.tag.encode()):
            return False
        return self.key is None or self.key in keys_of(own)

    def takes_view(self, view: MessageView, caller: Caller) -> bool:
        """Whether a message is meant, by all that is known of it."""
        window = self.window
        return (
            (self.state is None or view.state == self.state)
            and (window.topic is None or view.topic == window.topic)
            and (window.kind is None or view.kind == _KINDS[window.kind])
            and window.level in (None, view.level)
            and window.due_from_ms <= view.due_ms < window.due_before_ms
            and (self.tag is None or view.record.tag == self.tag)
            and (self.key is None or self.key in view.record.keys)
            and is_users(view.topic)
            and caller.topics.allow(view.topic)
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """A page."""

    views: list[MessageView]
    #: Where the next page goes on; None at the end.
    last: list[Any] | None
    #: How many fit in all, or at least so many.
    count: int
    exact: bool


def keys_of(own: bytes) -> list[str]:
    """The keys in a record's own properties."""
    start = 0 if own.startswith(b"KEYS\x01") else own.find(b"\x02KEYS\x01") + 1
    if not own.startswith(b"KEYS\x01", start):
        return []
    return own[start + 5 : own.index(b"\x02", start)].decode().split(" ")


def list_messages(
    wanted: Filter, *, caller: Caller, position: list[Any] | None, limit: int
) -> Listed:
    """A page; what the caller's patterns leave out is neither shown nor counted."""
    if wanted.key is not None:
        return _list_by_key(wanted.key, wanted, caller, position, limit)
    if wanted.state == "ready":
        return _list_ready(wanted.window.topic or "", wanted, caller, position, limit)
    if wanted.state in _LETTERS:
        return _list_set_aside(wanted, caller, position, limit)
    if wanted.tag is not None:
        return _list_by_tag(wanted, caller, position, limit)
    return _list_waiting(wanted, caller, position, limit)


def _list_waiting(wanted: Filter, caller: Caller, position: list[Any] | None, limit: int) -> Listed:
    places, count = nearest_places(
        wanted.window, after=_place(position), limit=limit + 1, patterns=caller.topics
    )
    views = [view for place in places[:limit] if (view := waiting_view(place)) is not None]
    last = _token(places[limit - 1]) if len(places) > limit else None
    return Listed(views, last, count, exact=True)


def _place(position: list[Any] | None) -> Place | None:
    return None if position is None else Place(*position[:3])


def _token(place: Place) -> list[Any]:
    return [place.due_ms, place.holder, place.offset]


# -- by key -----------------------------------------------------------------------------------


def _list_by_key(
    key: str, wanted: Filter, caller: Caller, position: list[Any] | None, limit: int
) -> Listed:
    """Every message with the key, by due time and id."""
    store = wires.wiring().get_store()
    topics = [wanted.window.topic] if wanted.window.topic is not None else store.topics()
    seen = [topic for topic in topics if is_users(topic) and caller.topics.allow(topic)]
    ids, exact = store.lookup.ids_with_key(key, seen, limit=FILTER_READS_MAX)
    views = [view for one in ids if (view := store.find(one)) is not None]
    found = sorted(
        ((view.due_ms, view.id, view) for view in views if wanted.takes_view(view, caller)),
        key=lambda one: one[:2],
    )
    rest = [one for one in found if position is None or one[:2] > (position[0], position[1])]
    last = list(rest[limit - 1][:2]) if len(rest) > limit else None
    return Listed([view for *_, view in rest[:limit]], last, len(found), exact)


# -- what waits, by tag -----------------------------------------------------------------------


def _list_by_tag(wanted: Filter, caller: Caller, position: list[Any] | None, limit: int) -> Listed:
    """What waits and has the tag: read in due order, a bounded number of records a page."""
    found, exact = _tagged(wanted, caller, _place(position), FILTER_READS_MAX)
    count = len(found) if position is None else int(position[3])
    whole = exact if position is None else bool(position[4])
    views = [view for place in found[:limit] if (view := waiting_view(place)) is not None]
    last: Place | None = found[limit - 1] if len(found) > limit else None
    if last is None and not exact:
        last = _last_looked_at(wanted, caller, _place(position))
    token = None if last is None else [*_token(last), count, whole]
    return Listed(views, token, count, whole)


def _last_looked_at(wanted: Filter, caller: Caller, after: Place | None) -> Place | None:
    places, _ = nearest_places(
        wanted.window, after=after, limit=FILTER_READS_MAX, patterns=caller.topics
    )
    return places[-1] if places else None


def _tagged(
    wanted: Filter, caller: Caller, after: Place | None, looks: int
) -> tuple[list[Place], bool]:
    """The places with the tag among the next ones, and whether there are no further ones."""
    found, _ = nearest(wanted.window, after=after, limit=looks + 1, patterns=caller.topics)
    exact = len(found.offsets) <= looks
    chosen = Places(*(column[:looks] for column in found))
    fits = np.zeros(len(chosen.offsets), np.bool_)
    for unit, number in held_units(chosen, wanted.tag):
        fits[number] = wanted.takes_record(unit.record)
    at = np.flatnonzero(fits)
    return places_of(Places(*(column[at] for column in chosen))), exact


def held_units(chosen: Places, tag: str | None) -> list[tuple[HeldUnit, int]]:
    """The holding records at places, with their numbers; the timer queue's are sifted by tag.

    A ConsumeQueue unit of the timer queue carries its tag's code; one of a level its due time.
    """
    store = wires.wiring().get_store()
    found: list[tuple[HeldUnit, int]] = []
    for holder, queue in holders(store):
        mine = np.flatnonzero(chosen.holders == holder)
        if tag is not None and queue.topic == TIMER_TOPIC and len(mine):
            codes = store.bulk.units_at(queue, chosen.offsets[mine])["tags_code"]
            mine = mine[codes == tags_code(tag)]
        if not len(mine):
            continue
        numbers = dict(zip(chosen.offsets[mine].tolist(), mine.tolist(), strict=True))
        loaded = store.bulk.load(queue, chosen.offsets[mine], chosen.words[mine])
        found += [(unit, numbers[unit.unit]) for unit in loaded]
    return found


# -- what no longer waits ---------------------------------------------------------------------


def _list_set_aside(
    wanted: Filter, caller: Caller, position: list[Any] | None, limit: int
) -> Listed:
    """Cancelled or parked messages in due order: their settled words lead to records that say."""
    store = wires.wiring().get_store()
    found, _ = nearest(
        wanted.window, after=_place(position), limit=_SETTLED_LOOKS_MAX + 1,
        patterns=caller.topics, settled=True,
    )  # fmt: skip
    exact = len(found.offsets) <= _SETTLED_LOOKS_MAX
    letter = _LETTERS[str(wanted.state)][0]
    at = np.flatnonzero(store.lookup.letters(found.words[:_SETTLED_LOOKS_MAX]) == letter)
    chosen = Places(*(column[at] for column in found))
    if wanted.tag is not None:
        fits = sorted(
            n for unit, n in held_units(chosen, wanted.tag) if wanted.takes_record(unit.record)
        )
        chosen = Places(*(column[fits] for column in chosen))
    places = places_of(chosen)
    count = len(places) if position is None else int(position[3])
    whole = exact if position is None else bool(position[4])
    last = places[limit - 1] if len(places) > limit else None
    if last is None and not exact:
        last = places_of(Places(*(column[_SETTLED_LOOKS_MAX - 1 :][:1] for column in found)))[0]
    page = Places(*(column[:limit] for column in chosen))
    views = _found_again(page, wanted, caller)
    token = None if last is None else [*_token(last), count, whole]
    return Listed(views, token, count, whole)


def _found_again(page: Places, wanted: Filter, caller: Caller) -> list[MessageView]:
    """The messages whose records lie at these places, in the same order."""
    store = wires.wiring().get_store()
    units = sorted(held_units(page, None), key=lambda one: one[1])
    views = [store.find(unit.record.unique_id) for unit, _ in units]
    return [view for view in views if view is not None and wanted.takes_view(view, caller)]


def _list_ready(
    topic: str, wanted: Filter, caller: Caller, position: list[Any] | None, limit: int
) -> Listed:
    """What was handed over, in the order of that."""
    window = wanted.window
    if not is_users(topic) or not caller.topics.allow(topic):
        return Listed([], None, 0, exact=True)
    kind = None if window.kind is None else _KINDS[window.kind]
    open_filter = replace(wanted, window=replace(window, kind=None))
    found = list_delivered(
        topic, window.due_from_ms, window.due_before_ms,
        takes=lambda record: (
            kind in (None, record.kind)
            and window.level in (None, record.level)
            and open_filter.takes_record(record)
        ),
        after=None if position is None else int(position[0]), limit=limit,
    )  # fmt: skip
    count = found.count if position is None else int(position[1])
    exact = found.exact if position is None else bool(position[2])
    last = None if found.last is None else [found.last, count, exact]
    store = wires.wiring().get_store()
    views = [view for one in found.ids if (view := store.find(one)) is not None]
    return Listed(views, last, count, exact)
