"""The timer's step, over either engine: on time, in order, bounded, no one's trouble another's."""

import numpy as np
import pytest

from queues.store.errors import DiskFull
from queues.store.messages import Failure, HandOver
from queues.store.names import TIMER_TOPIC
from scheduler.engine import express, handover, limits, load, relocate, step
from scheduler.engine.errors import StepNotOpened
from scheduler.engine.handover import back_off_ms
from scheduler.engine.report import TimerReport
from scheduler.rocksdb.resting import resting_timeline
from scheduler.rocksdb.step import RocksStep
from scheduler.wheel.resting import resting_wheel
from scheduler.wheel.step import WheelStep
from tests.support.wheelworld import (
    TOPIC,
    WheelWorld,
    ascending,
    bury,
    due_order,
    new_step,
    small_sizes,
)


def test_a_message_leaves_in_its_very_millisecond(world: WheelWorld) -> None:
    now_ms = world.clock.now_ms()
    world.send([1, 2, 250, 999, 1000, 1001, 1999, 2000])
    for delay_ms in (1, 2, 250, 999, 1000, 1001, 1999, 2000):
        assert world.settle() == now_ms + delay_ms
        world.clock.advance_to(now_ms + delay_ms)
        world.settle()
        world.check()
    assert {world.due_ms[id_] - at_ms for id_, (at_ms, _) in world.look().items()} == {0}


def test_messages_of_one_second_leave_in_due_order(world: WheelWorld) -> None:
    chance = np.random.default_rng(3)
    world.send(chance.integers(5_000, 9_000, 300).tolist())
    world.run_until(world.clock.now_ms() + 4_000)
    world.clock.advance(6_000)
    world.settle()
    world.check()
    assert ascending(due_order(world))


def test_what_arrives_late_for_its_slot_leaves_at_once(world: WheelWorld) -> None:
    world.run_until(world.clock.now_ms() + 3_000)
    world.send([1])
    world.clock.advance(10_000)
    world.settle()
    world.check()
    assert world.waiting() == 0


def test_what_came_late_for_its_slot_is_on_time_after_a_step_back_of_the_clock(
    world: WheelWorld,
) -> None:
    world.settle()
    now_ms = world.clock.now_ms()
    # The steps were told the time before the clock was set back; the store reads it after.
    world.step.advance(now_ms + 20_000)
    world.send([8_000])
    world.step.advance(now_ms + 20_000)
    world.step.advance(now_ms + 20_000)
    world.settle()
    world.run_until(now_ms + 8_000)
    world.check()


def test_a_cancelled_message_is_dropped_when_its_slot_is_read(world: WheelWorld) -> None:
    ids = world.send([2_600] * 5)
    world.settle()
    assert world.cancel(ids[2]) == "cancelled"
    world.run_until(world.clock.now_ms() + 3_000)
    world.check()
    assert len(world.handed) == 4


def test_a_moved_message_leaves_at_its_new_time_only(world: WheelWorld) -> None:
    (id_,) = world.send([2_600])
    world.settle()
    due_ms = world.clock.now_ms() + 9_100
    assert world.store.move(id_, due_ms, by="test").outcome == "moved"
    world.due_ms[id_] = due_ms
    world.run_until(due_ms - 1)
    assert world.look() == {}
    world.run_until(due_ms)
    world.check()


def test_the_loop_may_sleep_until_the_next_message_is_due(world: WheelWorld) -> None:
    now_ms = world.clock.now_ms()
    world.send([700])
    assert world.settle() == now_ms + 700
    world.send([20_000])
    assert world.settle() == now_ms + 700
    world.run_until(now_ms + 700)
    next_ms = world.settle()
    assert next_ms is not None
    assert now_ms + 700 < next_ms <= now_ms + 20_000


# -- trouble ----------------------------------------------------------------------------------


def test_a_failing_message_backs_off_from_100_ms_to_10_s() -> None:
    waits = back_off_ms(np.arange(10, dtype=np.uint8))
    assert waits.tolist() == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]


def failing_hand_over(world: WheelWorld, failing: set[int], *, permanent: bool) -> None:
    original = type(world.store).hand_over

    def hand_over(topic: str, queue_id: int, offsets: np.ndarray) -> HandOver:
        bad = [offset for offset in offsets.tolist() if offset in failing]
        good = np.array([offset for offset in offsets.tolist() if offset not in failing], np.int64)
        done = original(world.store, topic, queue_id, good)
        failed = tuple(Failure(offset, "no room", permanent=permanent) for offset in bad)
        return HandOver(done.handed, done.not_due, done.settled, (*done.failed, *failed))

    world.store.hand_over = hand_over  # type: ignore[method-assign]


