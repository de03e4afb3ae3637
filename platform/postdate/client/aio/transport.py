"""The transport runs calls on one httpx client, again and again while that makes sense."""

from typing import Any

import httpx

from postdate.client.addressing import CONNECTIONS_MAX, Address
from postdate.client.calls import Answer, Call
from postdate.client.pausing import apause
from postdate.client.repeating import Patience, Tries
from postdate.client.requesting import Requests


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
        self._patience = patience
        self._own = http is None
        limits = httpx.Limits(
            max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX
        )
        self._http = http or httpx.AsyncClient(limits=limits)
        self._requests = Requests(address, self._http, timeout_s=timeout_s, own=self._own)

    async def run(self, call: Call[Answer], *, patience: Patience | None = None) -> Answer:
        """The call's answer; raises a `PostdateError`."""
        return call.read(await self._answered(call, patience))

    async def text(self, call: Call[Any]) -> str:
        """The call's answer as it came."""
        return (await self._answered(call, None)).text

    async def _answered(self, call: Call[Any], patience: Patience | None) -> httpx.Response:
        tries = Tries(call, self._requests.url_of(call), patience or self._patience)
        while True:
            try:
                response = await self._http.send(self._requests.of(call))
            except httpx.TransportError as failure:
                pause_s: float | None = tries.after_failure(failure)
            else:
                pause_s = tries.after(response)
                if pause_s is None:
                    return response
            await apause(pause_s or 0.0)

    async def close(self) -> None:
        """Close the connections, unless the httpx client is the caller's own."""
        if self._own:
            await self._http.aclose()
