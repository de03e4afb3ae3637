"""The shapes of leases: longer, given back, listed."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.limits import LEASE_S_MAX, LEASE_S_MIN, RECEIPTS_MAX


class ExtendRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Receipts, and how long from now their leases shall last."""

    receipts: Annotated[
        list[str], Meta(extra_json_schema={"minItems": 1, "maxItems": RECEIPTS_MAX})
    ]
    lease_seconds: Annotated[
        int | float,
        Meta(
            description="From now; an attempt is leased for 12 hours in all at the most.",
            extra_json_schema={"minimum": LEASE_S_MIN, "maximum": LEASE_S_MAX},
        ),
    ]


class ExtendResult(Struct, kw_only=True, gc=False):
    """What became of one receipt; the new one counts from now on."""

    receipt: str
    outcome: Literal["extended", "expired", "invalid"]
    new_receipt: str | UnsetType = UNSET
    lease_expires_at: str | UnsetType = UNSET
    lease_expires_at_ms: int | UnsetType = UNSET


class ExtendAnswer(Struct):
    """One result for each receipt, in the order given."""

    results: list[ExtendResult]


class ReleaseResult(Struct, gc=False):
    """What became of one receipt."""

    receipt: str
    outcome: Literal["released", "expired", "invalid"]


class ReleaseAnswer(Struct):
    """One result for each receipt, in the order given."""

    results: list[ReleaseResult]


class LeaseShown(Struct, kw_only=True):
    """A message that a consumer holds."""

    #: None if its record cannot be read any more.
    id: str | None
    topic: str
    queue: int
    attempt: int
    consumer_id: str | None
    since: str
    since_ms: int
    until: str
    until_ms: int


class LeaseList(Struct, kw_only=True):
    """A page of leases."""

    items: list[LeaseShown]
    next_page_token: str
    count: int