def test_what_cannot_be_handed_over_now_is_tried_again_and_stops_nobody(world: WheelWorld) -> None:
    failing = {1, 3}
    ids = world.send([100, 100, 100, 100, 5_000])
    failing_hand_over(world, failing, permanent=False)
    world.run_until(world.clock.now_ms() + 6_000)
    assert world.look().keys() == {ids[0], ids[2], ids[4]}
    assert world.step.report()["failing"] == 2
    failing.clear()
    world.run_until(world.clock.now_ms() + 10_000)
    world.check()


def resting(world: WheelWorld) -> TimerReport | None:
    """What the checkpoint of a timer tells that nobody turns, or that was left open."""
    bury(world.step)
    told = resting_wheel if world.engine == "wheel" else resting_timeline
    return told(world.store, world.clock.now_ms())


def test_the_persisted_read_time_waits_for_a_failing_message(engine: str) -> None:
    with WheelWorld(small_sizes(window_slots=300), engine=engine) as world:
        failing = {0}
        started_ms = world.clock.now_ms()
        world.settle()
        world.send([100, 100])
        failing_hand_over(world, failing, permanent=False)
        world.run_until(started_ms + 6_000)
        report = resting(world)
        assert report is not None
        assert report.read_time_ms < started_ms + 100
        world.replace_step()
        failing.clear()
        world.run_until(started_ms + 6_001)
        world.check()


def test_what_fails_for_long_moves_on_and_is_still_handed_over(engine: str) -> None:
    with WheelWorld(small_sizes(window_slots=8), engine=engine) as world:
        world.step.engine.stuck_ms = 2_000  # type: ignore[misc]
        failing = {0}
        started_ms = world.clock.now_ms()
        world.settle()
        world.send([100, *range(1_000, 60_000, 900)])
        failing_hand_over(world, failing, permanent=False)
        world.run_until(started_ms + 40_000)
        world.look()
        due = [due_ms for due_ms in world.due_ms.values() if due_ms <= started_ms + 40_000]
        assert len(world.handed) == len(due) - 1
        assert world.step.report()["read_time_ms"] > started_ms + 30_000
        world.replace_step()
        failing.clear()
        world.run_until(started_ms + 60_000)
        world.check()


def test_failing_messages_beyond_the_memory_bound_go_back_into_the_wheel(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relocate, "FAILING_MAX", 3)
    failing = set(range(10))
    world.send([100] * 12)
    failing_hand_over(world, failing, permanent=False)
    world.run_until(world.clock.now_ms() + 2_000)
    assert world.step.report()["failing"] <= 3
    failing.clear()
    world.run_until(world.clock.now_ms() + 20_000)
    world.check()


def test_what_can_never_be_handed_over_is_parked_with_its_reason(world: WheelWorld) -> None:
    ids = world.send([100, 100])
    failing_hand_over(world, {1}, permanent=True)
    world.run_until(world.clock.now_ms() + 1_000)
    assert world.look().keys() == {ids[0]}
    view = world.store.find(ids[1])
    assert view is not None
    assert (view.state, view.parked_reason) == ("parked", "no room")
    assert world.step.report()["failing"] == 0


def test_when_the_store_refuses_nothing_is_forgotten(world: WheelWorld) -> None:
    def refuse(_topic: str, _queue_id: int, _offsets: np.ndarray) -> None:
        raise DiskFull(path=world.root)

    world.send([100] * 3)
    world.settle()
    world.store.hand_over = refuse  # type: ignore[method-assign,assignment]
    world.clock.advance(200)
    with pytest.raises(DiskFull):
        world.turn()
    del world.store.hand_over
    world.settle()
    world.check()


