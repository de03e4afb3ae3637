"""Messages: one of them, lists, bulk changes, parked ones."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from postdate.client.aio.transport import AsyncTransport
from postdate.client.calls import Call, only_version, path_of, without_none
from postdate.client.shapes.control import Operation
from postdate.client.shapes.messages import (
    BulkPlan,
    CancelOutcome,
    Message,
    MessagePage,
    MessageSummary,
)
from postdate.client.writing import Duration, Moment, delay_fields, write_moment

_message = msgspec.json.Decoder(Message)
_page = msgspec.json.Decoder(MessagePage)
_cancelled = msgspec.json.Decoder(CancelOutcome)
_plan = msgspec.json.Decoder(BulkPlan)
_operation = msgspec.json.Decoder(Operation)

#: What can be done to many messages at once.
BulkAction = Literal["cancel", "reschedule", "deliver-now", "restore"]


class AsyncMessages:
    """Single messages, before and after their hand-over."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, message_id: str) -> Message:
        """Everything that is known of it; raises `MessageNotFound`."""
        path = path_of("messages", message_id)
        return await self._transport.run(Call(method="GET", path=path, decoder=_message))

    async def cancel(
        self, message_id: str, *, reason: str | None = None, if_version: int | None = None
    ) -> CancelOutcome:
        """Cancel it; the answer is the truth.

        Raises `TooLate`, `MessageNotFound`, `VersionMismatch`.
        """
        call = Call(
            method="DELETE",
            path=path_of("messages", message_id),
            decoder=_cancelled,
            query={"reason": reason},
            headers=only_version(if_version),
        )
        return await self._transport.run(call)

    async def restore(self, message_id: str) -> Message:
        """Let a cancelled message wait again; raises `NotCancelled`, `Gone`."""
        path = path_of("messages", message_id, "restore")
        return await self._transport.run(Call(method="POST", path=path, decoder=_message, body={}))

    async def move(
        self,
        message_id: str,
        *,
        delay: Duration | None = None,
        deliver_at: Moment | None = None,
        delay_level: int | None = None,
        if_version: int | None = None,
    ) -> Message:
        """Give it another due time; raises `TooLate`, `MessageCancelled`, `VersionMismatch`."""
        call = Call(
            method="PATCH",
            path=path_of("messages", message_id),
            decoder=_message,
            body=delay_fields(delay, deliver_at, delay_level),
            headers=only_version(if_version),
            # Once moved, the version is another: a repeat would be refused for that.
            repeatable=if_version is None,
        )
        return await self._transport.run(call)

    async def deliver_now(self, message_id: str) -> Message:
        """Hand it over now; raises `TooLate`, `MessageCancelled`."""
        path = path_of("messages", message_id, "deliver-now")
        return await self._transport.run(Call(method="POST", path=path, decoder=_message, body={}))

    async def list(
        self,
        *,
        topic: str | None = None,
        key: str | None = None,
        tag: str | None = None,
        state: str | None = None,
        kind: str | None = None,
        due_after: Moment | None = None,
        due_before: Moment | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> MessagePage:
        """A page of messages, and how many there are in all."""
        query = {
            "topic": topic,
            "key": key,
            "tag": tag,
            "state": state,
            "kind": kind,
            "due_after": None if due_after is None else write_moment(due_after),
            "due_before": None if due_before is None else write_moment(due_before),
            "page_size": page_size,
            "page_token": page_token or None,
        }
        call = Call(method="GET", path="/messages", decoder=_page, query=query)
        return await self._transport.run(call)

    async def iterate(self, **filters: Any) -> AsyncIterator[MessageSummary]:
        """Every message that `list` finds with these filters, page by page."""
        token = ""
        while True:
            page = await self.list(**filters, page_token=token)
            for message in page.items:
                yield message
            token = page.next_page_token
            if not token:
                return


class AsyncBulk:
    """Changes of many messages: planned first, then carried out as an operation."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def plan(
        self,
        action: BulkAction,
        filter_: dict[str, Any],
        *,
        delay: Duration | None = None,
        deliver_at: Moment | None = None,
        shift: str | None = None,
    ) -> BulkPlan:
        """What it would do; `reschedule` takes one of `delay`, `deliver_at`, `shift`."""
        to = without_none(**delay_fields(delay, deliver_at), shift=shift)
        body = without_none(filter=filter_, dry_run=True, to=to or None)
        call = Call(method="POST", path=path_of("bulk", action), decoder=_plan, body=body)
        return await self._transport.run(call)

    async def start(self, action: BulkAction, plan_id: str) -> Operation:
        """Carry the plan out; watch it with `operations.wait`."""
        call = Call(
            method="POST",
            path=path_of("bulk", action),
            decoder=_operation,
            body={"plan_id": plan_id},
        )
        return await self._transport.run(call)


class AsyncParked:
    """Messages that could not be handed over."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> MessagePage:
        """A page of them; `parked_reason` says why."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/parked", decoder=_page, query=query)
        return await self._transport.run(call)

    async def release(self, message_id: str) -> Message:
        """Let it go on."""
        path = path_of("parked", message_id, "release")
        return await self._transport.run(Call(method="POST", path=path, decoder=_message, body={}))

    async def cancel(self, message_id: str) -> CancelOutcome:
        """Give it up."""
        path = path_of("parked", message_id)
        return await self._transport.run(Call(method="DELETE", path=path, decoder=_cancelled))
