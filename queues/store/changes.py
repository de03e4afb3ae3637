"""Cancel, restore, move, release, park: changes of one message, decided under the append lock.

Each looks at the message without the lock, prepares the record that would settle its holding unit,
and writes it on the condition that the unit's settled word is still what was seen. If someone else
was faster, it looks again. So every answer is the truth, whatever else happens at the moment.
"""

import json
from collections.abc import Callable

from queues.store.append import Appender
from queues.store.batch import Batch, Source
from queues.store.clock import Clock
from queues.store.commitlog import CommitLog
from queues.store.control import COUNTERS
from queues.store.encode import Encoder
from queues.store.errors import RecordGone
from queues.store.held import Held, remains, take_apart
from queues.store.lookup import Lookup
from queues.store.messages import Decision, MessageView
from queues.store.names import SCHEDULE_TOPIC
from queues.store.parking import held_place
from queues.store.queuetable import Queue, QueueTable
from queues.store.scan import read_whole

#: Each round that is lost was won by someone else, so this many in a row do not happen.
_ROUNDS_MAX = 100


class Changes:
    """Changes of single messages of one store."""

    def __init__(
        self, appender: Appender, encoder: Encoder, lookup: Lookup, log: CommitLog,
        queues: QueueTable, clock: Clock, settle_flush: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.appender, self.encoder, self._lookup = appender, encoder, lookup
        self._log, self._queues, self._clock = log, queues, clock
        self.settle_flush = settle_flush

    def find(self, message_id: str, group: str | None = None) -> MessageView | None:
        """What is known of a message, or of its retry in a group.

        A miss is looked up again under the append lock.
        """
        found = self._find(message_id, group)
        if found is None:
            with self.appender.hold():
                found = self._find(message_id, group)
        return found

    def _find(self, message_id: str, group: str | None) -> MessageView | None:
        if group is None:
            return self._lookup.find(message_id)
        return self._lookup.find_retry(group, message_id)

    def cancel(
        self, message_id: str, *, by: str | None, reason: str | None = None,
        expected_version: int | None = None, group: str | None = None,
    ) -> Decision:  # fmt: skip
        """See that no consumer ever gets the message (of the group), if it is not too late."""
        answers = {"ready": "too_late", "cancelled": "already_cancelled"}

        def change(view: MessageView, held: Held, source: Source, batch: Batch) -> str:
            if expected_version is not None and view.version != expected_version:
                return "version_mismatch"
            body = json.dumps({"reason": reason} if reason else {}).encode()
            self.encoder.journal(
                batch, held, source, _held_at(view), b"C",
                event="cancelled", by=by, body=body, now_ms=self._clock.now_ms(),
            )  # fmt: skip
            return "cancelled"

        return self._decide(message_id, answers, change, group, needs_payload=False)

    def restore(self, message_id: str, *, by: str | None) -> Decision:
        """Take a cancel back; past its due time the message is due from now."""
        answers = dict.fromkeys(("scheduled", "ready", "parked"), "not_cancelled")

        def change(view: MessageView, held: Held, source: Source, batch: Batch) -> str:
            self.encoder.hold_again(
                batch, held, source, view.record.log_offset, b"S",
                due_ms=max(held.due_ms, self._clock.now_ms()), kind=held.kind,
                version=held.version, by=by,
            )  # fmt: skip
            return "restored"

        return self._decide(message_id, answers, change)

    def release(self, message_id: str, *, by: str | None) -> Decision:
        """Let a parked message go on; it keeps its due time."""
        answers = dict.fromkeys(("scheduled", "ready", "cancelled"), "not_parked")

        def change(view: MessageView, held: Held, source: Source, batch: Batch) -> str:
            self.encoder.hold_again(
                batch, held, source, view.record.log_offset, b"S",
                due_ms=held.due_ms, kind=held.kind, version=held.version, by=by,
            )  # fmt: skip
            return "released"

        return self._decide(message_id, answers, change)

    def move(
        self, message_id: str, due_ms: int, *, by: str | None, expected_version: int | None = None,
        group: str | None = None,
    ) -> Decision:  # fmt: skip
        """Give the message another due time; a parked one is released with it."""
        answers = {"ready": "too_late", "cancelled": "cancelled"}

        def change(view: MessageView, held: Held, source: Source, batch: Batch) -> str:
            if expected_version is not None and view.version != expected_version:
                return "version_mismatch"
            self.encoder.hold_again(
                batch, held, source, view.record.log_offset, b"M",
                due_ms=due_ms, kind=b"T", version=held.version + 1, by=by,
            )  # fmt: skip
            return "moved"

        return self._decide(message_id, answers, change, group)

    def _decide(
        self,
        message_id: str,
        answers: dict[str, str],
        change: Callable[[MessageView, Held, Source, Batch], str],
        group: str | None = None,
        *,
        needs_payload: bool = True,
    ) -> Decision:
        for _ in range(_ROUNDS_MAX):
            view = self.find(message_id, group)
            if view is None:
                return Decision("not_found")
            if view.state in answers:
                self.settle_flush(view.record.log_offset + view.record.size)
                return Decision(answers[view.state], view)
            if view.payload_gone and (needs_payload or view.held_offset < 0):
                return Decision("payload_gone", view)
            outcome, made_at = self._try(view, change)
            if outcome is not None:
                if made_at is None:
                    return Decision(outcome, self.find(message_id, group) or view)
                made = self._lookup.left_by(made_at, message_id, group)
                return Decision(outcome, made or view)
        raise AssertionError(f"message {message_id} was changed by others {_ROUNDS_MAX} times")

    def _try(
        self, view: MessageView, change: Callable[[MessageView, Held, Source, Batch], str]
    ) -> tuple[str | None, int | None]:
        """Write the change; None when the message was changed by someone else meanwhile.

        The second is the log offset of the record that was written, if one was.

        What that was may not be flushed yet: it is, before anybody looks again. Raises
        `ScheduleDamaged` when nothing changed it and its settled word leads beyond the log.
        """
        queue = self._queues.find(view.held_topic, view.held_queue_id)
        assert queue is not None
        batch = Batch()
        try:
            held = self._held_of(view)
        except RecordGone:
            return "payload_gone", None
        source = Source(queue, view.held_offset, view.settled_word)
        outcome = change(view, held, source, batch)
        if not batch.rows:
            return outcome, None
        counter = outcome if outcome in COUNTERS else "restored"
        written = self.appender.write(batch, counter, privileged=True)
        self.settle_flush(written.end)
        if written.entries.sizes:
            return outcome, int(written.entries.log_offsets[0])
        with self.appender.hold():
            self._lookup.check_settled(queue, view.held_offset, self.appender.finish())
        return None, None

    def _held_of(self, view: MessageView) -> Held:
        if view.payload_gone:
            return remains(view.due_ms, view.topic, view.level or 0, view.id)
        return take_apart(self._log.read(view.record.log_offset, view.record.size))

    def park(
        self, topic: str, queue_id: int, queue_offset: int, place: tuple[int, int], *, reason: str
    ) -> bool:
        """Put a waiting message aside that cannot be handed over; False if it no longer waits."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return False
        batch, told = Batch(), {"reason": reason}
        raw = read_whole(self._log, *place)
        if raw is not None:
            held = take_apart(raw)
        else:
            held = self._remains(queue, queue_offset, place)
            told |= held_place(queue, queue_offset)
        self.encoder.journal(
            batch, held, Source(queue, queue_offset, 0), place[0], b"P",
            event="parked", by=None, body=json.dumps(told).encode(),
            now_ms=self._clock.now_ms(),
        )  # fmt: skip
        written = self.appender.write(batch, "parked", privileged=True)
        self.settle_flush(written.end)
        return bool(written.entries.sizes)

    def _remains(self, queue: Queue, queue_offset: int, place: tuple[int, int]) -> Held:
        """What the schedule table, the index and legible bytes know of a damaged record."""
        due_ms, number = self._lookup.due_of(queue, queue_offset)
        topic = self._queues.topic_of(number)
        unique_id = self._lookup.id_of_damaged(queue, topic, due_ms, *place)
        level = queue.queue_id + 1 if queue.topic == SCHEDULE_TOPIC else 0
        return remains(due_ms, topic, level, unique_id)


def _held_at(view: MessageView) -> int:
    """Log offset of the holding record; the parking record of one that is damaged names it."""
    if view.payload_gone:
        return int(view.record.properties["PD_FROM"][1:])
    return view.record.log_offset
