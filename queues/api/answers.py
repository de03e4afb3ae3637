"""An answer is what goes back: JSON of a declared shape, or a problem (RFC 9457).

`translate` is the one place where exceptions become answers: every refusal under `/api/` passes it.
"""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import Error as DatabaseFailure
from django.http import Http404, HttpResponse

from queues.api.codec import encode
from queues.codes import Code
from queues.problems import Problem
from queues.store.errors import (
    DiskFull,
    LedgerBusy,
    StoreClosing,
    StoreFailed,
    StoreFull,
    StoreUnsupported,
)

logger = logging.getLogger(__name__)

#: Seconds after which a client may try again, by what it waits for.
_RETRY_AFTER_S = {
    Code.STORE_FULL: 10,
    Code.STORE_CLOSING: 2,
    Code.STORE_FAILED: 30,
    Code.LEDGER_BUSY: 2,
    Code.CONTROL_UNAVAILABLE: 2,
}
_STORE_CODES = (
    (StoreFull, Code.STORE_FULL),
    (DiskFull, Code.STORE_FULL),
    (StoreClosing, Code.STORE_CLOSING),
    (StoreFailed, Code.STORE_FAILED),
    (LedgerBusy, Code.LEDGER_BUSY),
)


def answer(
    content: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A JSON answer."""
    return raw_answer(encode(content), "application/json", status=status, headers=headers)


def raw_answer(
    body: bytes, media_type: str, *, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """An answer of bytes, with its length: no middleware adds it on this way."""
    response = HttpResponse(body, status=status, content_type=media_type, headers=headers)
    response.headers["Content-Length"] = str(len(body))
    return response


def no_content() -> HttpResponse:
    """Done, and nothing to say."""
    response = HttpResponse(status=204)
    del response.headers["Content-Type"]  # Of nothing there is no type; Django says HTML.
    return response


def refuse(problem: Problem) -> HttpResponse:
    """The problem as an answer."""
    code = problem.code
    body = encode(describe(problem))
    response = raw_answer(body, "application/problem+json", status=code.status)
    if code is Code.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    retry_after_s = problem.retry_after_s or _RETRY_AFTER_S.get(code)
    if retry_after_s is not None:
        response["Retry-After"] = str(retry_after_s)
    if code is Code.METHOD_NOT_ALLOWED:
        response["Allow"] = ", ".join(problem.extra["allowed"])
    return response


def describe(problem: Problem) -> dict[str, Any]:
    """The members of a problem document."""
    code = problem.code
    members: dict[str, Any] = {
        "type": f"urn:postdate:problem:{code.word}",
        "title": code.title,
        "status": code.status,
        "detail": problem.detail,
        "code": code.word,
        "errors": [],
    }
    if problem.pointer is not None:
        place = "pointer" if problem.pointer[:1] in ("", "/") else "parameter"
        members["errors"].append({place: problem.pointer, "detail": problem.detail})
    return members | dict(problem.extra)


def translate(error: Exception) -> Problem:
    """The problem that an exception means to a client; what nobody foresaw is logged, and a 500."""
    match error:
        case Problem():
            return error
        case Http404():
            return Problem(Code.NOT_FOUND)
        case PermissionDenied():
            return Problem(Code.FORBIDDEN)
        case SuspiciousOperation():
            return Problem(Code.REQUEST_MALFORMED)
        case DatabaseFailure():
            logger.error("The database failed.", exc_info=error)
            return Problem(Code.CONTROL_UNAVAILABLE, "Try again in a moment.")
        case StoreUnsupported():
            # Which file it is, and what to do about it, is the operator's: clients are not told.
            logger.error("The store cannot be opened. %s", error.message)
            return Problem(Code.STORE_FAILED, "The store cannot be opened; the log says why.")
    for kind, code in _STORE_CODES:
        if isinstance(error, kind):
            return Problem(code, str(error.__doc__), extra={"hint": error.hint})
    logger.error("A request failed in a way that nobody foresaw.", exc_info=error)
    return Problem(Code.INTERNAL_ERROR, "The log of the server says more.")
