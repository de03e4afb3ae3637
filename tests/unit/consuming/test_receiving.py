"""What a group receives, and what becomes of what it does not settle."""

from pathlib import Path

import pytest

from queues.store.consuming import Consuming, Received, Subscription
from queues.store.ledger import Ledger
from queues.store.ledgers import Place
from tests.support.queuesinmemory import QueuesInMemory, body_of

SECRET = b"a secret of the tests"
NOW = 1_700_000_000_000
LEASE = 60_000
ORDERS = [Subscription("orders")]


@pytest.fixture
def queues(tmp_path: Path) -> QueuesInMemory:
    return QueuesInMemory(tmp_path)


@pytest.fixture
def consuming(queues: QueuesInMemory) -> Consuming:
    return Consuming(queues, SECRET)


def receive(
    consuming: Consuming, count: int = 32, *, now_ms: int = NOW, tags: str = "*", group: str = "g"
) -> Received:
    return consuming.receive(
        group, [Subscription("orders", tags)], max_messages=count, lease_ms=LEASE, now_ms=now_ms
    )


def offsets(received: Received) -> list[int]:
    return [delivery.queue_offset for delivery in received.deliveries]


def ack(consuming: Consuming, received: Received, *, now_ms: int = NOW) -> set[str]:
    receipts = [delivery.receipt for delivery in received.deliveries]
    return set(consuming.ack("g", receipts, now_ms))


def test_messages_come_in_the_order_of_their_queue(queues, consuming):
    queues.fill("orders", 0, 5)
    received = receive(consuming, 3)
    assert [body_of(delivery.record) for delivery in received.deliveries] == [b"0", b"1", b"2"]
    assert received.more
    assert offsets(receive(consuming)) == [3, 4]
    assert offsets(receive(consuming)) == []


def test_a_delivery_tells_where_it_is_from_and_until_when_it_is_leased(queues, consuming):
    queues.fill("orders", 3, 1)
    (delivery,) = receive(consuming).deliveries
    assert (delivery.topic, delivery.queue_id, delivery.queue_offset) == ("orders", 3, 0)
    assert (delivery.attempt, delivery.lease_expires_ms) == (1, NOW + LEASE)


def test_a_leased_message_comes_to_nobody_else_before_its_lease_ends(queues, consuming):
    queues.fill("orders", 0, 3)
    receive(consuming)
    assert offsets(receive(consuming, now_ms=NOW + LEASE - 1)) == []


def test_a_lease_that_runs_out_makes_the_message_ready_with_the_next_attempt(queues, consuming):
    queues.fill("orders", 0, 3)
    receive(consuming)
    again = receive(consuming, now_ms=NOW + LEASE).deliveries
    assert [(delivery.queue_offset, delivery.attempt) for delivery in again] == [
        (0, 2),
        (1, 2),
        (2, 2),
    ]


def test_an_acked_message_never_comes_again(queues, consuming):
    queues.fill("orders", 0, 3)
    assert ack(consuming, receive(consuming)) == {"acked"}
    assert offsets(receive(consuming, now_ms=NOW + 10 * LEASE)) == []


def test_what_is_ready_again_comes_before_what_is_new(queues, consuming):
    queues.fill("orders", 0, 6)
    ack(consuming, receive(consuming, 1))
    receive(consuming, 2)
    assert offsets(receive(consuming, 3, now_ms=NOW + LEASE)) == [1, 2, 3]


def test_groups_do_not_disturb_each_other(queues, consuming):
    queues.fill("orders", 0, 2)
    assert offsets(receive(consuming, group="g")) == [0, 1]
    assert offsets(receive(consuming, group="h")) == [0, 1]


def test_queues_take_turns(queues, consuming):
    for queue_id in range(3):
        queues.fill("orders", queue_id, 4)
    taken = [receive(consuming, 2).deliveries[0].queue_id for _ in range(6)]
    assert taken == [0, 1, 2, 0, 1, 2]


def test_a_receive_is_filled_from_several_queues(queues, consuming):
    queues.fill("orders", 0, 2)
    queues.fill("orders", 1, 2)
    deliveries = receive(consuming).deliveries
    assert [(delivery.queue_id, delivery.queue_offset) for delivery in deliveries] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_a_group_subscribes_to_several_topics(queues, consuming):
    queues.fill("orders", 0, 1)
    queues.fill("refunds", 0, 1)
    both = [Subscription("orders"), Subscription("refunds")]
    received = consuming.receive("g", both, max_messages=9, lease_ms=LEASE, now_ms=NOW)
    assert {delivery.topic for delivery in received.deliveries} == {"orders", "refunds"}
    assert ack(consuming, received) == {"acked"}


