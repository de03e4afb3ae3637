"""The client: everything of the REST API, by resource."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from postdate.client.addressing import address_of
from postdate.client.aio.group import AsyncGroupHandle
from postdate.client.aio.groups import AsyncGroups, AsyncTopics
from postdate.client.aio.messages import AsyncBulk, AsyncMessages, AsyncParked
from postdate.client.aio.operations import AsyncOperations, AsyncReports
from postdate.client.aio.schedule import AsyncSchedule
from postdate.client.aio.sending import AsyncSending
from postdate.client.aio.transport import AsyncTransport
from postdate.client.repeating import Patience
from postdate.client.shapes.sending import Sent, SentItem
from postdate.client.writing import Body, Duration, Moment, NewMessage


class AsyncClient:
    """A client of one Postdate server.

    Without arguments it reads POSTDATE_URL and POSTDATE_API_KEY. It keeps connections open: make
    one, share it, and close it at the end (or use it in a `with` block).
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        patience: Patience | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(
            address_of(url, api_key),
            timeout_s=timeout_s,
            patience=patience or Patience(),
            http=http,
        )
        run = self._transport
        self._sending = AsyncSending(run)
        #: One message: look, cancel, move; and lists.
        self.messages = AsyncMessages(run)
        #: Many messages at once.
        self.bulk = AsyncBulk(run)
        #: What could not be handed over.
        self.parked = AsyncParked(run)
        self.topics = AsyncTopics(run)
        self.groups = AsyncGroups(run)
        #: Levels, wheel, loops, forecast.
        self.schedule = AsyncSchedule(run)
        self.operations = AsyncOperations(run)
        #: Reports, and the audit log.
        self.reports = AsyncReports(run)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.address.url

    def group(self, name: str) -> AsyncGroupHandle:
        """A group to consume for; asks nothing yet."""
        return AsyncGroupHandle(self._transport, name)

    async def send(
        self,
        topic: str,
        body: Body,
        *,
        delay: Duration | None = None,
        deliver_at: Moment | None = None,
        delay_level: int | None = None,
        tag: str | None = None,
        keys: Sequence[str] | None = None,
        properties: dict[str, str] | None = None,
        queue: int | None = None,
        sharding_key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Send a message, now or dated for later; stored once however often it is tried.

        `bytes` arrive as bytes, text as text, any other JSON value as that value.
        """
        message = NewMessage(
            body=body,
            delay=delay,
            deliver_at=deliver_at,
            delay_level=delay_level,
            tag=tag,
            keys=None if keys is None else tuple(keys),
            properties=properties,
            queue=queue,
            sharding_key=sharding_key,
            idempotency_key=idempotency_key,
        )
        return await self._sending.send(topic, message)

    async def send_many(self, topic: str, messages: Sequence[NewMessage]) -> list[SentItem]:
        """Send any number of messages; one result each, in order, and no exception for a bad one.

        They go in batches of up to 1000 messages and 12 MiB.
        """
        return await self._sending.send_many(topic, messages)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
