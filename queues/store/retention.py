"""Retention: old segments go, what is still kept is renewed first, so the log stays bounded.

*Renewing*: what waits or is parked in a segment older than W = min(2 days, retention / 2) is
appended again, a bounded number a step, never within a minute of its due time. The settled word of
the old unit then points at the new holding record; a parked message gets its new parking record in
the same batch.

*Removing*: the oldest segment goes when it is older than the retention, nothing waits or is parked
in it, no lease points into it, and the hour is one of the deletion hours or space is low. A
segment's age is counted from the store time of the first record behind it. Nothing younger than
the retention ever goes. Logical first: the queues' minima are raised, then files are unlinked.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.append import Appender
from queues.store.batch import Batch, Source
from queues.store.changes import Changes
from queues.store.control import Word
from queues.store.deadrenewal import DeadRenewal
from queues.store.encode import Encoder
from queues.store.handover import HandOvers
from queues.store.held import Held, take_apart
from queues.store.names import DEAD_LETTER_PREFIX, TIMER_TOPIC
from queues.store.parts import Parts
from queues.store.queuetable import Queue
from queues.store.scan import letters_of, parse, read_whole
from queues.store.schedule import LOST, Int64s
from queues.store.settings import DAY_MS, StoreSettings

logger = logging.getLogger(__name__)

#: How many messages one step renews at the most.
RENEW_MAX = 500
#: Nothing is renewed this close to its due time, ms.
RENEW_BEFORE_MS = 60_000
_LOOK_UNITS = 65_536


@dataclass(frozen=True, slots=True)
class Housekept:
    """What one step did."""

    renewed: int
    segments_removed: int
    #: True when there is more to renew at once.
    more: bool


class Retention:
    """Keeps the log of one store bounded."""

    def __init__(
        self, parts: Parts, appender: Appender, encoder: Encoder, hand_overs: HandOvers,
        settings: StoreSettings, root: Path, flush: Callable[[], object], changes: Changes,
    ) -> None:  # fmt: skip
        self._parts, self._appender, self._encoder = parts, appender, encoder
        self._hand_overs, self._settings, self._root = hand_overs, settings, root
        self._flush, self._changes = flush, changes
        self._dead = DeadRenewal(parts, appender, encoder, settings.dead_letter_retention_ms)
        #: By queue, the first unit that may still wait or be parked.
        self._passed: dict[int, int] = {}
        #: Gives the lowest log offset that a lease points at; asked before a segment goes.
        self.leased_from: Callable[[], int | None] | None = None

    def step(self, now_ms: int) -> Housekept:
        """Refill the reserve, renew a bounded number of messages, remove what may go."""
        self._parts.reserve.refill()
        renew_ms = min(2 * DAY_MS, self._settings.retention_ms // 2)
        renewed = self._renew(self._boundary(now_ms - renew_ms), now_ms)
        removed = 0
        if self._may_remove(now_ms):
            removed = self._remove(self._boundary(now_ms - self._settings.retention_ms))
        return Housekept(renewed, removed, renewed >= RENEW_MAX)

    def _boundary(self, before_ms: int) -> int:
        """Where the newest segment begins whose predecessors are all older than `before_ms`."""
        log, boundary = self._parts.log, self._parts.control.words[Word.LOG_MIN]
        committed = self._parts.control.words[Word.COMMITTED]
        for base in log.bases()[1:]:
            if base >= committed:
                break
            if int.from_bytes(log.read(base + 56, 8), "big") > before_ms:
                break
            boundary = base
        return boundary

    # -- renewing -------------------------------------------------------------------------------

    def _renew(self, boundary: int, now_ms: int) -> int:
        if boundary <= self._parts.control.words[Word.LOG_MIN]:
            return 0
        renewed = 0
        for queue in [queue for queue in self._parts.queues.queues if queue.scheduled]:
            offsets = self._kept_below(queue, boundary)
            table = self._parts.table_of(queue)
            for unit in offsets.tolist():
                if renewed >= RENEW_MAX:
                    return renewed
                settled = table.settled(unit)
                due_ms, _ = table.due(unit)
                dead = queue.topic.startswith(DEAD_LETTER_PREFIX)
                if settled == 0 and not dead and due_ms <= now_ms + RENEW_BEFORE_MS:
                    continue
                if settled and not dead and not self._are_parked(np.array([settled]))[0]:
                    continue  # Handed over or cancelled since the list was made.
                renewed += self._renew_one(queue, unit, settled, now_ms)
        return renewed

    def _kept_below(self, queue: Queue, boundary: int) -> Int64s:
        """Units below a log offset that wait, are parked, or hold a dead letter that is kept.

        A unit that is neither will never be again, so the first of them are not looked at twice.
        """
        passed = max(self._parts.queues.min(queue), self._passed.get(queue.index, 0))
        stop = self._first_unit(queue, boundary)
        table, found = self._parts.table_of(queue), []
        for start in range(passed, stop, _LOOK_UNITS):
            some = table.slice(start, min(stop, start + _LOOK_UNITS))
            if queue.topic.startswith(DEAD_LETTER_PREFIX):
                found.append(start + self._dead.kept(some))
                continue
            words = some.settled
            found.append(start + np.flatnonzero((words == 0) | self._are_parked(words)))
        kept = np.concatenate(found) if found else np.zeros(0, np.int64)
        self._passed[queue.index] = int(kept[0]) if len(kept) else max(passed, stop)
        return kept

    def _are_parked(self, words: Int64s) -> npt.NDArray[np.bool_]:
        """Which settled words lead to a parking record."""
        parked: npt.NDArray[np.bool_] = letters_of(self._parts.log, words) == ord("P")
        return parked

    def _renew_one(self, queue: Queue, unit: int, settled: int, now_ms: int) -> int:
        place = self._hand_overs.units_at(queue, np.array([unit], np.int64))[0]
        offset = int(place["log_offset"])
        raw = read_whole(self._parts.log, offset, int(place["size"]))
        if raw is None:
            self._set_aside(queue, unit, settled, (offset, int(place["size"])))
            return 0
        if queue.topic.startswith(DEAD_LETTER_PREFIX):
            return self._dead.renew(queue, unit, settled, offset, raw)
        held, batch = take_apart(raw), Batch()
        self._encoder.hold_again(
            batch, held, Source(queue, unit, settled), offset, b"R",
            due_ms=held.due_ms, kind=held.kind, version=held.version, by=None,
        )  # fmt: skip
        if settled == 0:
            return len(self._appender.write(batch, "renewed", privileged=True).entries.sizes)
        with self._appender.hold():
            if self._parts.table_of(queue).settled(unit) != settled:
                return 0  # Released or cancelled meanwhile.
            self._park_again(batch, held, settled, now_ms)
            self._appender.write(batch, "renewed", privileged=True)
        return 1

    def _set_aside(self, queue: Queue, unit: int, settled: int, place: tuple[int, int]) -> None:
        """Park a message whose record is damaged; it would hold its segment for ever."""
        if settled == 0:
            path = self._parts.log.path(self._parts.log.base_of(place[0]))
            logger.error("damaged record at %s, offset %d: its message is parked", path, place[0])
            reason = f"the record at log offset {place[0]} is damaged"
            self._changes.park(queue.topic, queue.queue_id, unit, place, reason=reason)
            with self._appender.hold():
                self._parts.control.count("damaged")
            return
        with self._appender.hold():
            # What the parking record says is all that there is, and it lies elsewhere.
            self._parts.table_of(queue).settle(unit, LOST)

    def _park_again(self, batch: Batch, held: Held, parking: int, now_ms: int) -> None:
        """Add the parking record of a holding record that is written in the same hold."""
        log, start = self._parts.log, self._parts.control.words[Word.COMMITTED]
        raw = log.read(parking, int.from_bytes(log.read(parking, 4), "big"))
        record = parse(raw, offset=parking)
        body = record.raw[88 : 88 + int.from_bytes(record.raw[84:88], "big")]
        timer = self._parts.queues.obtain(TIMER_TOPIC, 0)
        source = Source(timer, self._parts.queues.max(timer), 0)
        pieces, _ = log.place(start, [row[0] for row in batch.rows])
        self._encoder.journal(
            batch, held, source, pieces[-1].offset, b"P",
            event="parked", by=None, body=body or json.dumps({}).encode(), now_ms=now_ms,
        )  # fmt: skip

    # -- removing -------------------------------------------------------------------------------

    def _may_remove(self, now_ms: int) -> bool:
        hour = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().hour
        if hour in self._settings.delete_hours:
            return True
        wanted = self._settings.min_free_bytes
        if wanted is None:
            wanted = 2 * self._parts.log.segment_bytes
        return self._parts.disk.free_bytes(self._root) < wanted

    def _remove(self, boundary: int) -> int:
        """Remove the segments before `boundary` that nothing keeps; returns how many went."""
        log, control, removed = self._parts.log, self._parts.control, 0
        if boundary <= control.words[Word.LOG_MIN]:
            return 0
        with self._appender.hold():
            for base in log.bases():
                end = base + log.segment_bytes
                if end > boundary or self._is_kept(end):
                    break
                if not removed:
                    self._flush()  # What replaced the records that go must not be lost with them.
                self._raise_minima(end)
                log.remove(base)
                removed += 1
            control.count("segments_removed", removed)
        return removed

    def _is_kept(self, end: int) -> bool:
        leased = self.leased_from() if self.leased_from is not None else None
        if leased is not None and leased < end:
            return True
        return any(
            len(self._kept_below(queue, end))
            for queue in self._parts.queues.queues
            if queue.scheduled
        )

    def _raise_minima(self, log_min: int) -> None:
        parts = self._parts
        parts.control.set(Word.LOG_MIN, log_min)
        for queue in parts.queues.queues:
            unit = self._first_unit(queue, log_min)
            if unit > parts.queues.min(queue):
                parts.queues.set_min(queue, unit)
                parts.consume_queues.remove_below(queue.topic, queue.queue_id, unit)
                if queue.scheduled:
                    parts.table_of(queue).remove_below(unit)
        parts.index.remove_below(log_min)

    def _first_unit(self, queue: Queue, log_offset: int) -> int:
        """The first unit of a queue whose record lies at or behind a log offset."""
        low, high = self._parts.queues.min(queue), self._parts.queues.max(queue)
        while low < high:
            middle = (low + high) // 2
            units = self._parts.consume_queues.read(queue.topic, queue.queue_id, middle, 1)
            if len(units) and units["log_offset"][0] >= log_offset:
                high = middle
            else:
                low = middle + 1
        return low