def test_only_subscribed_tags_come(queues, consuming):
    for tag in ("a", "b", None, "c", "a"):
        queues.put("orders", 0, b"x", tag=tag)
    assert offsets(receive(consuming, tags="a || c")) == [0, 3, 4]
    assert offsets(receive(consuming)) == []


def test_two_tags_with_one_hash_are_told_apart(queues, consuming):
    queues.put("orders", 0, b"x", tag="BB")
    queues.put("orders", 0, b"x", tag="Aa")
    assert offsets(receive(consuming, tags="Aa")) == [1]


def test_a_tag_that_stands_in_the_body_only_does_not_match(queues, consuming):
    queues.put("orders", 0, b"\x02TAGS\x01Aa\x02", tag="BB")
    assert offsets(receive(consuming, tags="Aa")) == []


def test_filtered_messages_do_not_hold_the_floor_back(queues, consuming):
    for number in range(10):
        queues.put("orders", 0, b"x", tag="a" if number == 7 else "b")
    received = receive(consuming, tags="a")
    ack(consuming, received)
    assert offsets(received) == [7]
    assert consuming.lag("g", ORDERS)[0].ready == 0


def test_a_message_behind_filtered_ones_comes_again_alone(queues, consuming):
    for tag in ("b", "b", "a"):
        queues.put("orders", 0, b"x", tag=tag)
    assert offsets(receive(consuming, tags="a")) == [2]
    assert offsets(receive(consuming, tags="a", now_ms=NOW + LEASE)) == [2]
    assert offsets(receive(consuming, now_ms=NOW + 2 * LEASE)) == [2]


def test_a_damaged_record_is_stepped_over_and_counted(queues, consuming):
    queues.fill("orders", 0, 4)
    queues.damage("orders", 0, 0)
    queues.damage("orders", 0, 2)
    received = receive(consuming)
    assert offsets(received) == [1, 3]
    assert received.damaged == 2
    assert receive(consuming).damaged == 0


@pytest.mark.parametrize("tags", ["*", "a"])
def test_a_damaged_record_does_not_take_the_place_of_a_whole_one(queues, consuming, tags):
    for _ in range(6):
        queues.put("orders", 0, b"x", tag="a")
    for offset in (0, 1, 3):
        queues.damage("orders", 0, offset)
    assert offsets(receive(consuming, 1, tags=tags)) == [2]
    assert offsets(receive(consuming, 2, tags=tags)) == [4, 5]
    queues.damage("orders", 0, 2)
    assert offsets(receive(consuming, 1, tags=tags, now_ms=NOW + LEASE)) == [4]


def test_a_receive_is_cut_at_its_bytes_but_gives_one_message(queues, consuming):
    for size in (10_000, 400, 400, 400):
        queues.put("orders", 0, bytes(size))
    ask = {"max_messages": 32, "lease_ms": LEASE, "now_ms": NOW, "bytes_max": 1_500}
    assert offsets(consuming.receive("g", ORDERS, **ask)) == [0]
    second = consuming.receive("g", ORDERS, **ask)
    assert offsets(second) == [1, 2]
    assert second.more


def test_bytes_are_counted_over_all_queues(queues, consuming):
    queues.put("orders", 0, bytes(1_000))
    queues.put("orders", 1, bytes(1_000))
    received = consuming.receive(
        "g", ORDERS, max_messages=32, lease_ms=LEASE, now_ms=NOW, bytes_max=1_000
    )
    assert len(received.deliveries) == 1
    assert received.more


def test_a_queue_with_as_many_leases_as_it_may_hands_out_nothing_and_says_so(
    queues, consuming, monkeypatch
):
    monkeypatch.setattr("queues.store.handout.LEASES_MAX", 5)
    monkeypatch.setattr("queues.store.consuming.LEASES_MAX", 5)
    queues.fill("orders", 0, 8)
    queues.fill("orders", 1, 1)
    first = receive(consuming)
    assert first.full == [("orders", 0)]
    assert len(first.deliveries) == 6
    second = receive(consuming)
    assert (second.deliveries, second.full) == ([], [("orders", 0)])
    consuming.ack("g", [first.deliveries[0].receipt], NOW)
    assert offsets(receive(consuming)) == [5]


