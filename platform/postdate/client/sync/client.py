"""The client: everything of the REST API, by resource."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from postdate.client.addressing import address_of
from postdate.client.repeating import Patience
from postdate.client.shapes.sending import Sent, SentItem
from postdate.client.sync.group import GroupHandle
from postdate.client.sync.groups import Groups, Topics
from postdate.client.sync.messages import Bulk, Messages, Parked
from postdate.client.sync.operations import Operations, Reports
from postdate.client.sync.schedule import Schedule
from postdate.client.sync.sending import Sending
from postdate.client.sync.transport import Transport
from postdate.client.writing import Body, Duration, Moment, NewMessage


class Client:
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
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(
            address_of(url, api_key),
            timeout_s=timeout_s,
            patience=patience or Patience(),
            http=http,
        )
        run = self._transport
        self._sending = Sending(run)
        #: One message: look, cancel, move; and lists.
        self.messages = Messages(run)
        #: Many messages at once.
        self.bulk = Bulk(run)
        #: What could not be handed over.
        self.parked = Parked(run)
        self.topics = Topics(run)
        self.groups = Groups(run)
        #: Levels, wheel, loops, forecast.
        self.schedule = Schedule(run)
        self.operations = Operations(run)
        #: Reports, and the audit log.
        self.reports = Reports(run)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.address.url

    def group(self, name: str) -> GroupHandle:
        """A group to consume for; asks nothing yet."""
        return GroupHandle(self._transport, name)

    def send(
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
        return self._sending.send(topic, message)

    def send_many(self, topic: str, messages: Sequence[NewMessage]) -> list[SentItem]:
        """Send any number of messages; one result each, in order, and no exception for a bad one.

        They go in batches of up to 1000 messages and 12 MiB.
        """
        return self._sending.send_many(topic, messages)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
