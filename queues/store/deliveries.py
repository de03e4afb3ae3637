"""What consuming is asked and answers: subscriptions, deliveries, and how a group stands."""

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Subscription:
    """A topic that a group consumes."""

    topic: str
    #: ``*`` or ``TagA || TagB``.
    tags: str = "*"


class Delivery(NamedTuple):
    """One message on lease (a tuple, for there are many: a frozen class takes thrice the time)."""

    #: The record's bytes as the log holds them.
    record: bytes
    topic: str
    queue_id: int
    queue_offset: int
    #: From 1.
    attempt: int
    #: What settles it.
    receipt: str
    #: Wall time, ms.
    lease_expires_ms: int


class HandedOut(NamedTuple):
    """What a receive hands out of one queue, one column a field."""

    topic: str
    queue_id: int
    #: As the log holds them.
    records: list[bytes]
    offsets: list[int]
    #: From 1.
    attempts: list[int]


@dataclass(slots=True)
class Received:
    """What a receive came back with."""

    deliveries: list[Delivery] = field(default_factory=list)
    #: Queues that hand out nothing because they have as many leases as they may.
    full: list[tuple[str, int]] = field(default_factory=list)
    #: Records that could not be read and were stepped over.
    damaged: int = 0
    #: More may be ready: another receive would not come back empty for lack of messages.
    more: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a group may expect."""

    #: A receive may find something now.
    ready: bool
    #: If not: when the first lease runs out, wall time in ms; None without leases.
    next_expiry_ms: int | None