def test_what_retention_removed_unfetched_is_passed_over_and_counted(queues, consuming):
    queues.fill("orders", 0, 10)
    queues.retire("orders", 0, 4)
    assert offsets(receive(consuming, 2)) == [4, 5]


def test_a_lease_on_what_retention_removed_can_still_be_acked(queues, consuming):
    queues.fill("orders", 0, 10)
    received = receive(consuming, 3)
    queues.retire("orders", 0, 5)
    assert offsets(receive(consuming, 1)) == [5]
    assert ack(consuming, received) == {"acked"}


def test_a_lease_that_runs_out_on_what_retention_removed_does_not_come_again(queues, consuming):
    queues.fill("orders", 0, 4)
    receive(consuming, 2)
    queues.retire("orders", 0, 3)
    assert offsets(receive(consuming, now_ms=NOW + LEASE)) == [3]
    assert consuming.lag("g", ORDERS)[0].ready == 0


def test_a_group_begins_where_it_was_told(queues, consuming):
    queues.fill("orders", 0, 5)
    consuming.ensure_group("g", "orders", 0, 3)
    consuming.ensure_group("g", "orders", 0, 1)
    assert offsets(receive(consuming)) == [3, 4]


def test_a_queue_that_comes_later_begins_at_its_start(queues, consuming):
    queues.add_queue("orders", 0)
    consuming.ensure_group("g", "orders", 0, 0)
    queues.fill("orders", 1, 2)
    assert offsets(receive(consuming)) == [0, 1]


def test_a_group_made_anew_inherits_nothing(queues, consuming):
    queues.fill("orders", 0, 5)
    received = receive(consuming)
    consuming.save_offsets()
    consuming.drop_group("g")
    consuming.ensure_group("g", "orders", 0, 2)
    assert ack(consuming, received) == {"expired"}
    again = receive(consuming).deliveries
    assert [(delivery.queue_offset, delivery.attempt) for delivery in again] == [
        (2, 1),
        (3, 1),
        (4, 1),
    ]


def test_a_dropped_groups_receipts_are_void(queues, consuming):
    queues.fill("orders", 0, 1)
    received = receive(consuming)
    consuming.drop_group("g")
    consuming.drop_group("g")
    assert ack(consuming, received) == {"expired"}


def test_a_ledger_that_is_held_lets_receives_go_on_to_the_next_queue(queues, consuming):
    queues.fill("orders", 0, 2)
    queues.fill("orders", 1, 2)
    receive(consuming, 1)
    holder = Ledger(queues.disk, queues.root / "postdate" / "ledger" / "g" / "orders" / "1")
    assert holder.try_hold()
    try:
        deliveries = receive(consuming).deliveries
    finally:
        holder.release()
    assert [(delivery.queue_id, delivery.queue_offset) for delivery in deliveries] == [(0, 1)]


def test_what_was_settled_without_a_consumer_is_counted_per_group(queues, consuming):
    for tag in ("a", "b", "a", "b", "a"):
        queues.put("orders", 0, b"x", tag=tag)
    queues.damage("orders", 0, 2)
    queues.retire("orders", 0, 1)
    receive(consuming, tags="a")
    receive(consuming, tags="a", now_ms=NOW + LEASE)
    header = consuming._header_of(Place("g", "orders", 0))
    assert (header.lapsed, header.filtered, header.damaged) == (1, 2, 1)
    assert (header.ran_out, header.redelivered) == (1, 1)


def test_a_step_forward_of_the_clock_ends_leases_and_a_late_ack_still_counts(queues, consuming):
    queues.fill("orders", 0, 1)
    received = receive(consuming)
    assert ack(consuming, received, now_ms=NOW + 100 * LEASE) == {"acked"}


def test_a_step_back_of_the_clock_cannot_hold_a_message_for_ever(queues, consuming):
    queues.fill("orders", 0, 1)
    receive(consuming)
    day = 24 * 3_600_000
    assert offsets(receive(consuming, now_ms=NOW - 3_600_000)) == []
    assert offsets(receive(consuming, now_ms=NOW - 30 * day)) == [0]
