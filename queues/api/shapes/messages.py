"""The shapes of a message as it is looked at, changed, listed."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.api.shapes.sending import KindWord, Moment, StateWord


class TimelineEvent(Struct, kw_only=True):
    """One thing that happened to a message."""

    at: str
    at_ms: int
    event: str
    #: Who did it, where someone did.
    by: str | None
    detail: dict[str, Any]


class FailureShown(Struct, kw_only=True):
    """An attempt that failed."""

    attempt: int
    at: str
    at_ms: int
    reason: str | None
    consumer_id: str | None


class PlannedAttempt(Struct, kw_only=True):
    """An attempt that comes if all before it fail."""

    attempt: int
    #: What it waits after the failure before it, ms.
    delay_ms: int


class GroupState(Struct, kw_only=True):
    """How far one group is with a message."""

    group: str
    #: Of a broadcasting group: which of its consumers.
    consumer_id: str | UnsetType = UNSET
    state: Literal[
        "ready",
        "leased",
        "acked",
        "retrying",
        "dead",
        "redriven",
        "cancelled",
        "dropped",
        "expired",
    ]
    attempts: int
    next_attempt_at: str | None = None
    next_attempt_at_ms: int | None = None
    #: Since it was sent or redriven.
    failures: list[FailureShown] | UnsetType = UNSET
    #: The plan, as long as the group may still receive it.
    planned_attempts: list[PlannedAttempt] | UnsetType = UNSET


class MessageSummary(Struct, kw_only=True):
    """A message without its body."""

    id: str
    topic: str
    queue: int
    state: StateWord
    kind: KindWord
    delay_level: int | UnsetType = UNSET
    due_at: str
    due_at_ms: int
    created_at: str
    created_at_ms: int
    delivered_at: str | None
    delivered_at_ms: int | None
    lateness_ms: int | None
    version: int
    reschedules: int
    tag: str | None
    keys: list[str]
    parked_reason: str | UnsetType = UNSET
    #: The message itself was removed by retention or is damaged; only this is known of it.
    payload_gone: bool | UnsetType = UNSET


class MessageDetail(MessageSummary, kw_only=True):
    """Everything that is known of a message."""

    body: Any
    encoding: Literal["base64"] | UnsetType = UNSET
    properties: dict[str, str]
    groups: list[GroupState]
    timeline: list[TimelineEvent]


class Cancelled(Struct):
    """What became of a cancel."""

    outcome: Literal["cancelled", "already_cancelled"]


class MessageList(Struct, kw_only=True):
    """A page of messages, and how many there are in all."""

    items: list[MessageSummary]
    next_page_token: str
    #: Exact.
    count: int | UnsetType = UNSET
    #: There are at least so many; counting on would read too many messages.
    count_at_least: int | UnsetType = UNSET


class MessageQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which messages to list."""

    topic: str | None = None
    key: str | None = None
    tag: str | None = None
    state: StateWord | None = None
    kind: KindWord | None = None
    due_after: Moment | None = None
    due_before: Moment | None = None
    page_size: str | None = None
    page_token: str | None = None


class CancelQuery(Struct, forbid_unknown_fields=True):
    """Why it is cancelled, for the timeline."""

    reason: Annotated[str, Meta(max_length=1000)] | None = None


class PageQuery(Struct, forbid_unknown_fields=True):
    """Which page of a list."""

    page_size: str | None = None
    page_token: str | None = None


class NoFields(Struct, forbid_unknown_fields=True):
    """Nothing: the address says it all, and a field that is given is a mistake."""
