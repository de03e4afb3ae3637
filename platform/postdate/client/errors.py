"""Errors are what the client raises: one base, and under it what a program can act upon.

A refusal of the server is a `Refused` with the problem document's members; its class is chosen by
the document's `code`, else by the status, so `except TooLate` and `except Conflict` both work::

    PostdateError
      ConnectionFailed        no usable answer for as long as the client was patient
      UnexpectedAnswer        something answered, and it was not Postdate
      OperationFailed         an operation that was waited for ended otherwise than well
      ConsumerFailed          a part of a consumer ended before its time
      Refused                 a problem document
        InvalidRequest        400, 413, 422
        Unauthorized          401
        Forbidden             403
        NotFound              404: MessageNotFound, TopicNotFound, GroupNotFound
        Conflict              409: TooLate, NotCancelled, MessageCancelled, NotEmpty
        Gone                  410
        VersionMismatch       412
        TooManyRequests       429: QuotaExceeded, SlotCongested
        ServerFailure         5xx: Unavailable (503): StoreFull, StoreClosing, StoreFailed
"""

from collections.abc import Mapping
from typing import Any

import httpx
import msgspec


class PostdateError(Exception):
    """Something did not work out."""


class ConnectionFailed(PostdateError):
    """The server gave no usable answer for as long as the client was patient."""

    def __init__(self, method: str, url: str, reason: str) -> None:
        super().__init__(f"{method} {url}: {reason}")
        #: The request that was not answered.
        self.method, self.url = method, url
        #: What went wrong the last time.
        self.reason = reason


class UnexpectedAnswer(PostdateError):
    """Something answered that is not a Postdate server of a version that this client knows."""

    def __init__(self, status: int, content: bytes, reason: str) -> None:
        super().__init__(f"status {status}: {reason}: {content[:200]!r}")
        #: The HTTP status.
        self.status = status
        #: The beginning of what came.
        self.content = content[:2000]


class OperationFailed(PostdateError):
    """An operation that was waited for failed or was aborted."""

    def __init__(self, operation_id: str, state: str, error: object) -> None:
        super().__init__(f"operation {operation_id} {state}: {error}")
        #: Which operation.
        self.operation_id = operation_id
        #: `failed` or `aborted`.
        self.state = state
        #: What the server says about it.
        self.error = error


class ConsumerFailed(PostdateError):
    """A part of a consumer ended before its time; what it held comes again."""

    def __init__(self, group: str, cause: BaseException) -> None:
        super().__init__(f"the consumer of {group} ended: {type(cause).__name__}")


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a request, and what is wrong with it."""

    #: A JSON pointer into the body.
    pointer: str | None = None
    #: A parameter of the query, or a header.
    parameter: str | None = None
    detail: str = ""


class Refused(PostdateError):
    """The server refused the request and said why (RFC 9457)."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        title: str,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        members: Mapping[str, Any] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        #: The HTTP status.
        self.status = status
        #: Stable, documented: `too_late`, `quota_exceeded`, …
        self.code = code
        self.title = title
        #: This occurrence, in a sentence.
        self.detail = detail
        #: Which fields were wrong.
        self.errors = errors
        #: Every member of the document, such as `delivered_at`.
        self.members: Mapping[str, Any] = members or {}
        #: What `Retry-After` said, seconds.
        self.retry_after_s = retry_after_s


class InvalidRequest(Refused):
    """The request itself is wrong; repeating it helps nobody."""


class Unauthorized(Refused):
    """The API key is missing, unknown, expired or revoked."""


class Forbidden(Refused):
    """The API key's scopes or patterns do not allow this."""


class NotFound(Refused):
    """There is no such thing."""


class MessageNotFound(NotFound):
    """There is no such message, or the key may not see it."""


class TopicNotFound(NotFound):
    """There is no such topic."""


class GroupNotFound(NotFound):
    """There is no such group."""


class Conflict(Refused):
    """The state of the thing does not allow this."""


class TooLate(Conflict):
    """The message was handed over already; `members["delivered_at"]` says when."""


class NotCancelled(Conflict):
    """Only a cancelled message can be restored."""


class MessageCancelled(Conflict):
    """The message is cancelled."""


class NotEmpty(Conflict):
    """Messages still wait there; `members["counts"]` says how many."""


class Gone(Refused):
    """The message itself is gone."""


class VersionMismatch(Refused):
    """The message was changed meanwhile."""


class TooManyRequests(Refused):
    """Not now; `retry_after_s` says when."""


class QuotaExceeded(TooManyRequests):
    """The API key has used up what it may."""


class SlotCongested(TooManyRequests):
    """Too many messages are due in that second; the document names the nearest free one."""


class ServerFailure(Refused):
    """The server could not."""


class Unavailable(ServerFailure):
    """The server cannot just now."""


class StoreFull(Unavailable):
    """The disk is nearly full; nothing was stored."""


class StoreClosing(Unavailable):
    """The server is going down."""


class StoreFailed(Unavailable):
    """The store refuses to write until an operator has looked."""


_BY_CODE: dict[str, type[Refused]] = {
    "message_not_found": MessageNotFound,
    "topic_not_found": TopicNotFound,
    "group_not_found": GroupNotFound,
    "too_late": TooLate,
    "not_cancelled": NotCancelled,
    "message_cancelled": MessageCancelled,
    "not_empty": NotEmpty,
    "quota_exceeded": QuotaExceeded,
    "slot_congested": SlotCongested,
    "store_full": StoreFull,
    "store_closing": StoreClosing,
    "store_failed": StoreFailed,
}
_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: VersionMismatch,
    429: TooManyRequests,
    503: Unavailable,
}
_SERVER_STATUS = 500


class _Document(msgspec.Struct):
    code: str
    title: str = ""
    detail: str = ""
    errors: tuple[FieldError, ...] = ()


_document_of = msgspec.json.Decoder(_Document).decode


def read_refusal(response: httpx.Response) -> Refused | UnexpectedAnswer:
    """The error that an answer of status 400 or above stands for."""
    try:
        document = _document_of(response.content)
        members: dict[str, Any] = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reason = "not a problem document"
        return UnexpectedAnswer(response.status_code, response.content, reason)
    status = response.status_code
    by_status = ServerFailure if status >= _SERVER_STATUS else InvalidRequest
    kind = _BY_CODE.get(document.code) or _BY_STATUS.get(status, by_status)
    return kind(
        status=status,
        code=document.code,
        title=document.title,
        detail=document.detail,
        errors=document.errors,
        members=members,
        retry_after_s=_seconds(response.headers.get("Retry-After")),
    )


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None