def test_while_the_engine_has_no_room_what_is_due_soon_still_leaves(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DiskFull(path=world.root)

    first = world.send([400])
    world.settle()
    monkeypatch.setattr(world.step.engine, "enqueue", refuse)
    second = world.send([300, 60_000])
    world.run_until(world.clock.now_ms() + 500)
    assert world.look().keys() == {*first, second[0]}
    report = world.step.report()
    assert report["disk_full"]
    assert [stage["messages"] for stage in report["stages"]] == [2, 2, 0, 0, 0]
    monkeypatch.undo()
    world.run_until(world.clock.now_ms() + 60_000)
    assert world.look().keys() == {*first, *second}


# -- bounds -----------------------------------------------------------------------------------


def test_a_flood_of_far_messages_is_taken_in_by_small_turns_while_something_is_due(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.step.engine, "enqueue_per_ms", 20)
    monkeypatch.setattr(step, "SLACK_MS_MAX", 50)
    world.send([10])
    world.settle()
    world.send([60_000_000] * 3_000)
    books = world.step.engine.books
    before = books.queue_offset
    world.turn()
    assert books.queue_offset - before == 20 * 11
    world.clock.advance(10)
    world.turn()
    world.check()


def test_a_crowded_second_is_loaded_in_bounded_parts(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LOADED_MAX", 100)
    monkeypatch.setattr(step, "LOADED_MAX", 100)
    chance = np.random.default_rng(5)
    world.send(chance.integers(5_001, 6_000, 2_000).tolist())
    world.run_until(world.clock.now_ms() + 4_000)
    assert world.step.report()["loaded"] <= 200
    world.clock.advance(6_000)
    world.settle()
    world.check()
    assert ascending(due_order(world))


def test_what_finds_the_due_list_full_waits_in_the_topic_and_the_loop_sleeps(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "LISTED_MAX", 100)
    monkeypatch.setattr(express, "LISTED_MAX", 100)
    monkeypatch.setattr(express, "EXPRESS_UNITS", 60)
    monkeypatch.setattr(world.step.engine, "enqueue_per_ms", 60)
    monkeypatch.setattr(step, "ENQUEUE_MS_MAX", 1)
    now_ms = world.clock.now_ms()
    world.run_until(now_ms + 100)
    world.send([800 + number // 10 for number in range(1_000)])
    assert world.settle() == now_ms + 900
    assert world.step.report()["loaded"] <= 160
    world.run_until(now_ms + 2_000)
    world.check()
    assert world.waiting() == 0


def test_old_timer_log_files_go_when_all_in_them_is_settled() -> None:
    with WheelWorld() as world:
        world.settle()
        for _ in range(8):
            world.send([100, 5_000] * 30)
            world.run_until(world.clock.now_ms() + 8_000)
        world.run_until(world.clock.now_ms() + 70_000)
        assert world.waiting() == 0
        assert world.step.report()["log_files"] <= 3
        assert world.step.report()["log_begin"] > 0


def test_the_lists_are_bounded_by_the_limits() -> None:
    assert limits.RUN_KEYS_MAX * 8 * 2 + limits.LISTED_MAX * 25 < 100_000_000
    assert handover.BACK_OFF_MS_MAX == 10_000


# -- telling ----------------------------------------------------------------------------------


def test_the_report_says_how_far_each_stage_is(world: WheelWorld) -> None:
    world.send([1_000, 20_000, 60_000])
    assert world.step.report()["enqueue_lag_messages"] == 3
    world.clock.advance(40)
    assert world.turn() in {True, False}
    report = world.step.report()
    assert report["enqueue_lag_messages"] == 0
    world.settle()
    report = world.step.report()
    assert report["loaded"] == 1
    assert report["write_time_ms"] == world.clock.now_ms() // 1000 * 1000
    assert report["precision_ms"] == 1000
    assert report["engine"] == world.engine
    told = "log_files" if world.engine == "wheel" else "timeline_entries"
    assert report[told] >= 1
    names = [stage["stage"] for stage in report["stages"]]
    assert names == ["scan", "enqueue", "dequeue", "load", "hand_over"]


def test_a_timer_at_rest_is_told_from_its_checkpoint(world: WheelWorld) -> None:
    world.send([20_000])
    world.settle()
    world.step.close()
    world.send([30_000])
    report = resting(world)
    assert report is not None
    assert (report.engine, report.enqueue_lag_messages) == (world.engine, 1)
    world.replace_step()


def test_a_step_must_be_opened_first(world: WheelWorld) -> None:
    with pytest.raises(StepNotOpened):
        new_step(world.store, world.engine).advance(world.clock.now_ms())


@pytest.mark.parametrize("make", [WheelStep, RocksStep])
def test_checkpoints_on_their_own_thread_are_as_good(make: type[WheelStep | RocksStep]) -> None:
    with WheelWorld(engine="wheel" if make is WheelStep else "rocksdb") as world:
        world.step.close()
        world.step = make(world.store)
        world.step.open()
        world.send([500, 1_500, 2_500, 25_000])
        world.run_until(world.clock.now_ms() + 4_000)
        world.step.close()
        world.replace_step()
        world.run_until(world.clock.now_ms() + 30_000)
        world.check()
        assert world.store.count_waiting(TIMER_TOPIC, 0) == 0
        assert world.store.queue_bounds(TOPIC, 0).max_offset == 4
