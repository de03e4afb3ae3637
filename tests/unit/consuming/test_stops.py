"""A process that dies at any of its writes: nothing is lost, and what was acked stays acked."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from queues.store.consuming import Consuming, Subscription
from tests.support.faulty_disk import Died, Fate, FaultyDisk, UnsyncedDisk
from tests.support.ledgerchecks import assert_ledgers_sound
from tests.support.queuesinmemory import QueuesInMemory

NOW = 1_700_000_000_000
LEASE = 60_000
COUNT = 24
LATER = NOW + 10 * LEASE


class World:
    """A queue of which a part is acked, a part leased, a part ready again, a part new."""

    def __init__(self, root: Path) -> None:
        self.queues = QueuesInMemory(root, UnsyncedDisk())
        for number in range(COUNT):
            self.queues.put("orders", 0, b"x", tag="b" if number % 5 == 4 else "a")
        process = self.start()
        self.first = self.receive(process, 12, NOW - LEASE)
        self.acked = {0, 1, 3, 8}
        process.ack("g", [self.first[at].receipt for at in (0, 1, 3, 7)], NOW - LEASE)
        process.expire(NOW)
        self.held = self.receive(process, 4, NOW)
        process.save_offsets()
        process._ledgers.close()

    def start(self) -> Consuming:
        return Consuming(self.queues, b"a secret of the tests")

    def receive(self, process: Consuming, count: int, now_ms: int):
        return process.receive(
            "g", [Subscription("orders", "a")], max_messages=count, lease_ms=LEASE, now_ms=now_ms
        ).deliveries

    def receive_many(self, process: Consuming) -> None:
        self.receive(process, 9, NOW)

    def ack_many(self, process: Consuming) -> None:
        process.ack("g", [delivery.receipt for delivery in self.held], NOW)

    def ack_one(self, process: Consuming) -> None:
        process.ack("g", [self.held[0].receipt], NOW)

    def expire(self, process: Consuming) -> None:
        process.expire(NOW + 2 * LEASE)

    def lapse(self, process: Consuming) -> None:
        self.queues.retire("orders", 0, 7)
        self.receive(process, 1, NOW)

    def save(self, process: Consuming) -> None:
        self.ack_many(process)
        process.save_offsets()

    def work_on(self, process: Consuming) -> None:
        for _ in range(4):
            deliveries = self.receive(process, 3, NOW)
            process.ack("g", [delivery.receipt for delivery in deliveries[1:]], NOW)


OPERATIONS: dict[str, tuple[Callable[[World, Consuming], None], set[int]]] = {
    "receive many": (World.receive_many, set()),
    "ack many": (World.ack_many, {2, 5, 6, 7}),
    "ack one": (World.ack_one, {2}),
    "expire": (World.expire, set()),
    "lapse": (World.lapse, set(range(7))),
    "save the offsets": (World.save, {2, 5, 6, 7}),
    "work on": (World.work_on, set(range(COUNT))),
}


def writes_of(operate: Callable[[World, Consuming], None], root: Path) -> int:
    world = World(root)
    fate = Fate()
    world.queues.disk = disk = FaultyDisk(fate)
    operate(world, world.start())
    disk.bury()
    return fate.writes


@pytest.mark.parametrize("arrived", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_process_that_dies_at_any_write_loses_nothing(tmp_path, name, arrived):
    operate, may_be_settled = OPERATIONS[name]
    wanted = {number for number in range(COUNT) if number % 5 != 4}
    for die_at in range(writes_of(operate, tmp_path / "counted")):
        world = World(tmp_path / f"{die_at}")
        world.queues.disk = disk = FaultyDisk(Fate(die_at, torn=arrived))
        with contextlib.suppress(Died):
            operate(world, world.start())
        disk.bury()
        world.queues.disk = UnsyncedDisk()
        survivor = world.start()
        assert survivor.lag("g", [Subscription("orders", "a")])[0].leased <= COUNT
        assert_ledgers_sound(world.queues)
        came = [delivery.queue_offset for delivery in world.receive(survivor, 2 * COUNT, LATER)]
        assert_ledgers_sound(world.queues)
        assert len(came) == len(set(came))
        assert not set(came) & world.acked, "what was acked does not come again"
        assert wanted - world.acked - may_be_settled <= set(came), "nothing is lost"
        survivor._ledgers.close()


@pytest.mark.parametrize("arrived", [0.0, 1.0])
def test_a_group_dropped_half_way_is_dropped_by_the_next_try(tmp_path, arrived):
    die_at = 0
    died = True
    while died:
        world = World(tmp_path / f"{die_at}")
        world.queues.disk = disk = FaultyDisk(Fate(die_at, torn=arrived))
        died = False
        try:
            world.start().drop_group("g")
        except Died:
            died = True
        disk.bury()
        world.queues.disk = UnsyncedDisk()
        survivor = world.start()
        survivor.drop_group("g")
        survivor.ensure_group("g", "orders", 0, 20)
        came = world.receive(survivor, 2 * COUNT, LATER)
        assert [(delivery.queue_offset, delivery.attempt) for delivery in came] == [
            *((20, 1), (21, 1), (22, 1), (23, 1))
        ]
        die_at += 1
        survivor._ledgers.close()


@pytest.mark.parametrize("arrived", [0.0, 0.5, 1.0])
def test_a_group_made_half_way_begins_where_it_is_told_again(tmp_path, arrived):
    for die_at in range(3):
        queues = QueuesInMemory(tmp_path / f"{die_at}", UnsyncedDisk())
        queues.fill("orders", 0, 5)
        queues.disk = disk = FaultyDisk(Fate(die_at, torn=arrived))
        with contextlib.suppress(Died):
            Consuming(queues, b"a secret").ensure_group("g", "orders", 0, 3)
        disk.bury()
        queues.disk = UnsyncedDisk()
        survivor = Consuming(queues, b"a secret")
        survivor.ensure_group("g", "orders", 0, 3)
        received = survivor.receive(
            "g", [Subscription("orders")], max_messages=9, lease_ms=LEASE, now_ms=NOW
        )
        assert [delivery.queue_offset for delivery in received.deliveries] == [3, 4]
        survivor._ledgers.close()
