"""Topics and groups."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct


class Topic(Struct, frozen=True, kw_only=True):
    """A topic."""

    topic: str
    queues: int
    created_at: datetime
    created_at_ms: int


class TopicPage(Struct, frozen=True, kw_only=True):
    """A page of topics, by name."""

    items: list[Topic]
    next_page_token: str = ""


class Subscription(Struct, frozen=True):
    """A topic, and which of its messages: `*`, or `TagA || TagB`."""

    topic: str
    tags: str = "*"


class LevelsPolicy(Struct, frozen=True, tag_field="type", tag="levels"):
    """Each retry waits in the next delay level, from the third on (10 s)."""


class ExponentialPolicy(Struct, frozen=True, tag_field="type", tag="exponential"):
    """Each retry waits longer by a factor."""

    initial: str = "5s"
    factor: float = 2.0
    max: str = "2h"


class CustomPolicy(Struct, frozen=True, tag_field="type", tag="custom"):
    """Each retry waits as long as the list says; the last one repeats."""

    delays: list[str]


RetryPolicy = LevelsPolicy | ExponentialPolicy | CustomPolicy
#: How the consumers of a group share.
Mode = Literal["clustering", "broadcasting"]
#: Where a new group begins in queues that hold messages already.
StartFrom = Literal["latest", "earliest"]


class Group(Struct, frozen=True, kw_only=True):
    """A group as it is kept."""

    group: str
    subscriptions: list[Subscription]
    mode: str
    ordered: bool
    max_retries: int
    retry_queues: int
    retry_policy: RetryPolicy
    start_from: str
    paused: bool
    created_at: datetime
    created_at_ms: int


class GroupPage(Struct, frozen=True, kw_only=True):
    """A page of groups, by name."""

    items: list[Group]
    next_page_token: str = ""


class Settled(Struct, frozen=True, kw_only=True):
    """The answer of what may be done at once or go on as an operation.

    With `id` and `state` it is an operation; otherwise the other fields say what was done.
    """

    id: str | None = None
    state: str | None = None
    outcome: str | None = None
    result: Any = None
