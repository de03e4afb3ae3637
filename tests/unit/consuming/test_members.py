"""Members: who consumes from a broadcasting group, and what is kept of whom."""

import threading
from pathlib import Path

import pytest

from queues.store.consuming import Consuming, Received, Subscription
from queues.store.errors import MembersFull
from queues.store.members import FORGOTTEN_AFTER_MS, Member
from tests.support.faulty_disk import Died, Fate, FaultyDisk, UnsyncedDisk
from tests.support.queuesinmemory import QueuesInMemory

SECRET = b"a secret of the tests"
NOW = 1_700_000_000_000
LEASE = 60_000


@pytest.fixture
def queues(tmp_path: Path) -> QueuesInMemory:
    return QueuesInMemory(tmp_path, UnsyncedDisk())


@pytest.fixture
def consuming(queues: QueuesInMemory) -> Consuming:
    return Consuming(queues, SECRET)


def enter(consuming: Consuming, consumer_id: str = "web-1", now_ms: int = NOW) -> Member:
    def begin(name: str) -> None:
        consuming.ensure_group(name, "orders", 0, 2)

    return consuming.members.enter("cache", consumer_id, now_ms, begin)


def receive(consuming: Consuming, member: Member, now_ms: int = NOW) -> Received:
    return consuming.receive(
        member.name, [Subscription("orders")], max_messages=32, lease_ms=LEASE, now_ms=now_ms
    )


def offsets(received: Received) -> list[int]:
    return [one.queue_offset for one in received.deliveries]


def test_a_member_has_its_name_for_as_long_as_it_is_known(queues, consuming):
    first = enter(consuming)
    assert first.name == f"cache@{first.digits}"
    assert enter(consuming, now_ms=NOW + 90_000).name == first.name
    assert enter(Consuming(queues, SECRET)).name == first.name
    assert enter(consuming, "web-2").name != first.name
    assert [one.consumer_id for one in consuming.members.of("cache")] == ["web-1", "web-2"]
    assert consuming.members.of("other") == []


def test_each_member_gets_each_message_and_acks_for_itself(queues, consuming):
    queues.fill("orders", 0, 5)
    one, two = enter(consuming, "1"), enter(consuming, "2")
    first = receive(consuming, one)
    assert offsets(first) == [2, 3, 4]
    receipts = [delivery.receipt for delivery in first.deliveries]
    assert set(consuming.ack(two.name, receipts, NOW)) == {"invalid"}
    assert set(consuming.ack(one.name, receipts, NOW)) == {"acked"}
    assert offsets(receive(consuming, two)) == [2, 3, 4]
    assert offsets(receive(consuming, one, NOW + LEASE)) == []
    assert offsets(receive(consuming, two, NOW + LEASE)) == [2, 3, 4]


def test_what_a_member_drops_is_settled_for_it_alone(queues, consuming, caplog):
    queues.fill("orders", 0, 4)
    one, two = enter(consuming, "1"), enter(consuming, "2")
    (first, second) = receive(consuming, one).deliveries
    drop = consuming.dropping.drop
    assert drop(one.name, [first.receipt, "x"], NOW, "it is broken") == ["dropped", "invalid"]
    assert "it is broken" in caplog.text
    assert drop(one.name, [first.receipt], NOW, None) == ["dropped"]
    assert consuming.ack(one.name, [first.receipt], NOW) == ["expired"]
    assert consuming.ack(one.name, [second.receipt], NOW) == ["acked"]
    assert drop(one.name, [second.receipt], NOW, None) == ["expired"]
    standing = consuming.standing(one.name, "orders", 0, 2, NOW)
    assert standing is not None
    assert standing.state == "dropped"
    assert offsets(receive(consuming, one, NOW + LEASE)) == []
    assert offsets(receive(consuming, two)) == [2, 3]


def test_who_was_not_seen_for_long_is_forgotten_and_begins_anew(queues, consuming):
    queues.fill("orders", 0, 4)
    old, kept = enter(consuming, "old"), enter(consuming, "kept")
    held = receive(consuming, old)
    enter(consuming, "kept", NOW + 3 * 86_400_000)
    assert consuming.members.forget_unseen(NOW + FORGOTTEN_AFTER_MS - 1) == 0
    assert consuming.members.forget_unseen(NOW + FORGOTTEN_AFTER_MS) == 1
    assert [one.name for one in consuming.members.of("cache")] == [kept.name]
    assert {place.group for place in consuming._ledgers.places()} == {kept.name}
    assert consuming.leased_from() is None
    receipts = [delivery.receipt for delivery in held.deliveries]
    assert set(consuming.ack(old.name, receipts, NOW)) == {"expired"}
    assert not (queues.root / "postdate" / "ledger" / old.name).exists()
    again = enter(consuming, "old", NOW + FORGOTTEN_AFTER_MS)
    assert again.name != old.name
    assert offsets(receive(consuming, again)) == [2, 3]


def test_another_process_sees_who_was_forgotten(queues, consuming):
    queues.fill("orders", 0, 4)
    other = Consuming(queues, SECRET)
    before = enter(consuming)
    assert enter(other).name == before.name
    other.members.forget("cache")
    assert enter(consuming).name != before.name


def test_a_group_has_so_many_members_at_the_most(consuming, monkeypatch):
    monkeypatch.setattr("queues.store.members.MEMBERS_MAX", 2)
    enter(consuming, "1")
    enter(consuming, "2")
    with pytest.raises(MembersFull):
        enter(consuming, "3")
    enter(consuming, "1", NOW + 90_000)


def test_threads_of_one_consumer_are_one_member(queues):
    processes = [Consuming(queues, SECRET) for _ in range(4)]
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: names.append(enter(one).name)) for one in processes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(names) == 4
    assert len(set(names)) == 1


@pytest.mark.parametrize("arrived", [0.0, 1.0])
def test_a_member_made_half_way_begins_where_it_is_told(tmp_path, arrived):
    die_at, died = 0, True
    while died:
        queues = QueuesInMemory(tmp_path / f"{die_at}", UnsyncedDisk())
        queues.fill("orders", 0, 4)
        queues.disk = disk = FaultyDisk(Fate(die_at, torn=arrived))
        died = False
        try:
            enter(Consuming(queues, SECRET))
        except Died:
            died = True
        disk.bury()
        queues.disk = UnsyncedDisk()
        survivor = Consuming(queues, SECRET)
        assert offsets(receive(survivor, enter(survivor))) == [2, 3]
        assert len(survivor.members.of("cache")) == 1
        survivor._ledgers.close()
        die_at += 1
    assert die_at > 3
