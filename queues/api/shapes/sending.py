"""The shapes of sends."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from queues.limits import (
    BATCH_MESSAGES_MAX,
    IDEMPOTENCY_KEY_CHARACTERS_MAX,
    SHARDING_KEY_CHARACTERS_MAX,
    TAG_CHARACTERS_MAX,
)
from queues.store.limits import KEYS_MAX, USER_PROPERTIES_MAX

Duration = Annotated[str, Meta(examples=["250ms", "90s", "1h30m", "PT90S"])]
Moment = Annotated[
    str | int,
    Meta(
        description="RFC 3339 with a zone, or milliseconds since 1970.",
        examples=["2026-01-31T09:30:00.000Z", 1769851800000],
    ),
]
KindWord = Literal["immediate", "level", "timed"]
StateWord = Literal["scheduled", "ready", "cancelled", "parked", "expired"]

KIND_WORDS: dict[str, KindWord] = {"I": "immediate", "L": "level", "T": "timed"}


class SendRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """A message to send: a body, and at most one of the five forms of delay."""

    body: Annotated[
        Raw,
        Meta(
            description="A string, any JSON value, or with `encoding` base64 bytes; at most 4 MiB.",
            examples=["pay order 7", {"order": 7}],
        ),
    ] = msgspec.field(default_factory=Raw)
    encoding: Literal["base64"] | None = None
    tag: Annotated[
        str | None,
        Meta(extra_json_schema={"minLength": 1, "maxLength": TAG_CHARACTERS_MAX}),
    ] = None
    keys: Annotated[
        list[str] | None,
        Meta(description="Without spaces.", extra_json_schema={"maxItems": KEYS_MAX}),
    ] = None
    properties: Annotated[
        dict[str, str] | None,
        Meta(
            description="At most 16 KiB in all.",
            extra_json_schema={"maxProperties": USER_PROPERTIES_MAX},
        ),
    ] = None
    delay_level: Annotated[
        int | None,
        Meta(
            description="1 to the table's last; 0 or absent: no delay.",
            extra_json_schema={"minimum": 0},
        ),
    ] = None
    delay: Duration | None = None
    delay_ms: Annotated[int | None, Meta(extra_json_schema={"minimum": 0})] = None
    delay_seconds: Annotated[int | float | None, Meta(extra_json_schema={"minimum": 0})] = None
    deliver_at: Moment | None = None
    queue: Annotated[int | None, Meta(extra_json_schema={"minimum": 0})] = None
    sharding_key: Annotated[
        str | None,
        Meta(extra_json_schema={"minLength": 1, "maxLength": SHARDING_KEY_CHARACTERS_MAX}),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Meta(
            description="A repeat with the same key within 24 h is stored once.",
            extra_json_schema={"minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX},
        ),
    ] = None


class BatchRequest(Struct, forbid_unknown_fields=True):
    """Messages to send together; each is judged by itself."""

    messages: Annotated[
        list[Raw],
        Meta(
            description="Each as for one send.",
            extra_json_schema={"minItems": 1, "maxItems": BATCH_MESSAGES_MAX},
        ),
    ]


class SentMessage(Struct, kw_only=True, gc=False):
    """What became of a message that was sent."""

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
    version: int = 1


class BatchResult(Struct, kw_only=True, gc=False):
    """What became of one message of a batch: 201 as for one send, or why it was not stored."""

    status: int
    id: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    queue: int | UnsetType = UNSET
    state: StateWord | UnsetType = UNSET
    kind: KindWord | UnsetType = UNSET
    delay_level: int | UnsetType = UNSET
    due_at: str | UnsetType = UNSET
    due_at_ms: int | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    created_at_ms: int | UnsetType = UNSET
    version: int | UnsetType = UNSET
    #: An earlier send with the same key stored it.
    idempotency_replayed: bool | UnsetType = UNSET
    code: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    #: Into the request's body.
    pointer: str | UnsetType = UNSET
    #: Of a delay or level out of range: the longest delay, or the highest level.
    maximum: str | int | UnsetType = UNSET
    maximum_ms: int | UnsetType = UNSET
    #: Of a congested slot: the nearest time with room, and when the same delay has room.
    nearest_free_at: str | UnsetType = UNSET
    nearest_free_at_ms: int | UnsetType = UNSET
    retry_after_seconds: int | UnsetType = UNSET


class BatchAnswer(Struct):
    """One result for each message, in the order given."""

    results: list[BatchResult]


class MoveRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Another due time, counted from now: one of the five forms of delay."""

    delay_level: int | None = None
    delay: Duration | None = None
    delay_ms: Annotated[int | None, Meta(extra_json_schema={"minimum": 0})] = None
    delay_seconds: Annotated[int | float | None, Meta(extra_json_schema={"minimum": 0})] = None
    deliver_at: Moment | None = None


send_decoder = msgspec.json.Decoder(SendRequest)
