"""The shapes of topics and groups."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from queues.limits import (
    CUSTOM_DELAYS_MAX,
    RETRIES_DEFAULT,
    RETRIES_MAX,
    RETRY_QUEUES_MAX,
    SUBSCRIPTIONS_MAX,
    TOPIC_QUEUES_DEFAULT,
    TOPIC_QUEUES_MAX,
)


class TopicRequest(Struct, forbid_unknown_fields=True):
    """A topic as it is to be."""

    queues: Annotated[
        int | None,
        Meta(
            description=f"Default {TOPIC_QUEUES_DEFAULT}; never fewer than there are.",
            extra_json_schema={"minimum": 1, "maximum": TOPIC_QUEUES_MAX},
        ),
    ] = None


class TopicAnswer(Struct, kw_only=True):
    """A topic."""

    topic: str
    queues: int
    created_at: str
    created_at_ms: int


class TopicList(Struct):
    """A page of topics, by name."""

    items: list[TopicAnswer]
    next_page_token: str


class AuditEntryAnswer(Struct, kw_only=True):
    """Who changed what in the control plane."""

    at: str
    at_ms: int
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    #: The thing, or what differs of it; null: there was, or is, nothing.
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditLog(Struct):
    """A page of the audit log, newest first."""

    items: list[AuditEntryAnswer]
    next_page_token: str


class PurgeQuery(Struct, forbid_unknown_fields=True):
    """Whether to give up what waits."""

    purge: bool = False


class SubscriptionShape(Struct, forbid_unknown_fields=True):
    """A topic, and which of its messages."""

    topic: Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_-]{1,127}$"})]
    tags: Annotated[str | None, Meta(examples=["*", "TagA || TagB"])] = None


class Levels(Struct, forbid_unknown_fields=True, tag_field="type", tag="levels"):
    """Each retry waits in the next delay level, from the third on."""


class Exponential(Struct, forbid_unknown_fields=True, tag_field="type", tag="exponential"):
    """Each retry waits longer by a factor."""

    initial: Annotated[str | None, Meta(description="Default 5s.")] = None
    factor: Annotated[
        Annotated[float, Meta(ge=1, le=100)] | None, Meta(description="Default 2.")
    ] = None
    max: Annotated[str | None, Meta(description="Default 2h.")] = None


class Custom(Struct, forbid_unknown_fields=True, tag_field="type", tag="custom"):
    """Each retry waits as long as the list says; the last one repeats."""

    delays: Annotated[
        list[str], Meta(extra_json_schema={"minItems": 1, "maxItems": CUSTOM_DELAYS_MAX})
    ]


class GroupRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """A group as it is to be."""

    subscriptions: Annotated[
        list[SubscriptionShape], Meta(extra_json_schema={"maxItems": SUBSCRIPTIONS_MAX})
    ]
    mode: Literal["clustering", "broadcasting"] | None = None
    ordered: bool | None = None
    max_retries: Annotated[
        int | None, Meta(extra_json_schema={"minimum": 0, "maximum": RETRIES_MAX})
    ] = None
    retry_queues: Annotated[
        int | None, Meta(extra_json_schema={"minimum": 1, "maximum": RETRY_QUEUES_MAX})
    ] = None
    retry_policy: Levels | Exponential | Custom | None = None
    start_from: Literal["latest", "earliest"] | None = None


class KeptSubscription(Struct):
    """A topic, and which of its messages, as it is kept."""

    topic: str
    tags: str


class KeptExponential(Struct, tag_field="type", tag="exponential"):
    """Each retry waits longer by a factor; nothing is left open."""

    initial: str = "5s"
    factor: float = 2.0
    max: str = "2h"


#: A retry policy as it is kept.
KeptPolicy = Levels | KeptExponential | Custom


class GroupAnswer(Struct, kw_only=True):
    """A group."""

    group: str
    subscriptions: list[KeptSubscription]
    mode: str
    ordered: bool
    max_retries: int = RETRIES_DEFAULT
    retry_queues: int
    retry_policy: KeptPolicy
    start_from: str
    paused: bool
    created_at: str
    created_at_ms: int


class ResetRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Where a group is to begin anew."""

    to: Annotated[
        str | int,
        Meta(
            description="`earliest`, `latest`, or a moment: RFC 3339 or milliseconds since 1970.",
            examples=["earliest", "2026-01-31T09:30:00.000Z"],
        ),
    ]
    retries: Annotated[
        Literal["keep", "cancel"] | None,
        Meta(description="What becomes of waiting retries; default: they are kept."),
    ] = None


class QueueStart(Struct):
    """Where a group begins in one queue."""

    topic: str
    queue: int
    offset: int


class ResetAnswer(Struct, kw_only=True):
    """Where the group begins anew."""

    group: str
    queues: list[QueueStart]
    #: Waiting retries that were cancelled.
    cancelled_retries: int = 0


class GroupList(Struct):
    """A page of groups, by name."""

    items: list[GroupAnswer]
    next_page_token: str
