"""Tracing: leaves a journal record of each call that received or acknowledged something.

One record a call (see `traces`), written like an immediate message of the journal but counted as
``traces``. It never fails the call: what cannot be written (no room above what is kept back, a
store that closes) is counted as ``traces_lost``. Nothing waits for its flush.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.append import Appender
from queues.store.batch import Batch
from queues.store.control import counter_word
from queues.store.deliveries import HandedOut
from queues.store.encode import Encoder
from queues.store.errors import RecordGone, StoreError
from queues.store.leading import leading_of
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
    ROW,
    TRACE_QUEUE_ID,
    TraceEvent,
    encode_trace,
    row_of,
    row_of_parts,
    rows_of,
)

#: Messages handed out by this process whose acks need not read them again: some 5 MB.
_REMEMBERED_MAX = 65_536
#: What a receive takes in memory beside its messages, in messages.
_RECEIVE_WEIGHT = 5
#: Of more messages the fields are cut out as columns.
_ONE_BY_ONE_MAX = 48
#: So many units are cheaper read together than asked for apart.
_SPREAD_MAX = 4096
_RETRY_TOPIC = b"\x02RETRY_TOPIC\x01"


class Acked(NamedTuple):
    """What was acknowledged of one queue."""

    topic: str
    queue_id: int
    offsets: list[int]
    #: From 1.
    attempts: list[int]


class _Handed(NamedTuple):
    """What a receive handed out of one queue."""

    offsets: list[int]
    attempts: list[int]
    rows: bytes

    @property
    def weight(self) -> int:
        """What it takes in memory, in messages."""
        return len(self.offsets) + _RECEIVE_WEIGHT


class Traces:
    """Traces of one store."""

    def __init__(self, parts: Parts, appender: Appender, encoder: Encoder, reader: Reader) -> None:
        self._parts, self._appender = parts, appender
        self._encoder, self._reader = encoder, reader
        self._single = _SingleTrace(parts, appender, encoder)
        #: What receives handed out here, by group, topic, queue and first offset; oldest first.
        self._remembered: dict[tuple[str, str, int, int], _Handed] = {}
        self._remembered_weight = 0
        self._mutex = threading.Lock()

    def received(self, group: str, queues: Iterable[HandedOut]) -> None:
        """Trace what was handed out."""
        told: dict[str, list[bytes]] = {}
        for topic, queue_id, records, offsets, attempts in queues:
            if topic.startswith(RETRY_PREFIX):
                for record, row in zip(records, map(row_of, records, attempts), strict=True):
                    if row is not None:
                        told.setdefault(_origin(record) or topic, []).append(row)
                continue
            if len(records) > _ONE_BY_ONE_MAX:
                rows = rows_of(leading_of(records), attempts)
            else:
                rows = b"".join(filter(None, map(row_of, records, attempts)))
            if rows:
                told.setdefault(topic, []).append(rows)
                self._remember(group, topic, queue_id, _Handed(offsets, attempts, rows))
        self._leave("received", group, told)

    def _remember(self, group: str, topic: str, queue_id: int, handed: _Handed) -> None:
        """Keep what an ack will be told of; the oldest is forgotten first."""
        if len(handed.rows) != len(handed.offsets) * ROW.itemsize:
            return
        with self._mutex:
            key = group, topic, queue_id, handed.offsets[0]
            self._forget(key)
            self._remembered[key] = handed
            self._remembered_weight += handed.weight
            while self._remembered_weight > _REMEMBERED_MAX:
                self._forget(next(iter(self._remembered)))

    def _forget(self, key: tuple[str, str, int, int]) -> _Handed | None:
        handed = self._remembered.pop(key, None)
        if handed is not None:
            self._remembered_weight -= handed.weight
        return handed

    def acked(self, group: str, queues: Iterable[Acked]) -> None:
        """Trace what was acknowledged: what was handed out here is remembered, the rest is read."""
        told: dict[str, list[bytes]] = {}
        for queue in queues:
            with self._mutex:
                handed = self._forget((group, queue.topic, queue.queue_id, queue.offsets[0]))
            if handed and handed[:2] == (queue.offsets, queue.attempts):
                told.setdefault(queue.topic, []).append(handed.rows)
                continue
            for topic, rows in self._read(queue):
                told.setdefault(topic, []).append(rows)
        self._leave("acked", group, told)

    def _read(self, queue: Acked) -> Iterator[tuple[str, bytes]]:
        """What there is to say of messages in a queue, by the topic they were sent to."""
        places = self._places(queue)
        if len(places) > _ONE_BY_ONE_MAX and not queue.topic.startswith(RETRY_PREFIX):
            there = places >= 0
            attempts = list(compress(queue.attempts, there))
            if rows := rows_of(self._reader.leading(places[there]), attempts):
                yield queue.topic, rows
            return
        for place, attempt in zip(places.tolist(), queue.attempts, strict=True):
            if place >= 0 and (told := self._message(place, queue.topic, attempt)):
                yield told

    def _places(self, queue: Acked) -> npt.NDArray[np.int64]:
        """The log offsets of a queue's messages; -1 for what is gone."""
        offsets = np.array(queue.offsets)
        first, last = int(offsets.min()), int(offsets.max())
        if last - first < _SPREAD_MAX:  # Neighbours mostly, as a receive gave them.
            return self._near(queue, offsets, first, last + 1)
        return np.concatenate(
            [self._near(queue, np.array([one]), one, one + 1) for one in queue.offsets]
        )

    def _near(
        self, queue: Acked, offsets: npt.NDArray[np.int64], first: int, stop: int
    ) -> npt.NDArray[np.int64]:
        topic, queue_id, reader = queue.topic, queue.queue_id, self._reader
        start = max(first, reader.bounds(topic, queue_id).min_offset)
        units = reader.units(topic, queue_id, start, max(0, stop - start))
        places, numbers = np.full(len(offsets), -1), offsets - start
        there = (numbers >= 0) & (numbers < len(units))
        if reader.bounds(topic, queue_id).min_offset <= start:  # Retention did not go by.
            places[there] = units["log_offset"][numbers[there]]
        return places

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

    def _leave(self, event: TraceEvent, group: str, rows: Mapping[str, Sequence[bytes]]) -> None:
        if not rows:
            return
        try:
            self._write(event, encode_trace(event, group.partition(SEPARATOR)[0], rows))
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
