"""Sending: messages into holds of the append lock, and what becomes of each."""

from collections.abc import Sequence
from functools import partial

from queues.store.append import Appender, Written
from queues.store.batch import Batch, Sealed, numbers
from queues.store.composing import Composer
from queues.store.encode import Encoder
from queues.store.errors import StoreFull
from queues.store.limits import HOLD_BYTES_MAX, HOLD_RECORDS_MAX, VECTOR_RECORDS_MIN
from queues.store.messages import Kind, Outgoing, Placed
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.parts import Parts
from queues.store.single import SingleSender

#: `Placed._make` without its look at the length, a third of its time.
_make = partial(tuple.__new__, Placed)
_KINDS: dict[str, Kind] = {SCHEDULE_TOPIC: "L", TIMER_TOPIC: "T"}
#: What a record takes beside its body, for cutting into holds.
_OVERHEAD_BYTES = 512


class Sender:
    """Sends messages of one store."""

    def __init__(
        self, parts: Parts, appender: Appender, encoder: Encoder, index_entries: int
    ) -> None:
        self._parts, self._appender, self._encoder = parts, appender, encoder
        self._composer = Composer(encoder)
        self._single = SingleSender(parts, appender, encoder)
        #: A hold's keys take at most half of an index file.
        self._entries_max = index_entries // 2

    def send(self, messages: Sequence[Outgoing]) -> tuple[list[Placed], int]:
        """Store messages; where each lies, and where the log then ends."""
        now_ms = self._parts.clock.now_ms()
        try:
            if len(messages) == 1:
                done = self._single.send(messages[0], now_ms)
                if done is not None:
                    return [done[0]], done[1]
            return self._send_many(messages, now_ms)
        except StoreFull:
            with self._appender.hold():
                self._parts.control.count("sends_refused", len(messages))
            raise

    def _send_many(self, messages: Sequence[Outgoing], now_ms: int) -> tuple[list[Placed], int]:
        placed: list[Placed] = []
        end = 0
        for batch in [self._composed(part, now_ms) for part in self._holds(messages)]:
            written = self._appender.write(batch, "sent", privileged=False)
            placed += placed_of(written)
            end = written.end
        return placed, end

    def _composed(self, messages: Sequence[Outgoing], now_ms: int) -> Batch | Sealed:
        sealed = None
        if len(messages) >= VECTOR_RECORDS_MIN:
            sealed = self._composer.compose(messages, now_ms)
        return self._encoder.sends(messages, now_ms) if sealed is None else sealed

    def _holds(self, messages: Sequence[Outgoing]) -> list[Sequence[Outgoing]]:
        """Cut the messages into what one hold may take."""
        body_bytes = sum([len(message.body) for message in messages])
        keys = sum([len(message.keys) for message in messages])
        count = len(messages)
        if (
            count <= HOLD_RECORDS_MAX
            and body_bytes + count * _OVERHEAD_BYTES <= HOLD_BYTES_MAX
            and count + keys <= self._entries_max
        ):
            return [messages]
        parts: list[Sequence[Outgoing]] = []
        first = size = entries = 0
        for number, message in enumerate(messages):
            size += len(message.body) + _OVERHEAD_BYTES
            entries += 1 + len(message.keys)
            full = size > HOLD_BYTES_MAX or entries > self._entries_max
            if number > first and (full or number - first >= HOLD_RECORDS_MAX):
                parts.append(messages[first:number])
                first, size = number, len(message.body) + _OVERHEAD_BYTES
                entries = 1 + len(message.keys)
        parts.append(messages[first:])
        return parts


def placed_of(written: Written) -> list[Placed]:
    """Where each record of a send lies."""
    entries = written.entries
    kinds = [_KINDS.get(queue.topic, "I") for queue in entries.queues]
    columns = map(
        numbers, (entries.log_offsets, entries.queue_offsets, entries.dues, entries.store_ms)
    )
    log_offsets, queue_offsets, dues, store_ms = columns
    rows = zip(log_offsets, queue_offsets, kinds, dues, store_ms, strict=True)
    return list(map(_make, rows))
