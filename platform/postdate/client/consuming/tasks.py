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
from postdate.client.consuming.outcomes import ACK, Figures, Outcome
from postdate.client.consuming.working import POLL_AGAIN_S, Working, failed, is_final, logger
from postdate.client.errors import ConsumerFailed, PostdateError
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
        #: The task in which `run` is.
        self._runner: asyncio.Task[Any] | None = None
        #: What ended a part of it before its time.
        self._broken_by: BaseException | None = None

    @property
    def figures(self) -> Figures:
        """What it has done so far."""
        return self._holdings.figures

    def stop(self) -> None:
        """Have `run` end: no new messages, handlers finish, the rest is released."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until `stop`; raises what makes polling useless (a wrong key, no such group).

        `ConsumerFailed` says that a part of it ended before its time.
        """
        self._runner = asyncio.current_task()
        workers = [self._task(self._work) for _ in range(self._working.concurrency)]
        settler = self._task(self._settle)
        try:
            await self._poll()
        finally:
            await self._end(workers, settler)
        if self._broken_by is not None:
            raise ConsumerFailed(self._group.name, self._broken_by) from self._broken_by

    def _task(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return asyncio.create_task(self._part(work))

    async def _part(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have the whole end with a part that fails: nothing would be settled, or renewed."""
        try:
            await work()
        except BaseException as error:
            if not (self._ending and isinstance(error, asyncio.CancelledError)):
                self._broken_by = self._broken_by or error
                self._stopping.set()
            raise

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
            outcome = await self._handle(held.message)
            async with self._changed:
                self._holdings.finish(held, outcome)
                self._changed.notify_all()

    async def _handle(self, message: ReceivedMessage) -> Outcome:
        try:
            await self._handler(message)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # They mean the consumer, and a loop that is gone.
        except asyncio.CancelledError as error:
            if self._is_cancelled():
                raise  # The grace is over, and its message was given back.
            _forget_cancelling()
            return failed(message, error)
        except BaseException as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
            return failed(message, error)
        return ACK

    def _is_cancelled(self) -> bool:
        """Whether the consumer is: any other cancellation is the handler's own affair."""
        worker, runner = asyncio.current_task(), self._runner
        assert worker is not None  # noqa: S101 (it is asked in a worker)
        assert runner is not None  # noqa: S101 (which `run` made)
        return worker.cancelling() > 0 and (self._ending or runner.cancelling() > 0)

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


def _forget_cancelling() -> None:
    """The worker goes on as a task that nobody cancelled: timeouts and groups ask for that."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
