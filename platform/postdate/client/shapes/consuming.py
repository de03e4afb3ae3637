"""The answers of consuming: messages that are leased, what became of receipts, dead letters."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from postdate.client.writing import read_bytes


class ReceivedMessage(Struct, frozen=True, kw_only=True):
    """A message that is leased to this consumer until `lease_expires_at`."""

    id: str
    topic: str
    queue: int
    body: Any
    encoding: str | None = None
    tag: str | None = None
    keys: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    #: From 1.
    attempt: int
    #: What ack, retry, extend and release take.
    receipt: str
    due_at: datetime | None = None
    due_at_ms: int | None = None
    delivered_at: datetime
    delivered_at_ms: int
    lateness_ms: int | None = None
    lease_expires_at: datetime
    lease_expires_at_ms: int

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return read_bytes(self.body, self.encoding)


class FullQueue(Struct, frozen=True, kw_only=True):
    """A queue that has as many leases as it may."""

    topic: str
    queue: int


class Received(Struct, frozen=True, kw_only=True):
    """What was ready."""

    messages: list[ReceivedMessage]
    #: The group is paused.
    paused: bool = False
    #: Queues that hand out nothing because they have as many leases as they may.
    full: list[FullQueue] = field(default_factory=list)


class ReceiptResult(Struct, frozen=True, kw_only=True):
    """What became of one receipt.

    `outcome` is `acked`, `extended`, `released`, `retrying`, `dead`, `dropped`, `expired` or
    `invalid`, depending on what was asked.
    """

    receipt: str
    outcome: str
    next_attempt_at: datetime | None = None
    next_attempt_at_ms: int | None = None
    #: Of an extend: the old receipt is void.
    new_receipt: str | None = None
    lease_expires_at: datetime | None = None
    lease_expires_at_ms: int | None = None


class ReceiptResults(Struct, frozen=True):
    """One result for each receipt, in the order given."""

    results: list[ReceiptResult]


class Lease(Struct, frozen=True, kw_only=True):
    """A message that some consumer holds."""

    id: str
    consumer_id: str | None = None
    topic: str | None = None
    queue: int | None = None
    attempt: int | None = None
    since: datetime | None = None
    since_ms: int | None = None
    until: datetime | None = None
    until_ms: int | None = None


class LeasePage(Struct, frozen=True, kw_only=True):
    """A page of leases."""

    items: list[Lease]
    next_page_token: str = ""


class QueueLag(Struct, frozen=True, kw_only=True):
    """What waits for the group in one queue."""

    topic: str
    queue: int
    ready: int
    leased: int
    oldest_ready_at: datetime | None = None
    oldest_ready_at_ms: int | None = None


class Lag(Struct, frozen=True, kw_only=True):
    """What waits for the group."""

    queues: list[QueueLag]
    retrying: int = 0
    dead: int = 0
    #: False: `ready` is an estimate.
    ready_exact: bool = True

    @property
    def ready(self) -> int:
        """Over all queues."""
        return sum(queue.ready for queue in self.queues)

    @property
    def leased(self) -> int:
        """Over all queues."""
        return sum(queue.leased for queue in self.queues)


class Failure(Struct, frozen=True, kw_only=True):
    """One attempt that failed."""

    attempt: int
    at: datetime
    at_ms: int
    reason: str | None = None
    consumer_id: str | None = None


class Retry(Struct, frozen=True, kw_only=True):
    """A message that waits for its group's next attempt, or waited."""

    id: str
    topic: str
    #: `scheduled`, `ready`, `cancelled`, `parked`.
    state: str
    #: The attempt that comes by it.
    attempt: int
    due_at: datetime
    due_at_ms: int
    version: int
    delivered_at: datetime | None = None
    delivered_at_ms: int | None = None
    queue: int | None = None
    tag: str | None = None
    keys: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    #: Not in lists.
    body: Any = None
    encoding: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return read_bytes(self.body, self.encoding)


class RetryPage(Struct, frozen=True, kw_only=True):
    """A page of waiting retries."""

    items: list[Retry]
    next_page_token: str = ""
    count: int | None = None
    count_at_least: int | None = None


class Death(Struct, frozen=True, kw_only=True):
    """An earlier death of a message that was redriven."""

    died_at: datetime
    died_at_ms: int
    attempts: int
    reason: str | None = None
    redriven_at: datetime | None = None
    redriven_at_ms: int | None = None
    redriven_by: str | None = None


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A message that its group gave up."""

    id: str
    topic: str
    died_at: datetime
    died_at_ms: int
    #: Deliveries that failed, since it was sent or last redriven.
    failure_count: int
    #: Why the last one failed.
    reason: str | None = None
    group: str | None = None
    queue: int | None = None
    created_at: datetime | None = None
    created_at_ms: int | None = None
    redriven_at: datetime | None = None
    redriven_at_ms: int | None = None
    redriven_by: str | None = None
    tag: str | None = None
    keys: list[str] = field(default_factory=list)
    #: From here on not in lists.
    properties: dict[str, str] = field(default_factory=dict)
    body: Any = None
    encoding: str | None = None
    failures: list[Failure] = field(default_factory=list)
    #: Earlier deaths, oldest first.
    lineage: list[Death] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return read_bytes(self.body, self.encoding)


class DeadLetterPage(Struct, frozen=True, kw_only=True):
    """A page of dead letters."""

    items: list[DeadLetter]
    next_page_token: str = ""
    count: int | None = None
    count_at_least: int | None = None


class ReasonCount(Struct, frozen=True, kw_only=True):
    """The dead letters of one reason."""

    count: int
    reason: str | None = None
    sample_id: str | None = None
    first_died_at: datetime | None = None
    first_died_at_ms: int | None = None
    last_died_at: datetime | None = None
    last_died_at_ms: int | None = None


class ReasonPage(Struct, frozen=True, kw_only=True):
    """Dead letters by reason, the most frequent first."""

    items: list[ReasonCount]
    #: False: only the newest were counted.
    exact: bool = True


class Purged(Struct, frozen=True, kw_only=True):
    """How many were discarded, or the operation that goes on doing so."""

    discarded: int | None = None
    id: str | None = None
    state: str | None = None


class RedriveResult(Struct, frozen=True, kw_only=True):
    """What became of one dead letter: `redriven`, `already_redriven`, `in_progress`, …"""

    id: str
    outcome: str


class Redrive(Struct, frozen=True, kw_only=True):
    """What a redrive did, would do (a dry run), or began (an operation)."""

    #: Of a dry run.
    count: int | None = None
    sample: list[Any] = field(default_factory=list)
    #: Of one that is done: per item.
    results: list[RedriveResult] = field(default_factory=list)
    #: Of one that goes on as an operation: its id and state.
    id: str | None = None
    state: str | None = None


class Outcome(Struct, frozen=True):
    """What became of it, in a word."""

    outcome: str
