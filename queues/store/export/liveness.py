"""Whether a record still means something at the moment of the export, and where it goes then.

=====================  ======================================  ===================================
a record of            goes along                              as
=====================  ======================================  ===================================
a topic, ``%RETRY%``   if the topic (the group) exists         its own topic, queue and offset
``%DLQ%group``         unless it was redriven or renewed       the same topic, offsets from 0
a level                if it waits                             the level's queue, offsets from 0
the timer topic        if it waits                             the timer topic, offsets from 0
the journal            never
=====================  ======================================  ===================================

RocketMQ reads a level's due time from the store time and the level, and the head of a level's queue
holds up all behind it. A level message that was promised another time (the table was changed, the
clock was set back) therefore goes along as a timed one.

A queue's records keep their offsets, so that groups go on where they stood. Where a damaged record
left a hole, those behind it move up: RocketMQ's ConsumeQueues cannot have one.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from queues.store.export.destination import Destination, Exported
from queues.store.export.source import Source
from queues.store.names import (
    DEAD_LETTER_PREFIX,
    JOURNAL_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    is_system_topic,
)

_REAL_TOPIC = b"\x02REAL_TOPIC\x01"
_DUE_AT, _DUE_END = 7, 20


class Found(NamedTuple):
    """A record as the walk found it."""

    topic: bytes
    queue_id: int
    queue_offset: int
    store_ms: int
    #: As stored.
    properties: bytes


class Kept(NamedTuple):
    """Where a record goes."""

    queue_offset: int
    #: Whether a level record goes along as a timed one.
    as_timed: bool


@dataclass(slots=True)
class Line:
    """One queue of the fresh store."""

    #: The offset that the next record gets; None before the first.
    end: int | None = None
    #: The first offset.
    start: int = 0
    #: Offsets (of the source) behind which records are missing, and how many are, in all, by then.
    holes: list[tuple[int, int]] = field(default_factory=list)

    def place(self, offset: int) -> int:
        """The offset of a record that keeps its own, but for the holes before it."""
        missing = self.holes[-1][1] if self.holes else 0
        if self.end is None:
            self.start = self.end = offset
        elif offset - missing > self.end:
            missing = offset - self.end
            self.holes.append((offset, missing))
        placed = self.end
        self.end += 1
        return placed

    def append(self) -> int:
        """The offset of a record that comes behind the one before."""
        placed = self.end or 0
        self.end = placed + 1
        return placed

    def moved(self, offset: int) -> int:
        """Where a group stands here that stood at an offset of the source."""
        missing = max((lost for behind, lost in self.holes if behind <= offset), default=0)
        return min(max(offset - missing, self.start), self.end or 0)


class Liveness:
    """Decides record by record, in log order, and counts."""

    def __init__(self, source: Source, destination: Destination, told: Exported) -> None:
        self._source, self._destination, self._told = source, destination, told
        self.lines: dict[tuple[str, int], Line] = {}
        self._names: dict[bytes, str] = {}
        self._level_dues: dict[int, int] = {}
        self._real_topics: dict[bytes, bool] = {}

    def place(self, found: Found) -> Kept | None:
        """Where the record goes; None if it does not."""
        topic = self._names.get(found.topic) or self._learn(found.topic)
        if topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
            return self._held(topic, found)
        if topic.startswith(DEAD_LETTER_PREFIX):
            return self._dead(topic, found)
        if is_system_topic(topic):
            self._told.left["journal" if topic == JOURNAL_TOPIC else "system"] += 1
            return None
        return self._ready(topic, found)

    def _learn(self, topic: bytes) -> str:
        return self._names.setdefault(topic, topic.decode("utf-8", "replace"))

    def _ready(self, topic: str, found: Found) -> Kept | None:
        if not self._goes_along(topic):
            self._leave("orphaned")
            return None
        declared = self._destination.topics.get(topic)
        first = declared.first_offsets.get(found.queue_id, 0) if declared else 0
        queue = self._source.find(topic, found.queue_id)
        if queue is not None:
            first = max(first, self._source.min_offset(queue))
        if found.queue_offset < first:
            self._leave("expired")
            return None
        self._told.kept["retrying" if topic.startswith(RETRY_PREFIX) else "ready"] += 1
        return Kept(self._line(topic, found.queue_id).place(found.queue_offset), as_timed=False)

    def _dead(self, topic: str, found: Found) -> Kept | None:
        if self._is_settled(topic, found) or not self._goes_along(topic):
            return None
        self._told.kept["dead"] += 1
        return Kept(self._line(topic, found.queue_id).append(), as_timed=False)

    def _held(self, topic: str, found: Found) -> Kept | None:
        if self._is_settled(topic, found):
            return None
        if not self._waits_for_known(found.properties):
            self._leave("orphaned")
            return None
        level = found.queue_id + 1
        as_timed = topic == SCHEDULE_TOPIC and not self._keeps_promise(level, found)
        kind = "levels" if topic == SCHEDULE_TOPIC and not as_timed else "timed"
        self._told.kept[kind] += 1
        line = self._line(TIMER_TOPIC, 0) if as_timed else self._line(topic, found.queue_id)
        return Kept(line.append(), as_timed)

    def _is_settled(self, topic: str, found: Found) -> bool:
        queue = self._source.find(topic, found.queue_id)
        if queue is None or found.queue_offset < self._source.min_offset(queue):
            self._leave("expired")
            return True
        letter = self._source.settled_by(queue, found.queue_offset)
        if letter is not None:
            self._leave("parked" if letter == b"P" else "settled")
        return letter is not None

    def _keeps_promise(self, level: int, found: Found) -> bool:
        """Whether RocketMQ will deliver a level record at the time that was promised."""
        levels, due_ms = self._destination.levels, int(found.properties[_DUE_AT:_DUE_END])
        latest_ms = self._level_dues.get(level, 0)
        self._level_dues[level] = max(latest_ms, due_ms)
        if level > levels.max_level or due_ms < latest_ms:
            return False
        return due_ms == found.store_ms + levels.delay_ms(level)

    def _waits_for_known(self, properties: bytes) -> bool:
        at = properties.rfind(_REAL_TOPIC) + len(_REAL_TOPIC)
        name = properties[at : properties.index(b"\x02", at)]
        known = self._real_topics.get(name)
        if known is None:
            known = self._real_topics[name] = self._goes_along(name.decode("utf-8", "replace"))
        return known

    def _goes_along(self, topic: str) -> bool:
        for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
            if topic.startswith(prefix):
                return topic.removeprefix(prefix) in self._destination.groups
        return topic in self._destination.topics

    def _line(self, topic: str, queue_id: int) -> Line:
        line = self.lines.get((topic, queue_id))
        if line is None:
            line = self.lines[topic, queue_id] = Line()
        return line

    def _leave(self, why: str) -> None:
        self._told.left[why] += 1
