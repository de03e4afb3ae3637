"""A code names one way in which a request can be refused: stable, documented, one HTTP status each.

`docs/api/errors.md` explains every one of them to a client's author; a test keeps it complete.
"""

from enum import Enum


class Code(Enum):
    """What a problem's `code` can be: its name on the wire, its status, its title."""

    # The request itself
    JSON_INVALID = ("json_invalid", 400, "The body is not JSON")
    REQUEST_MALFORMED = ("request_malformed", 400, "The request is malformed")
    BODY_REQUIRED = ("body_required", 400, "A message needs a body")
    CONFLICTING_DELAY = ("conflicting_delay", 400, "More than one delay is given")
    DELAY_INVALID = ("delay_invalid", 400, "The delay is not understood")
    IDEMPOTENCY_KEY_ON_BATCH = (
        "idempotency_key_on_batch",
        400,
        "A batch takes no Idempotency-Key",
    )
    UNAUTHORIZED = ("unauthorized", 401, "A valid API key is needed")
    FORBIDDEN = ("forbidden", 403, "The API key does not allow this")
    TLS_REQUIRED = ("tls_required", 403, "HTTPS is required")
    NOT_FOUND = ("not_found", 404, "There is nothing at this address")
    MESSAGE_NOT_FOUND = ("message_not_found", 404, "There is no such message")
    TOPIC_NOT_FOUND = ("topic_not_found", 404, "There is no such topic")
    KEY_NOT_FOUND = ("key_not_found", 404, "There is no such API key")
    GROUP_NOT_FOUND = ("group_not_found", 404, "There is no such group")
    OPERATION_NOT_FOUND = ("operation_not_found", 404, "There is no such operation")
    PLAN_NOT_FOUND = ("plan_not_found", 404, "There is no such plan")
    REPORT_NOT_FOUND = ("report_not_found", 404, "There is no such report")
    DEAD_LETTER_NOT_FOUND = ("dead_letter_not_found", 404, "There is no such dead letter")
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405, "This address has no such method")
    REQUEST_TOO_LARGE = ("request_too_large", 413, "The request is too large")

    # The state of what is asked for
    TOO_LATE = ("too_late", 409, "The message was handed over already")
    NOT_CANCELLED = ("not_cancelled", 409, "The message is not cancelled")
    MESSAGE_CANCELLED = ("message_cancelled", 409, "The message is cancelled")
    NOT_PARKED = ("not_parked", 409, "The message is not parked")
    NOT_EMPTY = ("not_empty", 409, "Messages still wait there")
    QUEUES_FEWER = ("queues_fewer", 409, "A topic never loses queues")
    GROUP_IN_FLIGHT = ("group_in_flight", 409, "The group has messages in flight")
    PLAN_USED = ("plan_used", 409, "The plan was carried out already")
    OPERATION_UNFINISHED = ("operation_unfinished", 409, "The operation is not finished yet")
    OPERATION_FINISHED = ("operation_finished", 409, "The operation is finished already")
    NOT_UNDOABLE = ("not_undoable", 409, "This cannot be undone")
    PLAN_EXPIRED = ("plan_expired", 410, "The plan is too old")
    PAYLOAD_GONE = ("payload_gone", 410, "The message itself is gone")
    VERSION_MISMATCH = ("version_mismatch", 412, "The message was changed meanwhile")

    # The fields
    FIELD_UNKNOWN = ("field_unknown", 422, "A field is unknown")
    FIELD_REQUIRED = ("field_required", 422, "A field is missing")
    FIELD_INVALID = ("field_invalid", 422, "A field is not of its type")
    OUT_OF_BOUNDS = ("out_of_bounds", 422, "A value is out of its bounds")
    NAME_INVALID = ("name_invalid", 422, "The name is not allowed")
    NAME_RESERVED = ("name_reserved", 422, "The name is reserved")
    TAG_INVALID = ("tag_invalid", 422, "The tag is not allowed")
    KEY_INVALID = ("key_invalid", 422, "A key is not allowed")
    PROPERTY_INVALID = ("property_invalid", 422, "A property is not allowed")
    PROPERTY_RESERVED = ("property_reserved", 422, "The property's name is reserved")
    PROPERTIES_TOO_LARGE = ("properties_too_large", 422, "The properties are too large")
    BODY_TOO_LARGE = ("body_too_large", 422, "The body is too large")
    BODY_INVALID = ("body_invalid", 422, "The body does not match its encoding")
    DELAY_LEVEL_UNKNOWN = ("delay_level_unknown", 422, "There is no such delay level")
    DELAY_OUT_OF_RANGE = ("delay_out_of_range", 422, "The delay is out of range")
    QUEUE_UNKNOWN = ("queue_unknown", 422, "The topic has no such queue")
    QUEUE_CONFLICT = ("queue_conflict", 422, "Both a queue and a sharding key are given")
    IDEMPOTENCY_KEY_INVALID = (
        "idempotency_key_invalid",
        422,
        "The idempotency key is not allowed",
    )
    IDEMPOTENCY_KEY_REUSED = (
        "idempotency_key_reused",
        422,
        "The idempotency key was used for another message",
    )
    FILTER_UNSUPPORTED = ("filter_unsupported", 422, "This filter is not supported")
    FILTER_REQUIRED = ("filter_required", 422, "A filter is needed")
    PLAN_REQUIRED = ("plan_required", 422, "A bulk change needs a plan")
    PAGE_TOKEN_INVALID = ("page_token_invalid", 422, "The page token is not valid")

    # What the key may use
    QUOTA_EXCEEDED = ("quota_exceeded", 429, "The API key has used up its quota")

    # What the timer may take
    SLOT_CONGESTED = ("slot_congested", 429, "Too many messages are due at that time")

    # The server
    INTERNAL_ERROR = ("internal_error", 500, "Something went wrong here")
    REPORT_FAILED = ("report_failed", 500, "The report could not be made")
    STORE_FULL = ("store_full", 503, "The disk is nearly full")
    STORE_CLOSING = ("store_closing", 503, "The store is closing")
    STORE_FAILED = ("store_failed", 503, "The store refuses to write")
    LEDGER_BUSY = ("ledger_busy", 503, "Another process holds the group's ledger")
    CONTROL_UNAVAILABLE = ("control_unavailable", 503, "The database does not answer")

    def __init__(self, word: str, status: int, title: str) -> None:
        #: What `code` holds in an answer.
        self.word = word
        #: The HTTP status of a request refused so.
        self.status = status
        #: One line for people, the same every time.
        self.title = title
