"""The shapes of a group's waiting retries."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from queues.api.shapes.messages import FailureShown


class RetrySummary(Struct, kw_only=True):
    """A message that is tried again, or was."""

    id: str
    topic: str
    queue: int
    tag: str | None
    keys: list[str]
    state: Literal["scheduled", "ready", "cancelled", "parked"]
    #: The attempt that comes, or came, by it.
    attempt: int
    due_at: str
    due_at_ms: int
    delivered_at: str | None
    delivered_at_ms: int | None
    version: int
    failures: list[FailureShown]


class RetryDetail(RetrySummary, kw_only=True):
    """The same with its body."""

    body: Any
    encoding: Literal["base64"] | UnsetType = UNSET
    properties: dict[str, str]


class RetryList(Struct, kw_only=True):
    """A page of waiting retries, in due order, and how many wait in all."""

    items: list[RetrySummary]
    next_page_token: str
    count: int
