"""Consumers: every message is handled, settled as its handler ended, and given back at the end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest

from postdate.client import (
    AsyncClient,
    AsyncConsumer,
    Client,
    Consumer,
    ConsumerFailed,
    DeadLetterNow,
    Patience,
    ReceivedMessage,
    RetryLater,
    Unauthorized,
)
from postdate.client.consuming import holding
from postdate.client.consuming.working import logger
from tests.support.fakegroup import FakeGroup

KEY = "k" * 40
Handle = Callable[[ReceivedMessage], None]
QUICK: dict[str, Any] = {"poll_seconds": 0, "concurrency": 4}


class Threads:
    """A `Consumer`, run in a thread."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        http = httpx.Client(transport=httpx.MockTransport(answer))
        self.client = Client("http://test", KEY, http=http, patience=Patience(first_pause_s=0.001))

    def run(self, handle: Handle, meanwhile: Callable[[Any], None], **options: Any) -> Any:
        consumer = Consumer(self.client, "billing", handle, **{**QUICK, **options})
        thread = threading.Thread(target=consumer.run)
        thread.start()
        try:
            meanwhile(consumer)
        finally:
            consumer.stop()
            thread.join(30)
        assert not thread.is_alive()
        return consumer


class Tasks:
    """An `AsyncConsumer`, run in a loop of its own; its handler runs in a thread."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    def run(self, handle: Handle, meanwhile: Callable[[Any], None], **options: Any) -> Any:
        async def work() -> Any:
            http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
            patience = Patience(first_pause_s=0.001)
            async with (
                http,
                AsyncClient("http://test", KEY, http=http, patience=patience) as client,
            ):

                async def handle_async(message: ReceivedMessage) -> None:
                    await asyncio.to_thread(handle, message)

                consumer = AsyncConsumer(client, "billing", handle_async, **{**QUICK, **options})
                running = asyncio.create_task(consumer.run())
                try:
                    await asyncio.to_thread(meanwhile, consumer)
                finally:
                    consumer.stop()
                    await running
                return consumer

        return asyncio.run(work())


@pytest.fixture(params=[Threads, Tasks])
def run_with(request: Any) -> Any:
    """Runs a handler over a group until something is true."""

    def run(
        group: FakeGroup,
        handle: Handle,
        until: Callable[[FakeGroup], bool],
        meanwhile: Callable[[Any], None] = lambda _: None,
        **options: Any,
    ) -> Any:
        def wait(consumer: Any) -> None:
            meanwhile(consumer)
            group.until(until)

        return request.param(group).run(handle, wait, **options)

    return run


def test_every_message_is_handled_and_acked_in_batches(run_with: Any) -> None:
    group, seen = FakeGroup(100), []
    consumer = run_with(
        group, lambda message: seen.append(message.id), lambda g: len(g.ids("ack")) == 100,
        linger_seconds=0.5, prefetch=60,
    )  # fmt: skip
    assert sorted(seen) == sorted(group.ids("ack"))
    assert (consumer.figures.received, consumer.figures.acked) == (100, 100)
    assert sum(verb == "ack" for verb, _ in group.requests) < 50
    assert group.leased == 0


def test_an_exception_is_a_retry_with_its_reason(run_with: Any) -> None:
    group = FakeGroup(3)

    def handle(message: ReceivedMessage) -> None:
        match int(message.id, 16):
            case 0:
                raise ValueError("no such order")
            case 1:
                raise RetryLater("busy", delay="5m")
            case _:
                raise DeadLetterNow("garbage")

    run_with(group, handle, lambda g: len(g.told) == 3)
    asked = {(verb, one.get("reason"), one.get("delay")) for verb, one in group.requests}
    assert ("retry", "ValueError: no such order", None) in asked
    assert ("retry", "busy", "5m") in asked
    assert ("dead-letter", "garbage", None) in asked


def test_a_reason_that_no_utf8_holds_harms_nobody(
    run_with: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the handler raised is logged as it is, which pytest's own workers cannot send on.
    monkeypatch.setattr(logger, "disabled", True)
    group = FakeGroup(3)

    def handle(message: ReceivedMessage) -> None:
        match int(message.id, 16):
            case 0:
                raise ValueError("caf\udce9")
            case 1:
                raise DeadLetterNow("\ud800")

    run_with(group, handle, lambda g: len(g.told) == 3)
    asked = {(verb, one.get("reason")) for verb, one in group.requests if verb != "receive"}
    assert asked == {
        ("ack", None), ("retry", "ValueError: caf\\udce9"), ("dead-letter", "\\ud800"),
    }  # fmt: skip


def test_an_odd_number_is_handled_like_its_good_neighbours(run_with: Any) -> None:
    group, seen = FakeGroup(3, bodies={f"{1:032x}": '{"a":[-1e999]}'}), []
    run_with(group, lambda message: seen.append(message.content), lambda g: len(g.ids("ack")) == 3)
    assert sorted(seen) == [f"{0:032x}".encode(), f"{2:032x}".encode(), b'{"a":[-1e999]}']


def test_a_long_handler_keeps_its_lease_and_acks_with_the_new_receipt(
    run_with: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(holding, "RENEW_AFTER", 0.0005)
    group = FakeGroup(1)

    def handle(_: ReceivedMessage) -> None:
        group.until(lambda g: g.told.count(("extend", f"{0:032x}")) >= 3)

    consumer = run_with(group, handle, lambda g: len(g.ids("ack")) == 1)
    assert consumer.figures.acked == 1
    assert consumer.figures.renewed >= 3
    assert consumer.figures.lost == 0


def test_what_was_not_begun_is_released_when_it_stops(run_with: Any) -> None:
    group, gate = FakeGroup(20), threading.Event()
    begun: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        begun.append(message.id)
        assert gate.wait(30)

    def all_leased(g: FakeGroup) -> bool:
        if g.leased == 20 and len(begun) == 2:
            threading.Timer(0.05, gate.set).start()
            return True
        return False

    consumer = run_with(group, handle, all_leased, concurrency=2, prefetch=18)
    assert sorted(group.ids("ack")) == sorted(begun)
    assert len(group.ids("release")) == 20 - len(begun)
    assert consumer.figures.released == 20 - len(begun)
    assert group.leased == 0


def test_nothing_is_begun_after_stop_though_the_poll_is_still_out(run_with: Any) -> None:
    group, begun = FakeGroup(20), []
    consumer: list[Any] = []

    def handle(message: ReceivedMessage) -> None:
        begun.append(message.id)
        group.until(lambda g: bool(consumer) and g.leased == 20)
        consumer[0].stop()

    def remember(running: Any) -> None:
        consumer.append(running)

    run_with(group, handle, lambda g: len(g.told) == 20, concurrency=1, prefetch=19,
             meanwhile=remember)  # fmt: skip
    assert group.ids("ack") == begun
    assert len(begun) == 1
    assert len(group.ids("release")) == 19


def test_a_handler_that_outlives_the_grace_loses_its_message(run_with: Any) -> None:
    group, gate = FakeGroup(1), threading.Event()

    def handle(_: ReceivedMessage) -> None:
        gate.wait(30)

    threading.Timer(1.0, gate.set).start()
    run_with(group, handle, lambda g: g.leased == 1, grace_seconds=0.01)
    assert group.ids("ack") == []
    assert len(group.ids("release")) == 1


def test_a_lost_lease_is_counted_and_harms_nobody(run_with: Any) -> None:
    group = FakeGroup(1)

    def handle(message: ReceivedMessage) -> None:
        if message.attempt == 1:
            group.expire()

    consumer = run_with(group, handle, lambda g: len(g.ids("ack")) == 1)
    assert (consumer.figures.lost, consumer.figures.acked) == (1, 1)


def test_a_server_that_is_away_for_a_while_loses_nothing(run_with: Any) -> None:
    group = FakeGroup(10, fail_first=5)
    consumer = run_with(group, lambda _: None, lambda g: len(g.ids("ack")) == 10)
    assert consumer.figures.acked == 10


class Outcry(BaseException):
    """No `Exception`, as those of some libraries for tests are none."""


@pytest.mark.parametrize("error", [SystemExit(3), Outcry(3)])
def test_what_would_end_a_program_is_a_failed_attempt(
    run_with: Any, error: BaseException, caplog: Any
) -> None:
    group = FakeGroup(20)

    def handle(message: ReceivedMessage) -> None:
        if int(message.id, 16) < 10:
            raise error

    run_with(group, handle, lambda g: len(g.told) == 20, concurrency=2)
    assert len(group.ids("ack")) == len(group.ids("retry")) == 10
    reasons = {one["reason"] for verb, one in group.requests if verb == "retry"}
    assert reasons == {f"{type(error).__name__}: 3"}
    assert any(record.levelname == "WARNING" for record in caplog.records)


async def waits_for_what_was_cancelled() -> None:
    other = asyncio.create_task(asyncio.Event().wait())
    other.cancel()
    await other


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def consume(
    group: FakeGroup,
    handle: Callable[[ReceivedMessage], Awaitable[None]],
    meanwhile: Callable[[AsyncConsumer, asyncio.Task[None]], Awaitable[None]],
) -> None:
    """Run an asynchronous consumer in this very loop."""
    http = httpx.AsyncClient(transport=httpx.MockTransport(group.answer))
    async with http, AsyncClient("http://test", KEY, http=http) as client:
        options = {**QUICK, "concurrency": 2, "grace_seconds": 0.01}
        consumer = AsyncConsumer(client, "billing", handle, **options)
        running = asyncio.create_task(consumer.run())
        await meanwhile(consumer, running)


@pytest.mark.parametrize("cancelled", [waits_for_what_was_cancelled, cancels_itself])
def test_a_cancellation_within_a_handler_is_a_failed_attempt(cancelled: Any) -> None:
    group = FakeGroup(20)

    async def handle(message: ReceivedMessage) -> None:
        if int(message.id, 16) < 10:
            await cancelled()
        assert (task := asyncio.current_task()) is not None
        assert not task.cancelling()

    async def wait(consumer: AsyncConsumer, running: asyncio.Task[None]) -> None:
        await asyncio.to_thread(group.until, lambda g: len(g.told) == 20)
        consumer.stop()
        await running

    asyncio.run(consume(group, handle, wait))
    assert len(group.ids("ack")) == len(group.ids("retry")) == 10
    assert {one["reason"] for verb, one in group.requests if verb == "retry"} == {"CancelledError"}


def test_a_cancelled_consumer_ends_and_gives_back_what_it_holds() -> None:
    group = FakeGroup(5)

    async def wait(consumer: AsyncConsumer, running: asyncio.Task[None]) -> None:
        await asyncio.to_thread(group.until, lambda _: consumer.figures.received == 4)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(consume(group, lambda _: asyncio.Event().wait(), wait))
    assert (group.leased, group.ids("retry")) == (0, [])


def test_a_loop_that_ends_is_not_held_by_a_consumer_that_nobody_stopped() -> None:
    group = FakeGroup(5)

    async def leave(_: AsyncConsumer, running: asyncio.Task[None]) -> None:
        del running
        await asyncio.to_thread(group.until, lambda g: g.leased >= 4)

    asyncio.run(consume(group, lambda _: asyncio.Event().wait(), leave))
    assert group.ids("retry") == []


def test_an_interrupt_within_a_handler_ends_the_consumer() -> None:
    def interrupted(_: ReceivedMessage) -> None:
        raise KeyboardInterrupt

    http = httpx.Client(transport=httpx.MockTransport(FakeGroup(1)))
    client = Client("http://test", KEY, http=http)
    consumer = Consumer(client, "billing", interrupted, **QUICK, grace_seconds=0.01)
    with pytest.raises(ConsumerFailed, match="KeyboardInterrupt"):
        consumer.run()


def breaking(request: httpx.Request, group: FakeGroup) -> httpx.Response:
    """What no one reckoned with comes of every ack."""
    if request.url.path.endswith("/ack"):
        raise RuntimeError("a bug")
    return group(request)


def test_a_consumer_that_can_settle_no_more_ends_and_says_so() -> None:
    answer = partial(breaking, group=FakeGroup(3))
    http = httpx.Client(transport=httpx.MockTransport(answer))
    consumer = Consumer(Client("http://test", KEY, http=http), "billing", lambda _: None, **QUICK)
    with pytest.raises(ConsumerFailed, match="billing ended: RuntimeError") as raised:
        consumer.run()
    assert str(raised.value.__cause__) == "a bug"


def test_an_asynchronous_consumer_that_can_settle_no_more_ends_and_says_so() -> None:
    async def handle(_: ReceivedMessage) -> None:
        return

    async def work() -> None:
        answer = partial(breaking, group=FakeGroup(3))
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        async with http, AsyncClient("http://test", KEY, http=http) as client:
            await AsyncConsumer(client, "billing", handle, **QUICK).run()

    with pytest.raises(ConsumerFailed, match="billing ended: RuntimeError") as raised:
        asyncio.run(work())
    assert str(raised.value.__cause__) == "a bug"


def test_a_wrong_key_ends_the_consumer() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        return httpx.Response(401, json={"code": "unauthorized"})

    http = httpx.Client(transport=httpx.MockTransport(refuse))
    consumer = Consumer(Client("http://test", KEY, http=http), "billing", lambda _: None)
    with pytest.raises(Unauthorized):
        consumer.run()


@pytest.mark.parametrize("working", [{"concurrency": 0}, {"concurrency": -1}, {"prefetch": -1}])
def test_a_consumer_that_would_handle_nothing_is_refused(working: dict[str, Any]) -> None:
    with Client("http://test", KEY) as client, pytest.raises(ValueError, match="at least"):
        Consumer(client, "billing", print, **working)
