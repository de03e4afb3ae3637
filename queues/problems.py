"""A problem is a refusal that a client can act upon: a code, what exactly was wrong, and where.

Services and selectors raise it; `queues.api` alone turns it into an answer (RFC 9457).
"""

from collections.abc import Mapping
from typing import Any

from queues.codes import Code


class Problem(Exception):
    """A request is refused."""

    def __init__(
        self,
        code: Code,
        detail: str = "",
        *,
        pointer: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail or code.title)
        #: Which refusal.
        self.code = code
        #: This occurrence, in a sentence.
        self.detail = detail or code.title + "."
        #: JSON pointer into the request's body (`/keys/0`), or the name of a query parameter.
        self.pointer = pointer
        #: Further members of the answer, such as `delivered_at` or `maximum_ms`.
        self.extra: Mapping[str, Any] = extra or {}
        #: When it is worth another try, s; None: what the code stands for.
        self.retry_after_s: int | None = None
