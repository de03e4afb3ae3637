"""The shapes of receiving and acknowledging."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.limits import (
    CONSUMER_ID_CHARACTERS_MAX,
    LEASE_S_DEFAULT,
    LEASE_S_MAX,
    LEASE_S_MIN,
    RECEIPTS_MAX,
    RECEIVE_MESSAGES_DEFAULT,
    RECEIVE_MESSAGES_MAX,
    RECEIVE_WAIT_S_MAX,
)


class ReceiveRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """How many messages, how long to wait for them, how long to hold them."""

    max_messages: Annotated[
        int | None,
        Meta(
            description=f"Default {RECEIVE_MESSAGES_DEFAULT}.",
            extra_json_schema={"minimum": 1, "maximum": RECEIVE_MESSAGES_MAX},
        ),
    ] = None
    wait_seconds: Annotated[
        int | float | None,
        Meta(
            description="Default 0: answer at once.",
            extra_json_schema={"minimum": 0, "maximum": RECEIVE_WAIT_S_MAX},
        ),
    ] = None
    lease_seconds: Annotated[
        int | float | None,
        Meta(
            description=f"Default {LEASE_S_DEFAULT}.",
            extra_json_schema={"minimum": LEASE_S_MIN, "maximum": LEASE_S_MAX},
        ),
    ] = None
    consumer_id: Annotated[
        str | None,
        Meta(extra_json_schema={"minLength": 1, "maxLength": CONSUMER_ID_CHARACTERS_MAX}),
    ] = None


class ReceivedMessage(Struct, kw_only=True, gc=False):
    """A message that is leased to the asker."""

    id: str
    topic: str
    queue: int
    body: Any
    encoding: Literal["base64"] | UnsetType = UNSET
    tag: str | None
    keys: list[str]
    properties: dict[str, str]
    attempt: int
    receipt: str
    due_at: str | None
    due_at_ms: int | None
    delivered_at: str
    delivered_at_ms: int
    lateness_ms: int | None
    lease_expires_at: str
    lease_expires_at_ms: int


class FullQueue(Struct):
    """A queue that hands out nothing until leases of the group end."""

    topic: str
    queue: int


class ReceiveAnswer(Struct, kw_only=True):
    """What was ready."""

    messages: list[ReceivedMessage]
    #: The group is paused.
    paused: bool | UnsetType = UNSET
    #: Queues of which the group holds 100,000 leases.
    full: list[FullQueue] | UnsetType = UNSET


class ReceiptsRequest(Struct, forbid_unknown_fields=True):
    """Receipts of messages that are done."""

    receipts: Annotated[
        list[str], Meta(extra_json_schema={"minItems": 1, "maxItems": RECEIPTS_MAX})
    ]


class AckResult(Struct, gc=False):
    """What became of one receipt."""

    receipt: str
    outcome: Literal["acked", "expired", "invalid"]


class AckAnswer(Struct):
    """One result for each receipt, in the order given."""

    results: list[AckResult]


class QueueLagAnswer(Struct, kw_only=True):
    """What waits for the group in one queue."""

    #: Of a broadcasting group: for which of its consumers.
    consumer_id: str | UnsetType = UNSET
    topic: str
    queue: int
    ready: int
    leased: int
    oldest_ready_at: str | None
    oldest_ready_at_ms: int | None


class LagAnswer(Struct, kw_only=True):
    """What waits for the group."""

    queues: list[QueueLagAnswer]
    retrying: int = 0
    dead: int = 0
    #: False: `ready` is an estimate.
    ready_exact: bool = True
