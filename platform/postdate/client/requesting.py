"""Requesting: a call as an httpx request.

httpx works out address, headers and limits anew for each request, a quarter of what one costs. On a
client of our own they are the same each time; on a caller's own they may change, so it builds.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import httpx

from postdate.client.addressing import Address
from postdate.client.calls import Call

_PREFIX: Final = "/api/v1"
_KNOWN_MAX: Final = 1024

_parsed = lru_cache(_KNOWN_MAX)(httpx.URL)


@lru_cache(_KNOWN_MAX)
def _extensions(timeout_s: float) -> Mapping[str, Any]:
    return {"timeout": httpx.Timeout(timeout_s).as_dict()}


class Requests:
    """The requests to one server."""

    def __init__(
        self,
        address: Address,
        http: httpx.Client | httpx.AsyncClient,
        *,
        timeout_s: float,
        own: bool,
    ) -> None:
        self._address, self._http = address, http
        self._timeout_s, self._own = timeout_s, own
        self._headers = httpx.Headers(address.headers)
        self._all_headers = httpx.Headers(http.headers)
        self._all_headers.update(address.headers)

    def url_of(self, call: Call[Any]) -> str:
        """Where a call goes, without its query."""
        return self._address.url + ("" if call.path == "/readyz" else _PREFIX) + call.path

    def of(self, call: Call[Any]) -> httpx.Request:
        """The request of a call."""
        query = call.query and {name: one for name, one in call.query.items() if one is not None}
        extensions = _extensions(self._timeout_s + call.wait_s)
        headers = self._all_headers if self._own else self._headers
        if call.headers:
            headers = headers.copy()
            headers.update(call.headers)
        if not self._own:
            return self._http.build_request(
                call.method, self.url_of(call), content=call.content(), params=query or None,
                headers=headers, extensions=extensions,
            )  # fmt: skip
        return httpx.Request(
            call.method, _parsed(self.url_of(call)), content=call.content(), params=query or None,
            headers=headers, cookies=self._http.cookies, extensions=extensions,
        )  # fmt: skip
