"""Ordered groups: of a sharding key one message at a time, whatever fails, restarts or dies."""

from pathlib import Path

import pytest

from queues.store.consuming import Subscription
from tests.support.chainworld import GROUP, LEASE_MS, SOURCES, id_of
from tests.support.clock import ManualClock
from tests.support.ledgerchecks import assert_ledger_sound
from tests.support.orderedworld import DyingOrdered, Ordered, key_of


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def world(tmp_path: Path, clock: ManualClock):
    with_order = Ordered(tmp_path / "store", clock)
    yield with_order
    for place in with_order.consuming._ledgers.places():
        with with_order.consuming._ledgers.use(place) as ledger:
            assert_ledger_sound(ledger)
    with_order.close()


def test_of_each_key_one_message_comes_and_the_next_once_it_is_acked(world):
    world.post("aabab.c.")
    first = world.receive()
    assert [key_of(one) for one in first] == ["a", "b", ".", "c"]
    assert world.keys() == ""
    world.ack(first)
    assert world.keys() == "ab."


def test_the_first_of_each_key_comes_in_the_order_of_the_queue(world):
    ids = world.post("aabab.c.")
    came = [ids.index(id_of(one)) for one in world.receive()]
    assert came == [0, 2, 5, 6]


def test_a_key_is_a_queues_own(world):
    world.post("a", queue_id=0)
    world.post("a", queue_id=1)
    assert world.keys() == "aa"


def test_what_failed_blocks_its_key_until_its_retry_is_acked(world):
    world.post("aab")
    first, other = world.receive()
    assert world.fail([first])[0].outcome == "retrying"
    world.ack([other])
    assert world.keys() == ""
    world.retry_is_due()
    (again,) = world.receive()
    assert (id_of(again), again.attempt) == (id_of(first), 2)
    assert world.keys() == ""
    world.ack([again])
    assert world.keys() == "a"


def test_a_chain_that_ends_while_the_queue_is_looked_through_lets_nothing_overtake(
    world, clock, monkeypatch
):
    ids = world.post("aaaa")
    (first,) = world.receive()
    world.fail([first])
    links = [1 << 40, 1 << 40]  # To the look at the floor and to the second message it goes on.
    monkeypatch.setattr(
        type(world.store.chains), "newest_link", lambda *_: links.pop() if links else None
    )
    came = world.receive()
    clock.advance(2_000)  # Nothing but the links tells of the end here.
    came += world.receive() + world.receive()
    assert [ids.index(id_of(one)) for one in came] == [1]


def test_an_end_that_comes_during_a_look_is_looked_at(world, clock, monkeypatch):
    ids = world.post("aaa")
    (first,) = world.receive()
    world.fail([first])
    world.retry_is_due()
    (again,) = world.receive()
    newest_link = type(world.store.chains).newest_link
    asked = []

    def ack_after_two(chains, group, log_offset):
        link = newest_link(chains, group, log_offset)
        asked.append(link)
        if len(asked) == 2:
            world.ack([again])
        return link

    monkeypatch.setattr(type(world.store.chains), "newest_link", ack_after_two)
    clock.advance(2_000)  # What was believed before is forgotten.
    came = [one for _ in range(2) for one in world.receive()]
    assert [ids.index(id_of(one)) for one in came] == [1]


def test_a_key_goes_on_once_its_message_is_dead(world):
    world.post("aa")
    (first,) = world.receive()
    assert world.fail([first], dead=True)[0].outcome == "dead"
    (second,) = world.receive()
    assert id_of(second) != id_of(first)


def test_a_key_goes_on_once_its_retries_ended_in_the_dead_letters(world, clock):
    world.post("aa")
    (first,) = world.receive()
    failed = [first]
    for delay_ms in (10_000, 30_000):
        assert world.fail(failed)[0].outcome == "retrying"
        clock.advance(delay_ms)
        world.hand_over()
        failed = world.receive()
        assert [id_of(one) for one in failed] == [id_of(first)]
    assert world.fail(failed)[0].outcome == "dead"
    (second,) = world.receive()
    assert id_of(second) != id_of(first)


def test_a_key_goes_on_once_its_waiting_retry_is_cancelled(world):
    world.post("aa")
    (first,) = world.receive()
    world.fail([first])
    assert world.keys() == ""
    decision = world.store.chains.cancel_retry(GROUP, id_of(first), by="tester")
    assert decision.outcome == "cancelled"
    assert world.keys() == "a"


def test_a_retry_that_is_moved_still_blocks(world, clock):
    world.post("aa")
    (first,) = world.receive()
    world.fail([first])
    world.store.chains.move_retry(GROUP, id_of(first), clock.now_ms() + 60_000, by="tester")
    world.retry_is_due()
    assert world.keys() == ""
    clock.advance(50_000)
    world.hand_over()
    (again,) = world.receive()
    assert id_of(again) == id_of(first)


def test_a_lease_that_runs_out_blocks_its_key_like_any_failure(world, clock):
    world.post("aa")
    (first,) = world.receive()
    clock.advance(LEASE_MS)
    world.keep_house()
    assert world.keys() == ""
    world.retry_is_due()
    (again,) = world.receive()
    assert id_of(again) == id_of(first)
    world.ack([again])
    assert world.keys() == "a"


