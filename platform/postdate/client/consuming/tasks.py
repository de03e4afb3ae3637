"""A consumer on asyncio: one task polls, some work, one renews and settles.

    async def handle(message: ReceivedMessage) -> None: ...

    await AsyncConsumer(client, "billing", handle, concurrency=200).run()

The same as `Consumer`, word for word, for handlers that are coroutines. `run` may be cancelled: it
then gives back what it holds before it ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from postdate.client.aio.client import AsyncClient
from postdate.client.consuming.holding import Held, Holdings, Settlement
from postdate.client.consuming.outcomes import ACK, Figures, outcome_of
from postdate.client.consuming.working import POLL_AGAIN_S, Working, is_final, logger
from postdate.client.errors import PostdateError
from postdate.client.pausing import monotonic
from postdate.client.shapes.consuming import ReceiptResult, ReceivedMessage

AsyncHandler = Callable[[ReceivedMessage], Awaitable[object]]


class AsyncConsumer:
    """Runs a handler for the messages of a group, in tasks."""

    def __init__(
        self, client: AsyncClient, group: str, handler: AsyncHandler, **working: Any
    ) -> None:
        """`working` are the fields of `Working`: concurrency, prefetch, lease_seconds, …"""
        self._working = Working(**working)
        self._group = client.group(group)
        self._handler = handler
        self._holdings = Holdings(self._working.capacity, self._working.lease_seconds)
        self._changed = asyncio.Condition()
        self._jobs: asyncio.Queue[Held] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._ending = False

    @property
    def figures(self) -> Figures:
        """What it has done so far."""
        return self._holdings.figures

    def stop(self) -> None:
        """Have `run` end: no new messages, handlers finish, the rest is released."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until `stop`; raises what makes polling useless (a wrong key, no such group)."""
        workers = [asyncio.create_task(self._work()) for _ in range(self._working.concurrency)]
        settler = asyncio.create_task(self._settle())
        try:
            await self._poll()
        finally:
            await self._end(workers, settler)

    # --- polling

    async def _poll(self) -> None:
        while not self._stopping.is_set():
            async with self._changed:
                if not await self._until(lambda: self._holdings.room > 0, 1.0):
                    continue
                room = self._holdings.room
            asked_s = monotonic()
            messages = await self._receive(room)
            async with self._changed:
                taken = self._holdings.take(messages, asked_s)
                self._changed.notify_all()
            for held in taken:
                self._jobs.put_nowait(held)

    async def _receive(self, room: int) -> list[ReceivedMessage]:
        working = self._working
        try:
            received = await self._group.receive(
                max_messages=working.asked(room),
                wait_seconds=working.poll_seconds,
                lease_seconds=working.lease_seconds,
                consumer_id=working.consumer_id,
            )
        except PostdateError as error:
            if is_final(error):
                raise
            logger.warning("Receiving for %s failed: %s", self._group.name, error)
            await self._rest(POLL_AGAIN_S)
            return []
        if received.paused:
            await self._rest(POLL_AGAIN_S)
        return received.messages

    async def _rest(self, seconds: float) -> None:
        """Wait, unless the consumer is told to stop."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for the condition, the lock held before and after; whether it came true."""
        try:
            await asyncio.wait_for(self._changed.wait_for(condition), seconds)
        except TimeoutError:
            return condition()
        return True

    # --- working

    async def _work(self) -> None:
        while True:
            held = await self._jobs.get()
            # After `stop` nothing is begun, though the poll may take a while to come back.
            if self._stopping.is_set() or not self._holdings.start(held):
                continue
            try:
                await self._handler(held.message)
            except asyncio.CancelledError:
                return  # The grace is over, and its message was given back.
            except Exception as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
                logger.info("The handler failed for %s.", held.message.id, exc_info=True)
                outcome = outcome_of(error)
            else:
                outcome = ACK
            async with self._changed:
                self._holdings.finish(held, outcome)
                self._changed.notify_all()

    # --- renewing and settling

    async def _settle(self) -> None:
        while True:
            async with self._changed:
                await self._until(self._has_errand, self._until_renewal())
                if self._holdings.finished and not self._ending:
                    await self._linger()
                renewals = self._holdings.due_renewals(monotonic())
                settlements = self._holdings.settlements()
                if self._ending and not settlements and self._holdings.empty:
                    return
            if renewals:
                await self._renew(renewals)
            for settlement in settlements:
                await self._tell(settlement)

    def _has_errand(self) -> bool:
        return self._holdings.finished > 0 or self._ending

    async def _linger(self) -> None:
        """Wait a moment for acks to go together, unless everything held is finished already."""
        full = self._holdings.capacity - self._holdings.room
        await self._until(
            lambda: self._holdings.finished >= full or self._ending, self._working.linger_seconds
        )

    def _until_renewal(self) -> float:
        next_s = self._holdings.next_renewal_s()
        return 1.0 if next_s is None else min(1.0, max(0.0, next_s - monotonic()))

    async def _renew(self, held: Sequence[Held]) -> None:
        asked_s = monotonic()
        try:
            results = await self._group.extend(
                [one.receipt for one in held], lease_seconds=self._working.lease_seconds
            )
        except PostdateError as error:
            logger.warning("Leases could not be renewed: %s", error)
            self._holdings.not_renewed(held, monotonic())
            return
        self._holdings.renewed(held, results, asked_s)

    async def _tell(self, settlement: Settlement) -> None:
        try:
            results = await self._ask(settlement)
        except PostdateError as error:
            logger.warning("%s failed: %s; they come again.", settlement.outcome.verb, error)
            async with self._changed:
                self._holdings.let_go(settlement)
                self._changed.notify_all()
            return
        async with self._changed:
            self._holdings.settled(settlement, results)
            self._changed.notify_all()

    async def _ask(self, settlement: Settlement) -> list[ReceiptResult]:
        outcome, receipts = settlement.outcome, settlement.receipts
        match outcome.verb:
            case "ack":
                return await self._group.ack(receipts)
            case "retry":
                return await self._group.retry(receipts, delay=outcome.delay, reason=outcome.reason)
            case "dead_letter":
                return await self._group.dead_letter(receipts, reason=outcome.reason)
            case "release":
                return await self._group.release(receipts)

    # --- the end

    async def _end(self, workers: list[asyncio.Task[None]], settler: asyncio.Task[None]) -> None:
        self._stopping.set()
        async with self._changed:
            self._holdings.give_back(running=False)
            self._changed.notify_all()
            await self._until(lambda: self._holdings.running == 0, self._working.grace_seconds)
            self._holdings.give_back(running=True)
            self._ending = True
            self._changed.notify_all()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(settler, *workers, return_exceptions=True)
