"""The transport runs calls on one httpx client, again and again while that makes sense."""

from typing import Any

import httpx

from postdate.client.addressing import CONNECTIONS_MAX, Address
from postdate.client.calls import Answer, Call
from postdate.client.pausing import apause
from postdate.client.repeating import Patience, Tries

_PREFIX = "/api/v1"


class AsyncTransport:
    """One server, reached over connections that are kept open; safe to share."""

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float,
        patience: Patience,
        http: httpx.AsyncClient | None,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._patience = patience
        self._own = http is None
        limits = httpx.Limits(
            max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX
        )
        self._http = http or httpx.AsyncClient(limits=limits)
        self._headers = httpx.Headers(address.headers)

    async def run(self, call: Call[Answer], *, patience: Patience | None = None) -> Answer:
        """The call's answer; raises a `PostdateError`."""
        return call.read(await self._answered(call, patience))

    async def text(self, call: Call[Any]) -> str:
        """The call's answer as it came."""
        return (await self._answered(call, None)).text

    async def _answered(self, call: Call[Any], patience: Patience | None) -> httpx.Response:
        url = self.address.url + ("" if call.path == "/readyz" else _PREFIX) + call.path
        tries = Tries(call, url, patience or self._patience)
        while True:
            try:
                response = await self._send(call, url)
            except httpx.TransportError as failure:
                pause_s: float | None = tries.after_failure(failure)
            else:
                pause_s = tries.after(response)
                if pause_s is None:
                    return response
            await apause(pause_s or 0.0)

    async def _send(self, call: Call[Any], url: str) -> httpx.Response:
        headers = self._headers
        if call.headers:
            headers = headers.copy()
            headers.update(call.headers)
        query = {name: value for name, value in call.query.items() if value is not None}
        return await self._http.request(
            call.method,
            url,
            content=call.content(),
            params=query or None,
            headers=headers,
            timeout=self._timeout_s + call.wait_s,
        )

    async def close(self) -> None:
        """Close the connections, unless the httpx client is the caller's own."""
        if self._own:
            await self._http.aclose()
