"""One group: receive, settle, and how it stands."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postdate.client.aio.deadletters import AsyncDeadLetters, AsyncRetries
from postdate.client.aio.transport import AsyncTransport
from postdate.client.calls import Call, path_of, without_none
from postdate.client.shapes.consuming import Lag, LeasePage, ReceiptResult, ReceiptResults, Received
from postdate.client.shapes.groups import Group, Settled
from postdate.client.writing import Duration, Moment, write_duration, write_moment

_received = msgspec.json.Decoder(Received)
_results = msgspec.json.Decoder(ReceiptResults)
_leases = msgspec.json.Decoder(LeasePage)
_lag = msgspec.json.Decoder(Lag)
_group = msgspec.json.Decoder(Group)
_settled: msgspec.json.Decoder[Settled | None] = msgspec.json.Decoder(Settled | None)


class AsyncGroupHandle:
    """A group by its name."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self.name = name
        #: What waits for another attempt.
        self.retries = AsyncRetries(transport, name)
        #: What it gave up.
        self.dead_letters = AsyncDeadLetters(transport, name)

    async def receive(
        self,
        *,
        max_messages: int | None = None,
        wait_seconds: float = 0,
        lease_seconds: float | None = None,
        consumer_id: str | None = None,
    ) -> Received:
        """Lease up to so many messages; waits for the first one up to `wait_seconds` (20 at most).

        If the answer is lost on the way, its messages come again when their lease runs out.
        """
        body = without_none(
            max_messages=max_messages,
            wait_seconds=wait_seconds or None,
            lease_seconds=lease_seconds,
            consumer_id=consumer_id,
        )
        call = Call(
            method="POST",
            path=path_of("groups", self.name, "receive"),
            decoder=_received,
            body=body,
            wait_s=wait_seconds,
        )
        return await self._transport.run(call)

    async def ack(self, receipts: Sequence[str]) -> list[ReceiptResult]:
        """They are done: `acked`, `expired` or `invalid`, in order."""
        return await self._settle("ack", receipts)

    async def retry(
        self,
        receipts: Sequence[str],
        *,
        delay: Duration | None = None,
        delay_level: int | None = None,
        reason: str | None = None,
    ) -> list[ReceiptResult]:
        """They failed: `retrying` with the next attempt's time, or `dead`.

        Without a delay the group's policy decides; `delay_level=-1` is the dead-letter queue.
        """
        delay_text = None if delay is None else write_duration(delay)
        return await self._settle(
            "retry", receipts, delay=delay_text, delay_level=delay_level, reason=reason
        )

    async def dead_letter(
        self, receipts: Sequence[str], *, reason: str | None = None
    ) -> list[ReceiptResult]:
        """They will never work: straight to the dead letters."""
        return await self._settle("dead-letter", receipts, reason=reason)

    async def extend(self, receipts: Sequence[str], *, lease_seconds: float) -> list[ReceiptResult]:
        """Hold them so much longer, from now; each result carries the `new_receipt`."""
        return await self._settle("extend", receipts, lease_seconds=lease_seconds)

    async def release(self, receipts: Sequence[str]) -> list[ReceiptResult]:
        """Give them back, ready at once; no attempt is counted."""
        return await self._settle("release", receipts)

    async def _settle(
        self, verb: str, receipts: Sequence[str], **fields: Any
    ) -> list[ReceiptResult]:
        call = Call(
            method="POST",
            path=path_of("groups", self.name, verb),
            decoder=_results,
            body={"receipts": list(receipts), **without_none(**fields)},
        )
        return (await self._transport.run(call)).results

    async def leases(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> LeasePage:
        """Who holds what."""
        return await self._transport.run(
            Call(
                method="GET",
                path=path_of("groups", self.name, "leases"),
                decoder=_leases,
                query={"page_size": page_size, "page_token": page_token or None},
            )
        )

    async def lag(self) -> Lag:
        """What waits for it, queue by queue."""
        path = path_of("groups", self.name, "lag")
        return await self._transport.run(Call(method="GET", path=path, decoder=_lag))

    async def get(self) -> Group:
        """As it is declared; raises `GroupNotFound`."""
        path = path_of("groups", self.name)
        return await self._transport.run(Call(method="GET", path=path, decoder=_group))

    async def pause(self) -> Group:
        """Receives come back empty until it is resumed."""
        path = path_of("groups", self.name, "pause")
        return await self._transport.run(Call(method="POST", path=path, decoder=_group, body={}))

    async def resume(self) -> Group:
        """Let it go on."""
        path = path_of("groups", self.name, "resume")
        return await self._transport.run(Call(method="POST", path=path, decoder=_group, body={}))

    async def reset(self, to: Moment, *, cancel_retries: bool = False) -> Settled | None:
        """Go to a time, `earliest` or `latest`; leases are void from then on."""
        body = without_none(to=write_moment(to), retries="cancel" if cancel_retries else None)
        path = path_of("groups", self.name, "reset")
        call = Call(method="POST", path=path, decoder=_settled, body=body)
        return await self._transport.run(call)

    async def delete(self, *, purge: bool = False) -> Settled | None:
        """Delete it; raises `NotEmpty` unless `purge` gives up what it has in flight."""
        call = Call(
            method="DELETE",
            path=path_of("groups", self.name),
            decoder=_settled,
            query={"purge": "true" if purge else None},
        )
        return await self._transport.run(call)
