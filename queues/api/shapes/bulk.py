"""The shapes of bulk changes."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.api.shapes.messages import MessageSummary
from queues.api.shapes.sending import KindWord, Moment, StateWord


class BulkFilter(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which messages; at least one of these."""

    topic: str | None = None
    key: str | None = None
    tag: str | None = None
    kind: KindWord | None = None
    state: Annotated[
        StateWord | None, Meta(description="What the verb works on anyway, or nothing.")
    ] = None
    due_after: Moment | None = None
    due_before: Moment | None = None


class BulkTarget(Struct, forbid_unknown_fields=True, kw_only=True):
    """Where to; one of them."""

    deliver_at: Moment | None = None
    delay: Annotated[str | None, Meta(description="From when the plan is carried out.")] = None
    shift: Annotated[
        str | None, Meta(description="Added to each due time; `-1h` is an hour earlier.")
    ] = None


class BulkRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """A filter with `dry_run`, to look; or the `plan_id` of that look, to do it."""

    filter: BulkFilter | None = None
    dry_run: bool | None = None
    plan_id: str | None = None


class BulkMoveRequest(BulkRequest, forbid_unknown_fields=True, kw_only=True):
    """The same, and where to."""

    to: BulkTarget | None = None


class BulkBucket(Struct):
    """How many messages come due from here to the next bucket, without and with the change."""

    start: str
    start_ms: int
    before: int
    after: int


class BulkEffect(Struct):
    """What the change does to the forecast, where it does something."""

    step_ms: int
    buckets: list[BulkBucket]


class BulkPreview(Struct, kw_only=True):
    """What a bulk change would do, and the plan to do it by."""

    plan_id: str
    expires_at: str
    expires_at_ms: int
    #: Exact.
    count: int | UnsetType = UNSET
    #: There are at least so many; counting on would read too many messages.
    count_at_least: int | UnsetType = UNSET
    #: The first ones, in due order.
    sample: list[MessageSummary]
    forecast: BulkEffect
