"""Never early, never twice, and of a race exactly one wins, whatever the clock does."""

import threading
from pathlib import Path

import numpy as np
import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Outgoing, Store
from tests.support.clock import ManualClock
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SYNC,
    delivered_ids,
    hand_over_due,
    open_store,
    outgoing,
    send_level,
    send_timed,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path, clock: ManualClock) -> Store:
    with open_store(root, clock) as store:
        yield store
        assert_sound(store)


def test_a_hold_leaves_what_is_not_due_by_its_own_clock(store: Store, clock: ManualClock) -> None:
    ids = [send_timed(store, delay_ms) for delay_ms in (500, 1_000, 1_001)]
    clock.advance(1_000)
    result = store.hand_over(TIMER_TOPIC, 0, np.arange(3))
    assert (result.handed, result.not_due) == (2, (2,))
    clock.step_back(5_000)
    assert store.hand_over(TIMER_TOPIC, 0, np.arange(3)).not_due == (2,)
    assert delivered_ids(store) == sorted(ids[:2])


def test_many_at_once_are_gated_one_by_one(store: Store, clock: ManualClock) -> None:
    for number in range(60):
        send_timed(store, 100 * number + 1)
    clock.advance(3_001)
    order = np.arange(60)[::-1].copy()
    result = store.hand_over(TIMER_TOPIC, 0, order)
    assert result.handed == 31
    assert sorted(result.not_due) == list(range(31, 60))
    assert store.hand_over(TIMER_TOPIC, 0, order).settled == tuple(range(30, -1, -1))


def test_an_offset_that_is_named_twice_is_handed_over_once(
    store: Store, clock: ManualClock
) -> None:
    ids = [send_timed(store, 100) for _ in range(20)]
    clock.advance(100)
    twice = np.concatenate((np.arange(20), np.arange(20)[::-1]))
    assert store.hand_over(TIMER_TOPIC, 0, twice).handed == 20
    assert delivered_ids(store) == sorted(ids)


def test_a_topic_that_may_not_receive_keeps_its_messages(store: Store, clock: ManualClock) -> None:
    ids = [send_timed(store, 100), send_timed(store, 100, topic="other")]
    clock.advance(100)
    store.topic_gate = lambda topic, _: "it was deleted" if topic == "other" else None
    result = store.hand_over(TIMER_TOPIC, 0, np.arange(2))
    assert result.handed == 1
    assert [(f.queue_offset, f.reason, f.permanent) for f in result.failed] == [
        (1, "it was deleted", True)
    ]
    assert store.find(ids[1]).state == "scheduled"


def test_a_step_back_of_the_clock_up_to_100_ms_is_hidden_in_the_store_times(
    store: Store, clock: ManualClock
) -> None:
    first = store.send([outgoing(store)])[0].store_ms
    clock.step_back(100)
    assert store.send([outgoing(store)])[0].store_ms == first
    clock.step_back(1)
    assert store.send([outgoing(store)])[0].store_ms == first - 101


def test_a_step_back_brings_no_hand_over_forward(store: Store, clock: ManualClock) -> None:
    due_ms = clock.now_ms() + 1_000
    old = send_level(store, 1)
    clock.step_back(3_600_000)
    new = send_level(store, 1)
    clock.advance(1_000)
    assert hand_over_due(store) == 1
    assert store.find(new).state == "ready"
    assert store.find(old).due_ms == due_ms
    clock.advance_to(due_ms - 1)
    assert hand_over_due(store) == 0
    clock.advance(1)
    assert hand_over_due(store) == 1


@pytest.mark.parametrize("step_ms", [90_000_000, 8_000_000])
def test_changes_made_after_a_large_step_back_stay_true(
    store: Store, clock: ManualClock, step_ms: int
) -> None:
    ids = [send_timed(store, 60_000) for _ in range(3)]
    clock.step_back(step_ms)
    for message_id in ids:
        assert store.move(message_id, clock.now_ms() + 500, by=None).outcome == "moved"
    assert store.cancel(ids[0], by=None).outcome == "cancelled"
    clock.advance(500)
    assert hand_over_due(store) == 2
    assert [store.find(message_id).state for message_id in ids] == ["cancelled", "ready", "ready"]
    assert store.cancel(ids[1], by=None).outcome == "too_late"
    assert store.restore(ids[0], by=None).outcome == "restored"


@pytest.mark.parametrize("settings", [None, SYNC], ids=["async", "sync"])
def test_of_a_cancel_and_a_hand_over_exactly_one_wins_and_both_are_told_the_truth(
    root: Path, clock: ManualClock, settings: object
) -> None:
    options = {} if settings is None else {"settings": settings}
    with open_store(root, clock, **options) as one, open_store(root, clock, **options) as other:
        ids = [send_level(one, 1) for _ in range(60)]
        clock.advance(1_000)
        outcomes: list[str] = []
        start = threading.Barrier(2)

        def cancel() -> None:
            start.wait()
            outcomes.extend(one.cancel(message_id, by=None).outcome for message_id in ids)

        thread = threading.Thread(target=cancel)
        thread.start()
        start.wait()
        handed = sum(
            other.hand_over(SCHEDULE_TOPIC, 0, np.array([offset])).handed
            for offset in reversed(range(60))
        )
        thread.join()
        assert handed == outcomes.count("too_late")
        assert outcomes.count("cancelled") == 60 - handed
        too_late = [m for m, outcome in zip(ids, outcomes, strict=True) if outcome == "too_late"]
        assert delivered_ids(one) == sorted(too_late)
        assert_sound(one)


def test_a_change_that_rests_on_an_unflushed_record_is_flushed_before_the_answer(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock, settings=SYNC) as one:
        message_id = send_timed(one, 100)
        clock.advance(100)
        with open_store(root, clock) as hasty:
            hasty.hand_over(TIMER_TOPIC, 0, np.arange(1))
        assert one.flushed < one.committed
        assert one.cancel(message_id, by=None).outcome == "too_late"
        assert one.flushed == one.committed


def test_of_two_moves_at_once_the_later_one_counts_and_none_is_lost(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as one, open_store(root, clock) as other:
        message_id = send_timed(one, 60_000)

        def move(store: Store) -> None:
            for number in range(20):
                decision = store.move(message_id, clock.now_ms() + 1_000 + number, by=None)
                assert decision.outcome == "moved"

        threads = [threading.Thread(target=move, args=(store,)) for store in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.find(message_id).version == 41
        clock.advance(120_000)
        assert hand_over_due(other) == 1
        assert_sound(one)


def test_a_batch_is_delivered_in_the_order_given(store: Store, clock: ManualClock) -> None:
    messages = [outgoing(store, queue_id=0, due_ms=clock.now_ms() + 100) for _ in range(30)]
    assert all(isinstance(message, Outgoing) for message in messages)
    store.send(messages)
    clock.advance(100)
    order = np.arange(30)[::-1].copy()
    store.hand_over(TIMER_TOPIC, 0, order)
    units = store.read_units("orders", 0, 0, 30)
    got = [store.read_record(offset).unique_id for offset in units["log_offset"].tolist()]
    assert got == [message.unique_id for message in reversed(messages)]