def test_a_message_given_back_comes_again_before_the_next_of_its_key(world):
    world.post("aa")
    (first,) = world.receive()
    world.consuming.leases.release(GROUP, [first.receipt])
    (again,) = world.receive()
    assert (id_of(again), again.attempt) == (id_of(first), 1)


def test_order_holds_over_restarts(tmp_path, clock):
    world = Ordered(tmp_path / "store", clock)
    world.post("aabb")
    first, other = world.receive()
    world.fail([first])
    world.close()
    world = Ordered(tmp_path / "store", clock)
    assert world.keys() == ""
    world.ack([other])
    assert world.keys() == "b"
    world.close()
    world = Ordered(tmp_path / "store", clock)
    assert world.keys() == ""
    world.retry_is_due()
    (again,) = world.receive()
    assert id_of(again) == id_of(first)
    world.ack([again])
    assert world.keys() == "a"
    world.close()


def test_delayed_messages_are_ordered_as_they_were_handed_over(world, clock):
    late = world.post("a", due_ms=clock.now_ms() + 500)
    soon = world.post("a", due_ms=clock.now_ms() + 100)
    at_once = world.post("a")
    clock.advance(200)
    world.hand_over()
    clock.advance(400)
    world.hand_over()
    came = []
    for _ in range(3):
        deliveries = world.receive()
        came += [id_of(one) for one in deliveries]
        world.ack(deliveries)
    assert came == at_once + soon + late


def test_no_more_is_looked_at_than_so_far_ahead(world, monkeypatch):
    monkeypatch.setattr("queues.store.ordering.LOOK_AHEAD_UNITS", 4)
    world.post("aaaabc")
    (first,) = world.receive()
    world.ack([first])
    assert world.keys() == "ab"


def test_a_receive_takes_as_many_as_it_asked_for(world):
    world.post("abcde")
    assert world.keys(2) == "ab"
    assert world.keys(2) == "cd"
    assert world.keys() == "e"


def test_the_floor_moves_past_chains_that_are_over(world):
    world.post("abcabc")
    failed = world.receive()
    world.fail(failed, dead=True)
    world.ack(world.receive())
    assert world.keys() == ""
    (place,) = [one for one in world.consuming._ledgers.places() if one.topic == "orders"]
    header = world.consuming._peek(place)
    assert header is not None
    assert (header.floor, header.cursor, header.leased, header.again) == (6, 6, 0, 0)


def test_tags_that_are_not_subscribed_to_block_nothing(world, clock):
    world.post("a", tag="x")
    world.post("a", tag="y")
    received = world.consuming.receive(
        GROUP, [Subscription("orders", "y")], max_messages=9, lease_ms=LEASE_MS,
        now_ms=clock.now_ms(),
    )  # fmt: skip
    assert len(received.deliveries) == 1


def test_a_group_that_is_ordered_no_more_gets_everything(world):
    world.post("aaa")
    (first,) = world.receive()
    world.fail([first])
    world.consuming.ordered_of = lambda _: False
    assert world.keys() == "aa"


def test_nothing_is_asked_again_until_something_changes(world, clock):
    world.post("aa")
    (first,) = world.receive()
    assert world.keys() == ""
    assert not world.consuming.outlook(GROUP, SOURCES, clock.now_ms()).ready
    world.ack([first])
    assert world.consuming.outlook(GROUP, SOURCES, clock.now_ms()).ready


@pytest.mark.parametrize("torn", [0.0, 0.6])
@pytest.mark.parametrize("what", ["receive", "ack", "fail", "die", "end"])
def test_order_holds_whatever_write_a_process_died_in(tmp_path, clock, what, torn):
    write, survived = 0, False
    while not survived:
        root = tmp_path / f"{what}-{write}"
        before = Ordered(root, clock)
        ids = before.post("aaab")
        deliveries = before.receive() if what != "receive" else []
        if what == "end":
            before.fail(deliveries[:1], dead=True)
        before.close()
        dying = DyingOrdered(root, clock)
        with dying.dying_at(write, torn=torn):
            if what in ("receive", "end"):
                dying.receive()
            elif what == "ack":
                dying.ack(deliveries[:1])
            else:
                dying.fail(deliveries[:1], dead=what == "die")
        survived = dying.survived
        finish(root, clock, ids)
        write += 1
    assert write > 1


def finish(root: Path, clock: ManualClock, ids: list[str]) -> None:
    """Consume the rest: what comes first of each key is in order, and all is consumed."""
    world = Ordered(root, clock)
    first_seen: list[str] = []
    for _ in range(12):
        clock.advance(LEASE_MS)
        world.keep_house()
        world.hand_over()
        deliveries = world.receive()
        assert len({id_of(one) in ids[:3] for one in deliveries}) == len(deliveries)
        first_seen += [id_of(one) for one in deliveries if id_of(one) not in first_seen]
        world.ack(deliveries)
    of_a = [ids.index(one) for one in first_seen if one in ids[:3]]
    assert of_a == sorted(of_a)
    assert 2 in of_a, "the last of the key came"
    world.close()
