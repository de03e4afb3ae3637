"""The store: many processes, one directory, every message in the log.

`Store` is what everything outside the engine uses. It puts the parts together (see ARCHITECTURE.md
for the picture) and answers with values; the parts do the work:

* `append`: one write; `dispatch`: what is derived from it; `recovery`: opening after a crash;
* `encode`, `batch`, `patching`: bytes of records; `scan`, `held`: reading them back;
* `schedule`: settled words; `handover`, `changes`, `retention`, `chains`: what settles them;
* `lookup`: finding a message by its id; `reading`: queues and records;
* `vitals`: positions, counters, generation, health.

One `Store` a process, shared by its threads, unusable after a fork.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from queues.store.append import Appender
from queues.store.bulkchanges import BulkChanges
from queues.store.chains import Chains
from queues.store.changes import Changes
from queues.store.clock import Clock, SystemClock
from queues.store.commitlog import CommitLog
from queues.store.control import Control, Word
from queues.store.disk import Disk
from queues.store.doorbell import Bell
from queues.store.encode import Encoder
from queues.store.errors import StoreClosing
from queues.store.flushing import Flusher
from queues.store.handover import HandOvers, TopicGate
from queues.store.idempotency import OnceSender
from queues.store.leading import Leading
from queues.store.lookup import Lookup, make_ids
from queues.store.messages import (
    Decision,
    HandOver,
    MessageView,
    Outgoing,
    Placed,
    QueueBounds,
)
from queues.store.opening import Presence, load_sizes
from queues.store.outlook import Outlook
from queues.store.parking import ParkedList
from queues.store.parts import Parts, put_together
from queues.store.queuetable import Queue
from queues.store.reading import Reader
from queues.store.rebuild import Damage
from queues.store.record import Record
from queues.store.recovery import Recovery
from queues.store.reserve import Reserve
from queues.store.retention import Housekept, Retention
from queues.store.schedule import ScheduleSlice
from queues.store.sending import Sender
from queues.store.settings import StoreSettings
from queues.store.tracing import Traces
from queues.store.vitals import Vitals

_WAKE_WORDS = {"levels": Word.WAKE_LEVELS, "wheel": Word.WAKE_WHEEL}


class Store(Vitals):
    """An open store directory."""

    def __init__(self, root: Path, settings: StoreSettings, clock: Clock, disk: Disk) -> None:
        self.root, self.settings, self.clock, self.disk = root, settings, clock, disk
        self._closed = False
        self._presence = Presence(disk, root)
        try:
            self._come_in()
        except BaseException:
            self._presence.close()
            raise
        self._wire(self._put_together())

    def _come_in(self) -> None:
        """Enter the directory and see that it is sound, under the append lock."""
        disk, root, settings = self.disk, self.root, self.settings
        postdate = root / "postdate"
        self._lock = disk.lock(postdate / "append.lock")
        with self._lock:
            self.sizes = load_sizes(disk, root, settings.sizes)
            self._control = Control.create(disk, postdate / "control")
            self._log = CommitLog(
                disk, root / "commitlog", postdate / "spare", self.sizes.segment_bytes
            )
            self._log.check_sizes()
            self._reserve = Reserve(
                disk, self.clock, self._log, postdate / "ballast", settings.ballast_bytes
            )
            recovery = Recovery(root, self._control, self.sizes.index_entries, self._put_together)
            self._presence.enter(self._control, recovery)
        #: What a rebuild on opening found to be damaged.
        self.damages: list[Damage] = recovery.damages

    @classmethod
    def open(
        cls, root: Path, settings: StoreSettings | None = None, *, clock: Clock | None = None,
        disk: Disk | None = None,
    ) -> "Store":  # fmt: skip
        """Open the store at `root`, making it if there is none, and recover it if need be.

        Raises a `StoreUnsupported` for what cannot be written here: a broker's directory, one that
        a broker holds, a network file system, an unknown version, a file of the wrong size.
        """
        return cls(root, settings or StoreSettings(), clock or SystemClock(), disk or Disk())

    def _put_together(self) -> Parts:
        return put_together(
            self.root, self.sizes, disk=self.disk, clock=self.clock, control=self._control,
            lock=self._lock, log=self._log, reserve=self._reserve,
        )  # fmt: skip

    def _wire(self, parts: Parts) -> None:
        log, control, sync_flush = self._log, self._control, self.settings.sync_flush
        self._parts, self._queues = parts, parts.queues
        self._consume_queues, self._index = parts.consume_queues, parts.index
        self._appender = Appender(parts)
        self._encoder = Encoder(self._queue_of, self.settings.levels, self.sizes.timer_precision_ms)
        self._sender = Sender(parts, self._appender, self._encoder, self.sizes.index_entries)
        self._reader = Reader(
            control, log, parts.queues, parts.consume_queues, parts.table_of, sync_flush=sync_flush
        )
        flush_lock = self.disk.lock(self.root / "postdate" / "flush.lock")
        self._flusher = Flusher(control, log, flush_lock, sync_flush=sync_flush)
        self.lookup = Lookup(log, parts.index, parts.queues, parts.table_of, self._reader.visible)
        #: Sends messages with idempotency keys.
        self.once = OnceSender(parts, self._appender, self._encoder, self._flusher.settle)
        self.traces = Traces(parts, self._appender, self._encoder, self._reader)
        self._changes = Changes(
            self._appender, self._encoder, self.lookup, log, parts.queues, self.clock,
            self._flusher.settle,
        )  # fmt: skip
        #: How messages that failed go on in their groups.
        self.chains = Chains(parts, self._changes, self.lookup, self.settings)
        self._hand_overs = HandOvers(parts, self._appender, self._queue_of, self._flusher.settle)
        self.bulk = BulkChanges(
            self._appender, self._encoder, log, self._hand_overs, self.clock, self._flusher.settle
        )
        self._retention = Retention(
            parts, self._appender, self._encoder, self._hand_overs, self.settings, self.root,
            self._flusher.flush, self._changes,
        )  # fmt: skip
        self._parked = ParkedList(parts.queues, parts.consume_queues, log, parts.table_of)
        self.outlook = Outlook(parts.queues, parts.table_of, self._reader.bounds_of)
        #: Rung at every commit.
        self.bell = control.bell("log")

    # -- coming and going -----------------------------------------------------------------------

    def close(self) -> None:
        """Leave the store; the last process out puts everything on the device. Repeatable."""
        if self._closed:
            return
        with self._appender.hold():
            self._closed = True
            self._appender.close()
            try:
                self._presence.leave(self._control, self._flusher.flush)
            finally:
                # Still under the append lock: whoever comes next sees nobody in.
                self._presence.close()
        for name in ("log", "levels", "wheel"):
            self._control.bell(name).ring()
        self._log.close()
        self._consume_queues.close()
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _queue_of(self, topic: str, queue_id: int) -> Queue:
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            with self._appender.hold():
                queue = self._queues.obtain(topic, queue_id)
        return queue

    # -- sending --------------------------------------------------------------------------------

    def new_ids(self, topic: str, now_ms: int, count: int) -> list[str]:
        """Ids for messages of a topic: 32 lower-case hex digits in UUIDv7's layout."""
        return make_ids(topic, now_ms, self.disk.random_bytes(8 * count))

    def new_id(self, topic: str, now_ms: int) -> str:
        """One id; see `new_ids`."""
        return self.new_ids(topic, now_ms, 1)[0]

    def send(self, messages: Sequence[Outgoing]) -> list[Placed]:
        """Store messages; returns where each lies once readers may see it.

        Raises `StoreFull`, `StoreFailed` or `StoreClosing` (nothing of the hold that failed is
        stored; holds before it are), and `MessageIllegal` before anything is stored.
        """
        if self._closed:
            raise StoreClosing
        placed, end = self._sender.send(messages)
        self._flusher.settle(end)
        return placed

    # -- changes of one message -----------------------------------------------------------------

    def find(self, message_id: str) -> MessageView | None:
        """What is known of a message before and at its first hand-over; None if there is none."""
        return self._changes.find(message_id)

    def cancel(
        self, message_id: str, *, by: str | None, reason: str | None = None,
        expected_version: int | None = None,
    ) -> Decision:  # fmt: skip
        """``cancelled``, ``already_cancelled``, or as `move`: why not."""
        return self._changes.cancel(
            message_id, by=by, reason=reason, expected_version=expected_version
        )

    def restore(self, message_id: str, *, by: str | None) -> Decision:
        """``restored``, ``not_cancelled``, ``payload_gone`` or ``not_found``."""
        return self._changes.restore(message_id, by=by)

    def release(self, message_id: str, *, by: str | None) -> Decision:
        """``released``, ``not_parked``, ``payload_gone`` or ``not_found``."""
        return self._changes.release(message_id, by=by)

    def move(
        self, message_id: str, due_ms: int, *, by: str | None, expected_version: int | None = None
    ) -> Decision:
        """``moved``, ``too_late``, ``cancelled``, ``version_mismatch`` or ``not_found``."""
        return self._changes.move(message_id, due_ms, by=by, expected_version=expected_version)

    def parked(self, limit: int = 100) -> list[MessageView]:
        """Messages that could not be handed over and wait for an operator, oldest parking first."""
        views = (self.find(message_id) for message_id in self._parked.ids(self._reader.visible()))
        found = (view for view in views if view is not None and view.state == "parked")
        return [view for _, view in zip(range(limit), found, strict=False)]

    # -- schedule -------------------------------------------------------------------------------

    @property
    def topic_gate(self) -> TopicGate | None:
        """Says why a topic's queue may not receive now (deleted), or None; asked at hand-over."""
        return self._hand_overs.topic_gate

    @topic_gate.setter
    def topic_gate(self, gate: TopicGate | None) -> None:
        self._hand_overs.topic_gate = gate

    def keep_leased(self, leased_from: Callable[[], int | None]) -> None:
        """Let no segment go at or behind which a lease points; asked under the append lock."""
        self._retention.leased_from = leased_from

    def hand_over(
        self, topic: str, queue_id: int, queue_offsets: npt.NDArray[np.int64]
    ) -> HandOver:
        """Deliver waiting messages of a holding queue, in the order given; see `handover`."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or not len(queue_offsets):
            return HandOver(0)
        if self._closed:
            raise StoreClosing
        return self._hand_overs.hand_over(queue, queue_offsets)

    def park(self, topic: str, queue_id: int, queue_offset: int, *, reason: str) -> bool:
        """Put a waiting message aside, visibly; False if it no longer waits."""
        unit = self.read_units(topic, queue_id, queue_offset, 1)
        if not len(unit):
            return False
        place = int(unit["log_offset"][0]), int(unit["size"][0])
        return self._changes.park(topic, queue_id, queue_offset, place, reason=reason)

    def schedule(self, topic: str, queue_id: int, start: int, stop: int) -> ScheduleSlice:
        """A stretch of a holding queue's schedule table, clipped to what can be read."""
        return self._reader.schedule(topic, queue_id, start, stop)

    def schedule_at(
        self, topic: str, queue_id: int, queue_offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Settled words and due times (ms) at any offsets; (-1, 0) for what cannot be read."""
        return self._reader.schedule_at(topic, queue_id, queue_offsets)

    def first_unsettled(self, topic: str, queue_id: int, start: int = 0) -> int:
        """The first offset from `start` on that waits (a level's live delayOffset); max if none."""
        return self._reader.first_unsettled(topic, queue_id, start)

    def count_waiting(self, topic: str, queue_id: int, start: int = 0) -> int:
        """How many messages of a holding queue wait."""
        return self._reader.count_waiting(topic, queue_id, start)

    def topic_name(self, topic_number: int) -> str:
        """The topic that a schedule table's number means."""
        return self._queues.topic_of(topic_number)

    def note_wake(self, loop: str, at_ms: int) -> None:
        """Say when a loop means to wake; an earlier due time rings its bell."""
        self._control.set(_WAKE_WORDS[loop], at_ms)

    def loop_bell(self, loop: str) -> Bell:
        """A doorbell by name, see `control.BELLS`: of a loop, or of leases that were given back."""
        return self._control.bell(loop)

    # -- reading --------------------------------------------------------------------------------

    def visible(self) -> int:
        """The log offset that readers may look up to."""
        return self._reader.visible()

    def topics(self) -> list[str]:
        """Every topic that anything was ever written to, system topics included."""
        return self._queues.topics()

    def queue_ids(self, topic: str) -> Sequence[int]:
        """The queues of a topic that anything was written to, in order."""
        return self._queues.queue_ids(topic)

    def queue_tips(self) -> npt.NDArray[np.int64]:
        """The next offset of every queue, by its number; the last ones may not be readable yet."""
        return self._queues.tips()

    def queue_place(self, number: int) -> tuple[str, int]:
        """Topic and queue of a queue's number."""
        queue = self._queues.queues[number]
        return queue.topic, queue.queue_id

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """The offsets that can be read; (0, 0) for a queue that nothing was written to."""
        return self._reader.bounds(topic, queue_id)

    def read_units(self, topic: str, queue_id: int, start: int, count: int) -> npt.NDArray[np.void]:
        """ConsumeQueue units from `start` on, native, clipped to what readers may see."""
        return self._reader.units(topic, queue_id, start, count)

    def read_records(self, units: npt.NDArray[np.void]) -> list[bytes | None]:
        """The records of units, raw, in the order given; None for one that is damaged or gone."""
        return self._reader.records(units)

    def read_leading(self, log_offsets: npt.NDArray[np.int64]) -> Leading:
        """What records continue, their due times and ids, as columns; see `leading`."""
        return self._reader.leading(log_offsets)

    def read_record(self, log_offset: int) -> Record:
        """The record at a log offset; raises `RecordGone` or `RecordCorrupt`."""
        return self._reader.record(log_offset)

    # -- keeping house --------------------------------------------------------------------------

    def housekeep(self, now_ms: int) -> Housekept:
        """One bounded step of retention and renewing; see `retention`."""
        return self._retention.step(now_ms)
