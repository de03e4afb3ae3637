"""The shapes of dead letters."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.api.shapes.messages import FailureShown
from queues.api.shapes.sending import Moment
from queues.limits import REASON_CHARACTERS_MAX, REDRIVE_IDS_MAX


class DeathShown(Struct, kw_only=True):
    """An earlier death of a message that was driven again."""

    died_at: str
    died_at_ms: int
    attempts: int
    reason: str | None
    redriven_at: str
    redriven_at_ms: int
    redriven_by: str | None


class DeadLetterSummary(Struct, kw_only=True):
    """A message that a group gave up."""

    id: str
    group: str
    topic: str
    queue: int
    tag: str | None
    keys: list[str]
    #: Deliveries that failed, since it was sent or last redriven.
    failure_count: int
    #: Why the last one failed.
    reason: str | None
    created_at: str
    created_at_ms: int
    died_at: str
    died_at_ms: int
    redriven_at: str | None
    redriven_at_ms: int | None
    redriven_by: str | None


class DeadLetterDetail(DeadLetterSummary, kw_only=True):
    """Everything that is known of it."""

    body: Any
    encoding: Literal["base64"] | UnsetType = UNSET
    properties: dict[str, str]
    failures: list[FailureShown]
    #: Earlier deaths, oldest first.
    lineage: list[DeathShown]


class DeadLetterList(Struct, kw_only=True):
    """A page of dead letters, the newest first, and how many there are in all."""

    items: list[DeadLetterSummary]
    next_page_token: str
    count: int | UnsetType = UNSET
    count_at_least: int | UnsetType = UNSET


class DeadLetterQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters to list, and in which form."""

    topic: str | None = None
    key: str | None = None
    reason: str | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None
    format: Literal["json", "csv", "ndjson"] | None = None
    page_size: str | None = None
    page_token: str | None = None


class ReasonsQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters to count by reason."""

    topic: str | None = None
    key: str | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None


class ReasonShown(Struct, kw_only=True):
    """The dead letters of one reason."""

    reason: str | None
    count: int
    first_died_at: str
    first_died_at_ms: int
    last_died_at: str
    last_died_at_ms: int
    sample_id: str


class ReasonList(Struct, kw_only=True):
    """Dead letters by reason, the most frequent first."""

    items: list[ReasonShown]
    #: False: only the newest were counted.
    exact: bool


class DeadLetterFilter(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters are meant; at least one of these."""

    topic: str | None = None
    key: str | None = None
    reason: str | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None


_Ids = Annotated[
    list[str] | None, Meta(extra_json_schema={"minItems": 1, "maxItems": REDRIVE_IDS_MAX})
]


class PurgeRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """What is given up: one of the three."""

    ids: _Ids = None
    filter: DeadLetterFilter | None = None
    all: bool | None = None


class RedriveRequest(PurgeRequest, forbid_unknown_fields=True, kw_only=True):
    """What is driven again, and how."""

    dry_run: bool | None = None
    again: Annotated[
        bool | None, Meta(description="Also what was driven again before, if its chain has ended.")
    ] = None
    messages_per_second: Annotated[
        int | float | None, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": 100_000})
    ] = None
    stop_after_failures: Annotated[
        int | None,
        Meta(
            description="Stop once so many failed their first attempt again; give a rate, too.",
            extra_json_schema={"minimum": 1},
        ),
    ] = None


class Purged(Struct):
    """How many were given up."""

    discarded: int


class RedriveResult(Struct, gc=False):
    """What became of one dead letter."""

    id: str
    outcome: Literal["redriven", "already_redriven", "in_progress", "not_found"]


class RedriveAnswer(Struct, kw_only=True):
    """One result a dead letter; or, of a dry run, how many would be driven and some of them."""

    results: list[RedriveResult] | UnsetType = UNSET
    count: int | UnsetType = UNSET
    sample: list[DeadLetterSummary] | UnsetType = UNSET


class Discarded(Struct):
    """What became of a dead letter."""

    outcome: Literal["discarded"] = "discarded"


class DiscardQuery(Struct, forbid_unknown_fields=True):
    """Why it is given up."""

    reason: Annotated[str, Meta(max_length=REASON_CHARACTERS_MAX)] | None = None
