"""The answers to sends."""

from datetime import datetime

from msgspec import Struct


class Sent(Struct, frozen=True, kw_only=True):
    """A message that was stored."""

    #: 32 hex digits; the same over every hop.
    id: str
    topic: str
    queue: int
    #: `scheduled` or `ready`.
    state: str
    #: `immediate`, `level` or `timed`.
    kind: str
    due_at: datetime
    due_at_ms: int
    created_at: datetime
    created_at_ms: int
    version: int = 1
    delay_level: int | None = None


class SentItem(Struct, frozen=True, kw_only=True):
    """What became of one message of a batch: stored (`status` 201), or why not."""

    status: int
    id: str | None = None
    topic: str | None = None
    queue: int | None = None
    state: str | None = None
    kind: str | None = None
    delay_level: int | None = None
    due_at: datetime | None = None
    due_at_ms: int | None = None
    created_at: datetime | None = None
    created_at_ms: int | None = None
    version: int | None = None
    #: The problem's code, of one that was refused.
    code: str | None = None
    detail: str | None = None
    pointer: str | None = None

    @property
    def stored(self) -> bool:
        """Whether it is in the store."""
        return self.code is None


class SentBatch(Struct, frozen=True):
    """One result for each message, in order."""

    results: list[SentItem]
