"""What goes in and what comes out: the values that the store's callers see."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from queues.store.record import Record

Kind = Literal["I", "L", "T"]
State = Literal["scheduled", "ready", "cancelled", "parked"]


class Outgoing(NamedTuple):
    """One message as a sender asks for it.

    A named tuple, as `Placed` is, because a thousand come in one request: it is made in a third of
    the time of a frozen dataclass.
    """

    topic: str
    #: The queue of the topic, from 0.
    queue_id: int
    #: 32 lower-case hex digits; see `Store.new_id`.
    unique_id: str
    body: bytes
    #: When the request was read, ms since the epoch (BORNTIMESTAMP).
    born_ms: int
    tag: str | None = None
    keys: tuple[str, ...] = ()
    #: The user's own properties.
    properties: Mapping[str, str] = MappingProxyType({})
    #: 1 to the table's last: wait in that delay level. 0: none.
    level: int = 0
    #: When to deliver, ms since the epoch; None or a time that has passed: at once.
    due_ms: int | None = None
    #: Opaque to the store (FLAG).
    flag: int = 0
    #: Who sent it, for the trace in the log; None to leave none.
    by: str | None = None


class Placed(NamedTuple):
    """Where a sent message lies now, and until when."""

    log_offset: int
    #: Of the record that was written: a waiting message's is that of its holding queue.
    queue_offset: int
    kind: Kind
    #: The promised time, ms; of an immediate message, its born time.
    due_ms: int
    #: STORETIMESTAMP.
    store_ms: int


class Once(NamedTuple):
    """A message that is to be stored once, however often it is sent."""

    message: Outgoing
    #: Printable ASCII characters; None for a message without one, in a batch with others.
    key: str | None
    #: 32 hex digits of what was asked for: a repeat has the same.
    fingerprint: str


class Repeat(NamedTuple):
    """What an earlier message with the same idempotency key became when it was sent."""

    unique_id: str
    queue_id: int
    kind: Kind
    #: The delay level of a level message, else 0.
    level: int
    due_ms: int
    born_ms: int
    #: Of that message: another one than the repeat's says that the key was used for something else.
    fingerprint: str


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The offsets of a queue that can be read: min (inclusive) to max (exclusive)."""

    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that could not be handed over."""

    #: Of the holding queue.
    queue_offset: int
    reason: str
    #: True: it never can be; park it. False: try again.
    permanent: bool


@dataclass(frozen=True, slots=True)
class HandOver:
    """What became of the messages that were to be handed over."""

    #: How many were.
    handed: int
    #: Offsets that are not due yet by the lock's clock reading.
    not_due: tuple[int, ...] = ()
    #: Offsets that someone else had settled before.
    settled: tuple[int, ...] = ()
    failed: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a message."""

    at_ms: int
    #: ``sent``, ``cancelled``, ``restored``, ``moved``, ``parked``, ``released``, ``renewed``,
    #: ``delivered``.
    event: str
    by: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageView:
    """Everything that the store knows of a message before and at its first hand-over."""

    id: str
    #: The real topic and queue.
    topic: str
    queue_id: int
    state: State
    kind: Kind
    #: The delay level of a level message, else None.
    level: int | None
    due_ms: int
    #: BORNTIMESTAMP.
    created_ms: int
    delivered_ms: int | None
    #: Offset in the real topic's queue, once delivered.
    delivered_offset: int | None
    #: Raised by every move.
    version: int
    reschedules: int
    parked_reason: str | None
    #: The newest holding record, or the delivered one.
    record: Record
    timeline: tuple[Event, ...]
    #: The newest holding unit (topic, queue, offset), its record and its settled word.
    held_topic: str = ""
    held_queue_id: int = 0
    held_offset: int = -1
    settled_word: int = 0
    #: The message itself was removed or is damaged; what is told here is from the journal.
    payload_gone: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a change that was asked for: what is true now."""

    #: ``cancelled``, ``already_cancelled``, ``too_late``, ``restored``, ``not_cancelled``,
    #: ``payload_gone``, ``moved``, ``released``, ``not_parked``, ``version_mismatch``,
    #: ``not_found``.
    outcome: str
    view: MessageView | None = None
