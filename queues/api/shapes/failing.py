"""The shapes of failed attempts."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from queues.limits import REASON_CHARACTERS_MAX, RECEIPTS_MAX

_Receipts = Annotated[list[str], Meta(extra_json_schema={"minItems": 1, "maxItems": RECEIPTS_MAX})]
_Reason = Annotated[
    str | None,
    Meta(
        description="Kept with the attempt.",
        extra_json_schema={"maxLength": REASON_CHARACTERS_MAX},
    ),
]


class RetryRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Receipts of messages whose attempt failed."""

    receipts: _Receipts
    delay_level: Annotated[
        int | None,
        Meta(description="Instead of the group's policy; -1: to the dead letters; 0: none."),
    ] = None
    delay: Annotated[
        str | None, Meta(description="Instead of the group's policy: a duration such as 90s.")
    ] = None
    reason: _Reason = None


class DeadLetterRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Receipts of messages that are to be given up."""

    receipts: _Receipts
    reason: _Reason = None


class FailResult(Struct, kw_only=True, gc=False):
    """What became of one receipt."""

    receipt: str
    outcome: Literal["retrying", "dead", "dropped", "expired", "invalid"]
    next_attempt_at: str | UnsetType = UNSET
    next_attempt_at_ms: int | UnsetType = UNSET


class FailAnswer(Struct):
    """One result for each receipt, in the order given."""

    results: list[FailResult]
