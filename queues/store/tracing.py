"""Tracing: leaves a journal record of each call that received or acknowledged something.

One record a call (see `traces`), written like an immediate message of the journal but counted as
``traces``. It never fails the call: what cannot be written (no room above what is kept back, a
store that closes) is counted as ``traces_lost``. Nothing waits for its flush.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from queues.store.append import Appender
from queues.store.batch import Batch
from queues.store.control import counter_word
from queues.store.deliveries import Delivery
from queues.store.encode import Encoder
from queues.store.errors import RecordGone, StoreError
from queues.store.lookup import make_ids
from queues.store.members import SEPARATOR
from queues.store.messages import Kind, Outgoing
from queues.store.names import JOURNAL_TOPIC, RETRY_PREFIX
from queues.store.parts import Parts
from queues.store.properties import PD_EVENT
from queues.store.reading import Reader
from queues.store.single import SingleSender
from queues.store.traces import (
    TRACE_QUEUE_ID,
    Traced,
    TraceEvent,
    encode_trace,
    traced_of,
    traced_of_parts,
)

_RETRY_TOPIC = b"\x02RETRY_TOPIC\x01"


class Acked(NamedTuple):
    """What was acknowledged of one queue."""

    topic: str
    queue_id: int
    offsets: list[int]
    #: From 1.
    attempts: list[int]


class Traces:
    """Traces of one store."""

    def __init__(self, parts: Parts, appender: Appender, encoder: Encoder, reader: Reader) -> None:
        self._parts, self._appender = parts, appender
        self._encoder, self._reader = encoder, reader
        self._single = _SingleTrace(parts, appender, encoder)

    def received(self, group: str, deliveries: Iterable[Delivery]) -> None:
        """Trace what was handed out."""
        messages = []
        for one in deliveries:
            topic = one.topic
            if topic.startswith(RETRY_PREFIX):
                topic = _origin(one.record) or topic
            messages.append(traced_of(one.record, topic, one.attempt))
        self._leave("received", group, messages)

    def acked(self, group: str, queues: Iterable[Acked]) -> None:
        """Trace what was acknowledged; the records say when it was due."""
        messages: list[Traced | None] = []
        for queue in queues:
            messages += self._messages(queue)
        self._leave("acked", group, messages)

    def _messages(self, queue: Acked) -> list[Traced | None]:
        first, last = min(queue.offsets), max(queue.offsets)
        spread = last - first + 1
        if spread <= 4 * len(queue.offsets):  # Mostly neighbours, as a receive gave them.
            units = self._reader.units(queue.topic, queue.queue_id, first, spread)
            places = units["log_offset"].tolist()
            found = [
                places[at] if (at := offset - first) < len(places) else -1
                for offset in queue.offsets
            ]
        else:
            found = [self._place(queue, offset) for offset in queue.offsets]
        is_retry = queue.topic.startswith(RETRY_PREFIX)
        return [
            self._message(place, queue.topic, attempt, is_retry=is_retry)
            for place, attempt in zip(found, queue.attempts, strict=True)
            if place >= 0
        ]

    def _place(self, queue: Acked, offset: int) -> int:
        units = self._reader.units(queue.topic, queue.queue_id, offset, 1)
        return int(units["log_offset"][0]) if len(units) else -1

    def _message(self, place: int, topic: str, attempt: int, *, is_retry: bool) -> Traced | None:
        """One message, read at its place; its body is passed over."""
        log = self._parts.log
        try:
            head = log.read(place, 88)
            body_end = 88 + int.from_bytes(head[84:88], "big")
            rest = int.from_bytes(head[:4], "big") - body_end if is_retry else 256
            behind = log.read(place + body_end, max(rest, 256))
        except RecordGone:
            return None
        if is_retry:
            attempt += int.from_bytes(head[72:76], "big")
            topic = _origin(behind) or topic
        return traced_of_parts(head, behind, topic, attempt)

    def _leave(self, event: TraceEvent, group: str, messages: Sequence[Traced | None]) -> None:
        told = [one for one in messages if one is not None]
        if not told:
            return
        try:
            self._write(event, encode_trace(event, group.partition(SEPARATOR)[0], told))
        except StoreError:
            self._lose()

    def _write(self, event: TraceEvent, body: bytes) -> None:
        now_ms = self._parts.clock.now_ms()
        (message_id,) = make_ids(JOURNAL_TOPIC, now_ms, self._parts.disk.random_bytes(8))
        message = Outgoing(
            JOURNAL_TOPIC, TRACE_QUEUE_ID, message_id, body, now_ms, properties={PD_EVENT: event}
        )
        if self._single.send(message, now_ms) is None:  # Something is to be made first.
            record, row = self._encoder.send(message, now_ms)
            self._appender.write(Batch([record], [row]), "traces", privileged=False)

    def _lose(self) -> None:
        try:
            with self._appender.hold():
                self._parts.control.count("traces_lost")
        except StoreError:
            return  # It closes; nobody counts any more.


class _SingleTrace(SingleSender):
    """The short way for one record, counted as what it is."""

    counted: Mapping[Kind, tuple[int, ...]] = {"I": (counter_word("traces"),)}


def _origin(text: bytes) -> str | None:
    """The topic that a retried message was sent to."""
    at = text.rfind(_RETRY_TOPIC)
    if at < 0:
        return None
    start = at + len(_RETRY_TOPIC)
    return text[start : text.index(b"\x02", start)].decode()
