"""Consuming over the real store: many threads, restarts, lost power, retention."""

import threading
from pathlib import Path

import pytest

from queues.store import Outgoing, Sizes, Store, StoreSettings
from queues.store.consuming import Consuming, Delivery, Subscription
from queues.store.groupoffsets import cut_groups
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk

SETTINGS = StoreSettings(
    sizes=Sizes(
        segment_bytes=1 << 20, consume_queue_units=1_000, index_slots=64, index_entries=8_000
    ),
    ballast_bytes=65_536,
)
ORDERS = [Subscription("orders")]
LEASE = 60_000


class Running:
    """A store with messages, and a group that consumes them."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, ManualClock()
        self.start()

    def start(self) -> None:
        self.store = Store.open(self.root, SETTINGS, clock=self.clock, disk=UnsyncedDisk())
        self.consuming = Consuming(self.store, b"a secret of the tests")

    def stop(self) -> None:
        self.consuming.close()
        self.store.close()

    def send(self, count: int, *, queue_count: int = 1, body: bytes = b"x") -> None:
        now_ms = self.clock.now_ms()
        ids = self.store.new_ids("orders", now_ms, count)
        self.store.send(
            [
                Outgoing(
                    topic="orders",
                    queue_id=number % queue_count,
                    unique_id=unique_id,
                    body=body,
                    born_ms=now_ms,
                    tag="even" if number % 2 == 0 else "odd",
                )
                for number, unique_id in enumerate(ids)
            ]
        )

    def receive(self, count: int, tags: str = "*") -> list[Delivery]:
        return self.consuming.receive(
            "g",
            [Subscription("orders", tags)],
            max_messages=count,
            lease_ms=LEASE,
            now_ms=self.clock.now_ms(),
        ).deliveries

    def ack(self, deliveries: list[Delivery]) -> set[str]:
        receipts = [delivery.receipt for delivery in deliveries]
        return set(self.consuming.ack("g", receipts, self.clock.now_ms()))


@pytest.fixture
def running(tmp_path: Path):
    running = Running(tmp_path / "store")
    yield running
    running.stop()


def test_what_was_sent_is_received_and_acked(running):
    running.send(100, queue_count=4)
    deliveries = running.receive(200)
    places = {(delivery.queue_id, delivery.queue_offset) for delivery in deliveries}
    assert places == {(queue_id, offset) for queue_id in range(4) for offset in range(25)}
    assert running.ack(deliveries) == {"acked"}
    assert running.receive(1) == []


def test_tags_are_filtered(running):
    running.send(100)
    odd = [delivery.queue_offset for delivery in running.receive(200, "odd")]
    assert odd == list(range(1, 100, 2))


def test_leases_and_acks_survive_a_restart(running):
    running.send(10)
    deliveries = running.receive(6)
    running.ack(deliveries[:3])
    running.stop()
    running.start()
    assert [delivery.queue_offset for delivery in running.receive(9)] == [6, 7, 8, 9]
    assert running.ack(deliveries[3:5]) == {"acked"}
    running.clock.advance(LEASE)
    again = running.receive(9)
    assert [(delivery.queue_offset, delivery.attempt) for delivery in again] == [
        *((5, 2), (6, 2), (7, 2), (8, 2), (9, 2))
    ]


def test_threads_never_hold_the_same_message(running):
    running.send(400, queue_count=4)
    taken: list[Delivery] = []

    def consume() -> None:
        while deliveries := running.receive(7):
            taken.extend(deliveries)
            running.ack(deliveries)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    places = [(delivery.queue_id, delivery.queue_offset) for delivery in taken]
    assert len(places) == len(set(places)) == 400


def test_what_the_log_lost_with_the_power_is_not_believed_of_the_next_messages(running):
    running.send(10)
    deliveries = running.receive(8)
    running.ack(deliveries[:6])
    running.consuming.close()
    running.clock.advance(1_000)
    cut_groups(
        running.store.disk, running.root, lambda place: 3 if place.topic == "orders" else 0, 1 << 60
    )
    running.consuming = Consuming(running.store, b"a secret of the tests")
    path = running.root / "config" / "consumerOffset.json"
    assert b'"orders@g":{"0":3}' in path.read_bytes()
    assert [(d.queue_offset, d.attempt) for d in running.receive(9)] == [
        *((offset, 1) for offset in range(3, 10))
    ]
    assert running.ack(deliveries[6:]) == {"expired"}


def test_a_segment_that_a_lease_points_into_is_told_to_retention(running):
    running.send(10)
    assert running.consuming.leased_from() is None
    deliveries = running.receive(5)
    running.ack(deliveries[:2])
    units = running.store.read_units("orders", 0, 0, 10)
    assert running.consuming.leased_from() == units["log_offset"][2]
    running.ack(deliveries[2:])
    assert running.consuming.leased_from() is None


def test_a_damaged_record_is_stepped_over_and_the_rest_comes(running):
    running.send(5)
    unit = running.store.read_units("orders", 0, 2, 1)[0]
    segment = min((running.root / "commitlog").iterdir())
    with segment.open("r+b") as file:
        file.seek(int(unit["log_offset"]) + 90)
        file.write(b"?")
    received = running.consuming.receive(
        "g", ORDERS, max_messages=9, lease_ms=LEASE, now_ms=running.clock.now_ms()
    )
    assert [delivery.queue_offset for delivery in received.deliveries] == [0, 1, 3, 4]
    assert received.damaged == 1


def test_the_lag_tells_ready_leased_and_since_when(running):
    sent_ms = running.clock.now_ms()
    running.send(10)
    running.clock.advance(5_000)
    running.receive(4)
    (lag,) = running.consuming.lag("g", ORDERS)
    assert (lag.ready, lag.leased, lag.oldest_ready_ms) == (6, 4, sent_ms)
    (odd,) = running.consuming.lag("g", [Subscription("orders", "odd")])
    assert (odd.ready, odd.ready_exact) == (3, True)
