"""One write: stopped at every step and in the middle of every step, it is whole or it is not."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Once, Outgoing, Sizes, Store, StoreSettings
from tests.support.clock import ManualClock
from tests.support.faulty_disk import Died, Fate, FaultyDisk, UnsyncedDisk
from tests.support.invariants import assert_sound

SIZES = Sizes(
    segment_bytes=16_384, consume_queue_units=100, index_slots=64, index_entries=400,
    timer_log_bytes=5_200,
)  # fmt: skip
SETTINGS = StoreSettings(sizes=SIZES, ballast_bytes=65_536)


def opened(root: Path, clock: ManualClock) -> Store:
    return Store.open(root, SETTINGS, clock=clock, disk=UnsyncedDisk())


def outgoing(store: Store, number: int, **fields: object) -> Outgoing:
    now_ms = store.clock.now_ms()
    return Outgoing(
        topic="orders", queue_id=number % 2, unique_id=store.new_id("orders", now_ms),
        body=b"order %d" % number, born_ms=now_ms, tag="TagA", keys=(f"key{number}",),
        properties={"user": "name"}, **fields,
    )  # fmt: skip


class World:
    """A store with some messages in every state, and the operations that a process may die in."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, ManualClock()
        with opened(root, self.clock) as store:
            now_ms = self.clock.now_ms()
            self.levels = [outgoing(store, number, level=1) for number in range(4)]
            self.timed = [outgoing(store, number, due_ms=now_ms + 900) for number in range(16)]
            store.send(self.levels)
            store.send(self.timed)
            self.clock.advance(1_000)

    def send_one(self, store: Store) -> None:
        store.send([outgoing(store, 1, level=2)])

    def send_one_after_another(self, store: Store) -> None:
        """The second of a kind goes the short way of `single`."""
        due_ms = self.clock.now_ms() + 700
        for number in range(2):
            store.send([outgoing(store, number)])
            store.send([outgoing(store, 0, level=2)])
            store.send([outgoing(store, 1, due_ms=due_ms + number)])

    def send_many(self, store: Store) -> None:
        now_ms = self.clock.now_ms()
        store.send([outgoing(store, n, due_ms=now_ms + n * 50) for n in range(60)])

    def send_once(self, store: Store) -> None:
        due_ms = self.clock.now_ms() + 700
        for number in range(3):
            message = outgoing(store, number, due_ms=due_ms if number else None)
            store.once.send([Once(message, f"key {number}", "a" * 32)])

    def hand_over_levels(self, store: Store) -> None:
        store.hand_over(SCHEDULE_TOPIC, 0, np.arange(4))

    def hand_over_timed(self, store: Store) -> None:
        store.hand_over(TIMER_TOPIC, 0, np.arange(16))

    def hand_over_one_after_another(self, store: Store) -> None:
        """The second of a queue goes the short way of `onehandover`."""
        for offset in range(0, 16, 3):
            store.hand_over(TIMER_TOPIC, 0, np.array([offset]))
        for offset in range(4):
            store.hand_over(SCHEDULE_TOPIC, 0, np.array([offset]))

    def cancel(self, store: Store) -> None:
        store.cancel(self.timed[3].unique_id, by="tester")

    def move(self, store: Store) -> None:
        store.move(self.levels[2].unique_id, self.clock.now_ms() + 5_000, by="tester")

    def park(self, store: Store) -> None:
        store.park(TIMER_TOPIC, 0, 5, reason="the topic was deleted")


OPERATIONS: list[Callable[[World, Store], None]] = [
    World.send_one, World.send_one_after_another, World.send_many, World.send_once,
    World.hand_over_levels, World.hand_over_timed, World.hand_over_one_after_another, World.cancel,
    World.move, World.park,
]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def deaths(world: World, operation: Callable[[World, Store], None], torn: float) -> Iterator[Path]:
    """Run the operation in copies of the store, dying at its first write, its second, and so on."""
    number = 0
    while True:
        root = world.root.with_name(f"dying-{number}")
        subprocess.run(["cp", "-r", "--sparse=always", world.root, root], check=True)
        opened(root, world.clock).close()
        fate = Fate(torn=torn)
        disk = FaultyDisk(fate)
        store = Store.open(root, SETTINGS, clock=world.clock, disk=disk)
        fate.die_at = fate.writes + number
        try:
            operation(world, store)
            fate.die_at = None
        except Died:
            disk.bury()
            yield root
            shutil.rmtree(root)
            number += 1
        else:
            assert number > 10, "the operation made hardly any write: the test proves nothing"
            store.close()
            return


@pytest.mark.parametrize("torn", [0.0, 0.6])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_a_write_that_was_stopped_anywhere_is_whole_or_is_not(
    world: World, operation: Callable[[World, Store], None], torn: float
) -> None:
    with opened(world.root, world.clock) as store:
        before = len(assert_sound(store))
    outcomes = set()
    for root in deaths(world, operation, torn):
        with opened(root, world.clock) as store:
            outcomes.add(len(assert_sound(store)) - before)
            operation(world, store)
            assert_sound(store)
    assert 0 in outcomes
    assert max(outcomes) > 0


def test_another_process_repairs_the_write_of_a_dead_one_and_goes_on(world: World) -> None:
    survivors: list[Store] = []

    def hand_over_beside_another(world: World, store: Store) -> None:
        survivors.append(opened(store.root, world.clock))
        world.hand_over_timed(store)

    for _ in deaths(world, hand_over_beside_another, 0.5):
        with survivors.pop() as survivor:
            survivor.send([outgoing(survivor, 7)])
            assert_sound(survivor)
    survivors.pop().close()


def test_a_keyed_message_is_stored_once_whatever_write_its_first_send_died_in(
    world: World,
) -> None:
    with opened(world.root, world.clock) as store:
        before = len(assert_sound(store))
    for root in deaths(world, World.send_once, 0.5):
        with opened(root, world.clock) as store:
            world.send_once(store)
            assert len(assert_sound(store)) == before + 3


def test_a_message_is_handed_over_once_whatever_write_its_hand_over_died_in(world: World) -> None:
    for root in deaths(world, World.hand_over_timed, 0.5):
        with opened(root, world.clock) as store:
            store.hand_over(TIMER_TOPIC, 0, np.arange(16))
            delivered = [
                record.unique_id
                for record in assert_sound(store).values()
                if record.topic == "orders"
            ]
            assert sorted(delivered) == sorted(message.unique_id for message in world.timed)
