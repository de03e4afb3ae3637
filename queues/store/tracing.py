"""Tracing: leaves a journal record of each call that received or acknowledged something.

One record a call (see `traces`), written like an immediate message of the journal but counted as
``traces``. It never fails the call: what cannot be written (no room above what is kept back, a
store that closes) is counted as ``traces_lost``. Nothing waits for its flush.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
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
    BEHIND_BODY,
    TRACE_QUEUE_ID,
    TraceEvent,
    encode_trace,
    row_of,
    row_of_parts,
    with_attempt,
)

#: Messages handed out by this process whose acks need not read them again: some 17 MB.
_REMEMBERED_MAX = 65_536
#: A topic, a queue of it, and an offset there.
Handed = tuple[str, int, int]
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
        #: The rows of what was handed out here.
        self._remembered: dict[Handed, bytes] = {}
        self._mutex = threading.Lock()

    def received(self, group: str, deliveries: Iterable[Delivery]) -> None:
        """Trace what was handed out."""
        rows_of: dict[str, list[bytes]] = {}
        known: dict[Handed, bytes] = {}
        for one in deliveries:
            row = row_of(one.record, one.attempt)
            if row is None:
                continue
            topic = one.topic
            if topic.startswith(RETRY_PREFIX):
                topic = _origin(one.record) or topic
            else:
                known[topic, one.queue_id, one.queue_offset] = row
            rows_of.setdefault(topic, []).append(row)
        self._remember(known)
        self._leave("received", group, rows_of)

    def _remember(self, known: Mapping[Handed, bytes]) -> None:
        """Keep what an ack will be told of; the oldest is forgotten first."""
        with self._mutex:
            kept = self._remembered
            kept.update(known)
            if len(kept) > _REMEMBERED_MAX:
                for old in list(islice(kept, len(kept) - _REMEMBERED_MAX // 2)):
                    del kept[old]

    def acked(self, group: str, queues: Iterable[Acked]) -> None:
        """Trace what was acknowledged: what was handed out here is remembered, the rest is read."""
        rows_of: dict[str, list[bytes]] = {}
        for queue in queues:
            rows = self._recall(queue)
            if rows:
                rows_of.setdefault(queue.topic, []).extend(rows)
            else:
                for topic, row in self._read(queue):
                    rows_of.setdefault(topic, []).append(row)
        self._leave("acked", group, rows_of)

    def _recall(self, queue: Acked) -> list[bytes]:
        """What is remembered of all of them; nothing unless it is all of them."""
        remembered, topic, queue_id = self._remembered.get, queue.topic, queue.queue_id
        rows = [remembered((topic, queue_id, offset)) for offset in queue.offsets]
        return [
            with_attempt(row, attempt)
            for row, attempt in zip(rows, queue.attempts, strict=True)
            if row is not None
        ] if None not in rows else []  # fmt: skip

    def _read(self, queue: Acked) -> Iterator[tuple[str, bytes]]:
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
        for place, attempt in zip(found, queue.attempts, strict=True):
            if place >= 0 and (told := self._message(place, queue.topic, attempt)):
                yield told

    def _place(self, queue: Acked, offset: int) -> int:
        units = self._reader.units(queue.topic, queue.queue_id, offset, 1)
        return int(units["log_offset"][0]) if len(units) else -1

    def _message(self, place: int, topic: str, attempt: int) -> tuple[str, bytes] | None:
        """One message, read at its place; its body is passed over."""
        log, is_retry = self._parts.log, topic.startswith(RETRY_PREFIX)
        try:
            head = log.read(place, 88)
            body_end = 88 + int.from_bytes(head[84:88], "big")
            rest = int.from_bytes(head[:4], "big") - body_end if is_retry else 0
            behind = log.read(place + body_end, max(rest, BEHIND_BODY))
        except RecordGone:
            return None
        if is_retry:
            attempt += int.from_bytes(head[72:76], "big")
            topic = _origin(behind) or topic
        row = row_of_parts(head, behind, attempt)
        return None if row is None else (topic, row)

    def _leave(self, event: TraceEvent, group: str, rows_of: Mapping[str, Sequence[bytes]]) -> None:
        if not rows_of:
            return
        try:
            self._write(event, encode_trace(event, group.partition(SEPARATOR)[0], rows_of))
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
