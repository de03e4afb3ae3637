"""Housekeeping on a real store: flush, checkpoint, offsets, leases."""

from pathlib import Path

from queues.store import Outgoing, Store
from queues.store.checkpoint import StoreCheckpoint
from queues.store.consuming import Consuming, Subscription
from queues.store.disk import Disk
from scheduler.housekeeping.duties import store_duties
from scheduler.housekeeping.step import HousekeepingStep
from scheduler.levels.offsets import DelayOffsets
from tests.support.clock import ManualClock


def new_step(store: Store, root: Path) -> tuple[HousekeepingStep, Consuming]:
    consuming = Consuming(store, b"k" * 32)
    offsets = DelayOffsets(store, Disk(), root / "config" / "delayOffset.json")
    return HousekeepingStep(store_duties(store, consuming, offsets)), consuming


def send(store: Store, clock: ManualClock, *, level: int = 0) -> None:
    message_id = store.new_id("orders", clock.now_ms())
    store.send([Outgoing("orders", 0, message_id, b"x", clock.now_ms(), level=level)])


def test_what_was_written_is_flushed_within_half_a_second(
    store: Store, clock: ManualClock, root: Path
) -> None:
    step, _ = new_step(store, root)
    step.advance(clock.now_ms())
    send(store, clock)
    assert store.flushed < store.committed
    clock.advance(500)
    step.advance(clock.now_ms())
    assert store.flushed == store.committed


def test_the_checkpoint_follows_the_flush(store: Store, clock: ManualClock, root: Path) -> None:
    step, _ = new_step(store, root)
    send(store, clock)
    sent_ms = clock.now_ms()
    step.advance(clock.now_ms())
    clock.advance(1_000)
    step.advance(clock.now_ms())
    assert StoreCheckpoint.load(Disk(), root / "checkpoint").log_ms == sent_ms


def test_closing_leaves_nothing_unflushed_and_the_offsets_written(
    store: Store, clock: ManualClock, root: Path
) -> None:
    step, _ = new_step(store, root)
    step.advance(clock.now_ms())
    send(store, clock, level=1)
    step.close()
    assert store.flushed == store.committed
    assert (root / "config" / "delayOffset.json").read_text() == '{"offsetTable":{"1":0}}'


def test_a_lease_that_ran_out_makes_its_message_ready_again(
    store: Store, clock: ManualClock, root: Path
) -> None:
    step, consuming = new_step(store, root)
    subscriptions = [Subscription("orders")]
    consuming.ensure_group("billing", "orders", 0, 0)
    send(store, clock)
    received = consuming.receive(
        "billing", subscriptions, max_messages=1, lease_ms=10_000, now_ms=clock.now_ms()
    )
    assert [delivery.attempt for delivery in received.deliveries] == [1]
    clock.advance(10_001)
    step.advance(clock.now_ms())
    (lag,) = consuming.lag("billing", subscriptions)
    assert (lag.ready, lag.leased) == (1, 0)
    consuming.close()


def test_no_duty_fails_on_an_empty_store(store: Store, clock: ManualClock, root: Path) -> None:
    step, _ = new_step(store, root)
    step.advance(clock.now_ms())
    assert step.report()["failing"] == {}
