"""Topics and groups as they are declared."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postdate.client.aio.transport import AsyncTransport
from postdate.client.calls import Call, path_of, without_none
from postdate.client.shapes.groups import (
    Group,
    GroupPage,
    Mode,
    RetryPolicy,
    Settled,
    StartFrom,
    Subscription,
    Topic,
    TopicPage,
)

_topic = msgspec.json.Decoder(Topic)
_topics = msgspec.json.Decoder(TopicPage)
_group = msgspec.json.Decoder(Group)
_groups = msgspec.json.Decoder(GroupPage)
_settled: msgspec.json.Decoder[Settled | None] = msgspec.json.Decoder(Settled | None)


class AsyncTopics:
    """Topics."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def declare(self, name: str, *, queues: int | None = None) -> Topic:
        """Make it, or give it more queues."""
        body = without_none(queues=queues)
        call = Call(method="PUT", path=path_of("topics", name), decoder=_topic, body=body)
        return await self._transport.run(call)

    async def get(self, name: str) -> Topic:
        """Look at it; raises `TopicNotFound`."""
        call = Call(method="GET", path=path_of("topics", name), decoder=_topic)
        return await self._transport.run(call)

    async def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> TopicPage:
        """A page of topics, by name."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/topics", decoder=_topics, query=query)
        return await self._transport.run(call)

    async def delete(self, name: str, *, purge: bool = False) -> Settled | None:
        """Delete it; what waits for it is refused (`NotEmpty`) or, with `purge`, cancelled."""
        call = Call(
            method="DELETE",
            path=path_of("topics", name),
            decoder=_settled,
            query={"purge": "true" if purge else None},
        )
        return await self._transport.run(call)


class AsyncGroups:
    """Groups."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def declare(
        self,
        name: str,
        subscriptions: Sequence[Subscription | str],
        *,
        mode: Mode | None = None,
        ordered: bool | None = None,
        max_retries: int | None = None,
        retry_queues: int | None = None,
        retry_policy: RetryPolicy | None = None,
        start_from: StartFrom | None = None,
    ) -> Group:
        """Make it, or replace what was there; a subscription is a topic or topic and tags."""
        body: dict[str, Any] = without_none(
            subscriptions=[
                Subscription(one) if isinstance(one, str) else one for one in subscriptions
            ],
            mode=mode,
            ordered=ordered,
            max_retries=max_retries,
            retry_queues=retry_queues,
            retry_policy=retry_policy,
            start_from=start_from,
        )
        call = Call(method="PUT", path=path_of("groups", name), decoder=_group, body=body)
        return await self._transport.run(call)

    async def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> GroupPage:
        """A page of groups, by name."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/groups", decoder=_groups, query=query)
        return await self._transport.run(call)
