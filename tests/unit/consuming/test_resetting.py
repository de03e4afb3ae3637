"""Resetting: a group begins anew, and a process that dies on the way leaves nothing in between."""

from pathlib import Path

import pytest

from queues.store.consuming import Consuming, Received, Subscription
from queues.store.errors import LedgerBusy
from queues.store.ledgers import Place
from queues.store.seeking import first_at
from tests.support.faulty_disk import Died, Fate, FaultyDisk, UnsyncedDisk
from tests.support.ledgerchecks import assert_ledgers_sound
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


def receive(consuming: Consuming, count: int = 32, now_ms: int = NOW) -> Received:
    return consuming.receive(
        "g", [Subscription("orders")], max_messages=count, lease_ms=LEASE, now_ms=now_ms
    )


def told(received: Received) -> list[tuple[int, int, int]]:
    return sorted((one.queue_id, one.queue_offset, one.attempt) for one in received.deliveries)


def receipts(received: Received) -> list[str]:
    return [one.receipt for one in received.deliveries]


@pytest.mark.parametrize("offset", [0, 3, 7, 10])
def test_a_group_begins_anew_at_an_offset_whatever_it_had_done(queues, consuming, offset):
    queues.fill("orders", 0, 10)
    consuming.ack("g", receipts(receive(consuming, 4)), NOW)
    held = receive(consuming, 4)
    consuming.resetting.reset("g", {("orders", 0): offset})
    assert_ledgers_sound(queues)
    assert set(consuming.ack("g", receipts(held), NOW)) == {"expired"}
    again = receive(consuming)
    assert told(again) == [(0, number, 1) for number in range(offset, 10)]
    assert set(consuming.ack("g", receipts(again), NOW)) <= {"acked"}
    assert told(receive(consuming, now_ms=NOW + 5 * LEASE)) == []


def test_a_group_that_begins_before_what_retention_left_begins_there(queues, consuming):
    queues.fill("orders", 0, 3)
    queues.retire("orders", 0, 1)
    receive(consuming, 1)
    consuming.resetting.reset("g", {("orders", 0): 0})
    assert told(receive(consuming)) == [(0, 1, 1), (0, 2, 1)]


def test_a_queue_that_the_group_never_saw_begins_there_too(queues, consuming):
    queues.fill("orders", 0, 5)
    consuming.resetting.reset("g", {("orders", 0): 3})
    assert told(receive(consuming)) == [(0, 3, 1), (0, 4, 1)]


def test_in_its_other_queues_leases_end_and_the_place_stays(queues, consuming):
    queues.fill("orders", 0, 4)
    queues.fill("orders", 1, 4)
    first = receive(consuming)
    acked = [one.receipt for one in first.deliveries if one.queue_offset < 2]
    consuming.ack("g", acked, NOW)
    consuming.resetting.reset("g", {("orders", 0): 0})
    assert_ledgers_sound(queues)
    assert set(consuming.ack("g", receipts(first), NOW)) == {"expired"}
    assert told(receive(consuming)) == [
        *((0, number, 1) for number in range(4)),
        *((1, number, 2) for number in (2, 3)),
    ]


def test_what_was_counted_is_kept(queues, consuming):
    queues.fill("orders", 0, 3)
    receive(consuming)
    consuming.expire(NOW + LEASE)
    consuming.resetting.reset("g", {("orders", 0): 0})
    header = consuming._header_of(Place("g", "orders", 0))
    assert (header.ran_out, header.leased, header.again) == (3, 0, 0)


def test_another_group_stays_where_it_is(queues, consuming):
    queues.fill("orders", 0, 3)
    other = [Subscription("orders")]
    held = consuming.receive("h", other, max_messages=9, lease_ms=LEASE, now_ms=NOW)
    consuming.resetting.reset("g", {("orders", 0): 0})
    assert set(consuming.ack("h", receipts(held), NOW)) == {"acked"}


def test_a_ledger_that_another_keeps_is_an_error_and_not_a_hang(queues, consuming, monkeypatch):
    monkeypatch.setattr("queues.store.resetting.LEDGER_WAIT_S", 0.01)
    queues.fill("orders", 0, 3)
    receive(consuming)
    other = Consuming(queues, SECRET)
    (place,) = other._ledgers.places("g")
    with other._ledgers.use(place) as ledger:
        assert ledger.try_hold()
        with pytest.raises(LedgerBusy):
            consuming.resetting.reset("g", {("orders", 0): 0})
        ledger.release()


@pytest.mark.parametrize("arrived", [0.0, 1.0])
@pytest.mark.parametrize("offset", [0, 20])
def test_a_reset_that_died_half_way_happened_or_did_not(tmp_path, offset, arrived):
    die_at, died, outcomes = 0, True, set()
    while died:
        queues = QueuesInMemory(tmp_path / f"{die_at}", UnsyncedDisk())
        queues.fill("orders", 0, 24)
        before = Consuming(queues, SECRET)
        before.ack("g", receipts(receive(before, 6)), NOW)
        receive(before, 6)
        before._ledgers.close()
        queues.disk = disk = FaultyDisk(Fate(die_at, torn=arrived))
        died = False
        try:
            Consuming(queues, SECRET).resetting.reset("g", {("orders", 0): offset})
        except Died:
            died = True
        disk.bury()
        queues.disk = UnsyncedDisk()
        survivor = Consuming(queues, SECRET)
        came = told(receive(survivor, now_ms=NOW + LEASE))
        assert_ledgers_sound(queues)
        done = [(0, number, 1) for number in range(offset, 24)]
        undone = [(0, n, 2) for n in range(6, 12)] + [(0, n, 1) for n in range(12, 24)]
        assert came in (done, undone)
        outcomes.add(came == done)
        survivor._ledgers.close()
        die_at += 1
    assert outcomes == {True, False}


def test_a_time_means_the_first_message_stored_then_or_after(queues):
    for store_ms in (10, 20, 20, 30):
        queues.put("orders", 0, b"x", store_ms=store_ms)
    found = [first_at(queues, "orders", 0, at_ms) for at_ms in (0, 10, 11, 20, 21, 30, 31)]
    assert found == [0, 0, 1, 1, 3, 3, 4]


def test_a_time_is_sought_in_what_retention_left_and_over_damage(queues):
    for store_ms in range(10, 110, 10):
        queues.put("orders", 0, b"x", store_ms=store_ms)
    queues.retire("orders", 0, 4)
    for offset in (5, 6, 7):
        queues.damage("orders", 0, offset)
    assert first_at(queues, "orders", 0, 10) == 4
    # What cannot be read between is handed out to nobody, so it may be found as well.
    assert first_at(queues, "orders", 0, 90) in (5, 6, 7, 8)
    assert first_at(queues, "orders", 0, 1_000) == 10


def test_of_a_queue_without_messages_any_time_is_its_end(queues):
    queues.add_queue("orders", 0)
    assert first_at(queues, "orders", 0, 10) == 0
