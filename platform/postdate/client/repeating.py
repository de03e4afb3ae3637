"""Repeating: whether a call that failed is tried again, and after how long.

A repeat waits for `Retry-After` where the server named a time, else for a random share of a pause
that doubles each time (full jitter), and never past the caller's patience. What is repeated:

=============================  =================================================================
429, 503                       always: the server says that it has changed nothing
connection refused             always: nothing was sent
connection broken, timed out   if the call is repeatable, as sends are by their idempotency key
502, 504                       as above: a proxy lost the answer
=============================  =================================================================
"""

from dataclasses import dataclass
from typing import Any

import httpx

from postdate.client.calls import Call
from postdate.client.errors import ConnectionFailed, PostdateError, read_refusal
from postdate.client.pausing import monotonic, share

_NOT_NOW = frozenset({429, 503})
_LOST_BEHIND_A_PROXY = frozenset({502, 504})
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_REFUSED_FROM = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often a call is tried."""

    #: A call is given up when its next try would begin later than this after its first, s.
    #: 0: one try.
    total_s: float = 30.0
    #: The longest first pause, s; each further one is twice as long.
    first_pause_s: float = 0.05
    #: No pause is longer, unless the server names a time, s.
    pause_s_max: float = 5.0


class Tries:
    """The tries of one call."""

    def __init__(self, call: Call[Any], url: str, patience: Patience) -> None:
        self._call, self._url, self._patience = call, url, patience
        self._began = monotonic()
        self._failures = 0

    def after(self, response: httpx.Response) -> float | None:
        """None: the answer is good. Otherwise how long to wait, s; raises what cannot wait."""
        status = response.status_code
        if status < _REFUSED_FROM or status in self._call.also:
            return None
        error = read_refusal(response)
        again = status in _NOT_NOW or (status in _LOST_BEHIND_A_PROXY and self._call.repeatable)
        return self._pause(again, error, getattr(error, "retry_after_s", None))

    def after_failure(self, failure: httpx.TransportError) -> float:
        """How long to wait, s; raises `ConnectionFailed` when that is no use."""
        reason = f"{type(failure).__name__}: {failure}".rstrip(": ")
        error = ConnectionFailed(self._call.method, self._url, reason)
        return self._pause(self._call.repeatable or isinstance(failure, _UNSENT), error, None)

    def _pause(self, again: bool, error: PostdateError, asked_s: float | None) -> float:
        if not again:
            raise error
        patience = self._patience
        # The exponent is bounded: a float overflows after a thousand doublings.
        longest = min(patience.first_pause_s * 2.0 ** min(self._failures, 30), patience.pause_s_max)
        self._failures += 1
        pause_s = longest * share() if asked_s is None else asked_s + longest * share()
        if monotonic() + pause_s - self._began > patience.total_s:
            raise error
        return pause_s
