"""Receives that wait: who is woken, and by what."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from queues.store.consuming import Consuming, Subscription
from queues.store.disk import Disk
from queues.store.doorbell import Bell
from queues.store.waiting import ReadyWatch
from tests.support.clock import ManualClock
from tests.support.queuesinmemory import QueuesInMemory
from tests.support.storeworld import open_store, outgoing

LONG_S = 30.0
ORDERS = [Subscription("orders")]


class World:
    """Queues, a bell, and receives that wait, each in a thread of its own."""

    def __init__(self, root: Path) -> None:
        disk = Disk()
        self.queues = QueuesInMemory(root)
        self.queues.add_queue("orders", 0)
        self.queues.add_queue("other", 0)
        self.bell = Bell(disk.map(root / "bell", size_bytes=4096, create=True), 0)
        self.clock = ManualClock()
        self.consuming = Consuming(self.queues, b"a secret of the tests")
        self.watch = ReadyWatch(self.queues, self.bell, self.consuming, self.clock)
        self.waiters: list[threading.Thread] = []
        self.woken: list[tuple[str, bool]] = []
        self.changed = threading.Condition()

    def receive(
        self, group: str, topics: Sequence[Subscription] = ORDERS, lease_ms: int = 60_000
    ) -> int:
        received = self.consuming.receive(
            group, topics, max_messages=1, lease_ms=lease_ms, now_ms=self.clock.now_ms()
        )
        return len(received.deliveries)

    def wait(self, group: str, count: int = 1, timeout_s: float = LONG_S) -> None:
        """Let receives wait that found nothing; returns once they do."""
        before = self.watch._state.waiting
        for _ in range(count):
            thread = threading.Thread(target=self._wait, args=(group, timeout_s))
            self.waiters.append(thread)
            thread.start()
        assert self.comes_true(lambda: self.watch._state.waiting == before + count)

    def _wait(self, group: str, timeout_s: float) -> None:
        self.receive(group)
        woken = self.watch.wait(group, ORDERS, timeout_s)
        if woken:
            self.receive(group)
        with self.changed:
            self.woken.append((group, woken))
            self.changed.notify_all()

    def sleeping(self, group: str) -> int:
        """How many wait and have looked for themselves already."""
        entry = self.watch._state.groups.get(group)
        return len(entry.condition._waiters) if entry else 0

    def send(self, topic: str = "orders") -> None:
        self.queues.put(topic, 0, b"x")
        self.bell.ring()

    def comes_true(self, holds: Callable[[], bool], timeout_s: float = 5.0) -> bool:
        pause = threading.Event()
        for _ in range(int(timeout_s / 0.005)):
            if holds():
                return True
            pause.wait(0.005)
        return holds()

    def woken_count(self, count: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: len(self.woken) >= count, 5.0)

    def stays_quiet(self) -> bool:
        """Nobody else wakes within some rounds of the watch."""
        with self.changed:
            before = len(self.woken)
            return not self.changed.wait_for(lambda: len(self.woken) > before, 0.2)

    def close(self) -> None:
        self.watch.close()
        for thread in self.waiters:
            thread.join()
        self.consuming.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def test_a_message_wakes_one_waiter_of_its_group_and_not_all(world: World) -> None:
    world.wait("g", 5)
    world.send()
    assert world.woken_count(1)
    assert world.stays_quiet()
    assert world.woken == [("g", True)]


def test_every_group_of_the_topic_is_woken(world: World) -> None:
    world.wait("g", 2)
    world.wait("h", 2)
    world.send()
    assert world.woken_count(2)
    assert sorted(world.woken) == [("g", True), ("h", True)]


def test_as_many_waiters_wake_as_messages_came(world: World) -> None:
    world.wait("g", 5)
    for _ in range(3):
        world.queues.put("orders", 0, b"x")
    world.bell.ring()
    assert world.woken_count(3)
    assert world.stays_quiet()


def test_a_message_of_another_topic_wakes_nobody(world: World) -> None:
    world.wait("g")
    world.send("other")
    assert world.stays_quiet()


def test_a_message_that_cannot_be_read_yet_wakes_when_it_can(world: World) -> None:
    world.wait("g")
    world.queues.unreadable = 1
    world.send()
    assert world.stays_quiet()
    world.queues.unreadable = 0
    world.bell.ring()
    assert world.woken_count(1)


def test_a_message_that_was_seen_before_its_waiter_came_wakes_it_once_it_can_be_read(
    world: World,
) -> None:
    other = [Subscription("other")]
    world.receive("h", other)
    world.receive("g")
    elsewhere = threading.Thread(target=world.watch.wait, args=("h", other, LONG_S))
    world.waiters.append(elsewhere)
    elsewhere.start()
    assert world.comes_true(lambda: world.watch._state.waiting == 1)
    world.queues.unreadable = 1
    world.send()
    assert world.comes_true(lambda: bool(world.watch._state.tips.any()))
    world.wait("g")
    world.queues.unreadable = 0
    world.bell.ring()
    assert world.woken_count(1)


def test_the_first_message_of_a_new_queue_wakes_a_waiter(world: World) -> None:
    world.wait("g")
    world.queues.put("orders", 7, b"x")
    world.bell.ring()
    assert world.woken_count(1)


def test_a_group_that_changed_its_topics_is_woken_by_the_new_ones(world: World) -> None:
    world.wait("g")
    other = [Subscription("other")]
    world.receive("g", other)  # A group that never came finds something, for all it knows.
    thread = threading.Thread(target=world.watch.wait, args=("g", other, LONG_S))
    world.waiters.append(thread)
    thread.start()
    assert world.comes_true(lambda: world.sleeping("g") == 2)
    world.send("orders")
    assert world.stays_quiet()
    world.send("other")
    assert world.comes_true(lambda: world.watch._state.waiting == 1)


def test_a_lease_that_runs_out_wakes_a_waiter(world: World) -> None:
    world.send()
    assert world.receive("g", lease_ms=10_000) == 1
    world.wait("g", 2)
    assert world.stays_quiet()
    world.clock.advance(10_000)
    assert world.woken_count(1)
    assert world.stays_quiet()


def test_what_came_before_the_wait_is_not_missed(world: World) -> None:
    assert world.receive("g") == 0
    world.send()
    assert world.watch.wait("g", ORDERS, LONG_S)


def test_a_receive_that_left_something_wakes_the_next(world: World) -> None:
    world.wait("g", 2)
    world.watch.wake("g")
    assert world.woken_count(1)
    assert world.stays_quiet()


def test_a_wait_gives_up_after_its_time(world: World) -> None:
    world.receive("g")
    assert not world.watch.wait("g", ORDERS, 0.01)


def test_closing_lets_every_waiter_go(world: World) -> None:
    world.wait("g", 3)
    world.watch.close()
    assert world.woken_count(3)
    assert {woken for _, woken in world.woken} == {False}
    assert not world.watch.wait("g", ORDERS, LONG_S)


def test_no_more_wait_than_may(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queues.store.waiting.WAITERS_MAX", 1)
    world.wait("g", 1)
    assert not world.watch.wait("h", ORDERS, LONG_S)


def test_a_lease_that_another_process_gives_back_wakes_a_waiter_at_once(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "store", ManualClock()) as here,
        open_store(tmp_path / "store", here.clock) as there,
    ):
        here.send([outgoing(here)])
        there_consuming = Consuming(there, b"a secret of the tests")
        there_consuming.leases.bells = (there.loop_bell("given back"), there.bell)
        (delivery,) = there_consuming.receive(
            "g", ORDERS, max_messages=1, lease_ms=60_000, now_ms=here.clock.now_ms()
        ).deliveries
        here_consuming = Consuming(here, b"a secret of the tests")
        assert not here_consuming.receive(
            "g", ORDERS, max_messages=1, lease_ms=60_000, now_ms=here.clock.now_ms()
        ).deliveries
        # The clock stands still, so the watch has no ticks: only a bell can wake it.
        watch = ReadyWatch(
            here, here.bell, here_consuming, here.clock, here.loop_bell("given back")
        )
        waiting = threading.Thread(target=watch.wait, args=("g", ORDERS, LONG_S))
        waiting.start()
        pause = threading.Event()
        while not watch._state.waiting:
            pause.wait(0.001)
        assert there_consuming.leases.release("g", [delivery.receipt]) == ["released"]
        waiting.join(LONG_S / 3)
        assert not waiting.is_alive()
        watch.close()
        here_consuming.close()
        there_consuming.close()


def test_a_change_of_its_group_wakes_all_that_wait(world: World) -> None:
    changed: set[str] = set()
    world.watch.is_changed = lambda name, _: name in changed
    world.wait("g", 2)
    world.wait("other")
    changed.add("g")
    world.queues.changes += 1

    def ticked() -> bool:
        world.clock.advance(50)
        with world.changed:
            return len(world.woken) == 2

    assert world.comes_true(ticked)
    assert world.woken == [("g", True)] * 2
