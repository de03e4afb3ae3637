"""A message as it is looked at, changed and listed; what will come due; bulk changes."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from postdate.client.writing import read_bytes


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened to a message."""

    at: datetime
    at_ms: int
    event: str
    by: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class GroupState(Struct, frozen=True, kw_only=True):
    """How far one group is with a message."""

    group: str
    #: `ready`, `leased`, `acked`, `retrying`, `dead`, `redriven`, `cancelled`, `dropped`, or
    #: `expired`.
    state: str
    attempts: int
    next_attempt_at: datetime | None = None
    next_attempt_at_ms: int | None = None


class MessageSummary(Struct, frozen=True, kw_only=True):
    """A message without its body."""

    id: str
    topic: str
    queue: int
    #: `scheduled`, `ready`, `cancelled`, `parked`, `expired`.
    state: str
    kind: str
    due_at: datetime
    due_at_ms: int
    created_at: datetime
    created_at_ms: int
    version: int
    delivered_at: datetime | None = None
    delivered_at_ms: int | None = None
    lateness_ms: int | None = None
    delay_level: int | None = None
    reschedules: int = 0
    tag: str | None = None
    keys: list[str] = field(default_factory=list)
    parked_reason: str | None = None


class Message(MessageSummary, frozen=True, kw_only=True):
    """Everything that is known of a message."""

    body: Any = None
    encoding: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    groups: list[GroupState] = field(default_factory=list)
    timeline: list[Event] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return read_bytes(self.body, self.encoding)


class CancelOutcome(Struct, frozen=True):
    """What became of a cancel: `cancelled` or `already_cancelled`."""

    outcome: str


class MessagePage(Struct, frozen=True, kw_only=True):
    """A page of messages, and how many there are in all."""

    items: list[MessageSummary]
    next_page_token: str = ""
    #: Exact; None where counting on would have read too much.
    count: int | None = None
    count_at_least: int | None = None


class ForecastBucket(Struct, frozen=True, kw_only=True):
    """How many messages come due from `start` on, for a step."""

    start: datetime
    start_ms: int
    count: int


class Forecast(Struct, frozen=True, kw_only=True):
    """What will come due."""

    buckets: list[ForecastBucket]


class BulkBucket(Struct, frozen=True, kw_only=True):
    """How many messages come due from here to the next bucket, without and with the change."""

    start: datetime
    start_ms: int
    before: int
    after: int


class BulkEffect(Struct, frozen=True, kw_only=True):
    """What a bulk change does to the forecast, where it does something."""

    step_ms: int
    buckets: list[BulkBucket]


class BulkPlan(Struct, frozen=True, kw_only=True):
    """What a bulk change would do; it is carried out by its `plan_id`, within 15 minutes."""

    plan_id: str
    expires_at: datetime
    expires_at_ms: int
    #: Exact; None where counting on would have read too much.
    count: int | None = None
    count_at_least: int | None = None
    #: The first ones, in due order.
    sample: list[MessageSummary]
    #: What it does to the forecast.
    forecast: BulkEffect
