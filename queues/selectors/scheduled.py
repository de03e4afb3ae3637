"""What waits: scans of the schedule table, vectorised, exact and without anything to keep in step.

A message waits in a level's queue or in the timer queue until its settled word is set. The table
says of each unit when it is due and for which topic, so windows and counts read no message. Waiting
retries lie there too; they are their group's, and are left out.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from queues import wires
from queues.access import Patterns
from queues.store import MessageView, Store, StoreError
from queues.store.limits import DUE_MS_MAX
from queues.store.names import RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC, is_system_topic
from queues.store.outlook import Bools, Places, Wanted
from queues.store.queuetable import Queue
from queues.store.record import Record


@dataclass(frozen=True, slots=True)
class Window:
    """Which waiting messages are meant; None is any."""

    topic: str | None = None
    #: `level` or `timed`.
    kind: str | None = None
    #: Due at or after, ms.
    due_from_ms: int = 0
    #: Due before, ms.
    due_before_ms: int = DUE_MS_MAX
    #: `topic` is a group's retry topic, which no sender may name.
    retries: bool = False
    #: Only this delay level.
    level: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a message is or was held, in the order of due times."""

    due_ms: int
    #: Its holding queue: 0 is the timer queue, 1 and up are the levels.
    holder: int
    #: Offset in that queue.
    offset: int


ANYTHING = Patterns(("*",))


def wanted_of(
    window: Window, patterns: Patterns = ANYTHING, *, settled: bool = False
) -> Wanted | None:
    """The units that a window means to someone with these topic patterns; None: there are none."""
    outlook = wires.wiring().get_store().outlook
    topics: tuple[int, ...] | Bools | None
    if window.topic is not None:
        number = outlook.topic_number(window.topic)
        known = is_users(window.topic) or window.retries
        if number is None or not known or not patterns.allow(window.topic):
            return None
        topics = (number,)
    else:
        topics = _topics_for(patterns)
    of_level = None if window.kind is None else window.kind == "level"
    return Wanted(window.due_from_ms, window.due_before_ms, topics, settled, of_level)


def is_users(topic: str) -> bool:
    """Whether the topic is one that messages are sent to, not one of the store's own."""
    return not topic.startswith("%") and not is_system_topic(topic)


def _topics_for(patterns: Patterns) -> Bools | tuple[int, ...] | None:
    store = wires.wiring().get_store()
    topics = store.topics()
    if patterns.takes_all and not any(topic.startswith(RETRY_PREFIX) for topic in topics):
        return None
    takes: Callable[[str], bool] = lambda topic: is_users(topic) and patterns.allow(topic)  # noqa: E731
    return store.outlook.topic_numbers(takes)


def holders(
    store: Store, kind: str | None = None, level: int | None = None
) -> list[tuple[int, Queue]]:
    """The holding queues with the numbers that stand for them in places.

    A message of a level may wait in the timer queue too, since it was restored or renewed.
    """
    numbered = [
        (0 if queue.topic == TIMER_TOPIC else queue.queue_id + 1, queue)
        for queue in store.outlook.holding_queues()
    ]
    if level is not None:
        return [pair for pair in numbered if pair[0] == level]
    return [pair for pair in numbered if not pair[0]] if kind == "timed" else numbered


def count_waiting(topic: str) -> int:
    """How many messages wait for the topic."""
    wanted = wanted_of(_window_of(topic))
    return 0 if wanted is None else wires.wiring().get_store().outlook.count(wanted)


def waiting_ids(topic: str, limit: int = 1000) -> list[str]:
    """Ids of some messages that wait for the topic."""
    places, _ = nearest_places(_window_of(topic), after=None, limit=limit)
    return [record_id for place in places if (record_id := message_id(place)) is not None]


def _window_of(topic: str) -> Window:
    return Window(topic=topic, retries=topic.startswith(RETRY_PREFIX))


def nearest_places(
    window: Window, *, after: Place | None, limit: int, patterns: Patterns = ANYTHING
) -> tuple[list[Place], int]:
    """The first places after one, in due order, and how many there are in the whole window."""
    found, count = nearest(window, after=after, limit=limit, patterns=patterns)
    return places_of(found), count


def nearest(
    window: Window, *, after: Place | None, limit: int, patterns: Patterns = ANYTHING,
    settled: bool = False,
) -> tuple[Places, int]:  # fmt: skip
    """The same as columns, also of what no longer waits."""
    store = wires.wiring().get_store()
    wanted = wanted_of(window, patterns, settled=settled)
    if wanted is None:
        nothing = np.zeros(0, np.int64)
        return Places(nothing, nothing, nothing, nothing), 0
    return store.outlook.nearest(
        holders(store, window.kind, window.level),
        wanted,
        after=None if after is None else (after.due_ms, after.holder, after.offset),
        limit=limit,
    )


def places_of(found: Places) -> list[Place]:
    """The columns as places."""
    columns = (found.due_ms.tolist(), found.holders.tolist(), found.offsets.tolist())
    return [Place(*values) for values in zip(*columns, strict=True)]


def message_id(place: Place) -> str | None:
    """The id of the message at a place; None if its record is damaged."""
    record = held_record(place)
    return None if record is None else record.unique_id


def held_record(place: Place) -> Record | None:
    """The holding record at a place; None if it is damaged or gone."""
    store = wires.wiring().get_store()
    topic, queue_id = holding_queue(place.holder)
    units = store.read_units(topic, queue_id, place.offset, 1)
    if not len(units):
        return None
    with contextlib.suppress(StoreError):
        return store.read_record(int(units["log_offset"][0]))
    return None


def waiting_view(place: Place) -> MessageView | None:
    """The message that waits at a place, without its timeline; None if it no longer does."""
    record = held_record(place)
    topic, queue_id = holding_queue(place.holder)
    words, _ = wires.wiring().get_store().schedule_at(topic, queue_id, np.array([place.offset]))
    if record is None or words[0]:
        return None
    return view_of_held(record)


def view_of_held(record: Record) -> MessageView | None:
    """What a holding record alone says of its message, as long as that waits."""
    said = record.properties
    kind, due = said.get("PD_KIND", ""), said.get("PD_DUE", "")
    if not due or record.unique_id is None:
        return None
    version = int(said["PD_VERSION"])
    return MessageView(
        id=record.unique_id, topic=said.get("REAL_TOPIC", ""),
        queue_id=int(said.get("REAL_QID", 0)), state="scheduled",
        kind=kind[:1], level=int(kind[1:]) or None,  # type: ignore[arg-type]
        due_ms=int(due), created_ms=record.born_ms, delivered_ms=None, delivered_offset=None,
        version=version, reschedules=version - 1, parked_reason=None, record=record, timeline=(),
        held_topic=record.topic, held_queue_id=record.queue_id, held_offset=record.queue_offset,
    )  # fmt: skip


def holding_queue(holder: int) -> tuple[str, int]:
    """Topic and queue of a holder's number."""
    return (TIMER_TOPIC, 0) if holder == 0 else (SCHEDULE_TOPIC, holder - 1)
