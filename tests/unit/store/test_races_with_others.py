"""What one process does between two looks of another, found by simulation."""

from pathlib import Path
from typing import Any

import pytest

from queues.store import TIMER_TOPIC, Store
from queues.store.settings import StoreSettings
from tests.support.clock import ManualClock
from tests.support.storeworld import (
    SIZES,
    SYNC,
    delivered_ids,
    hand_over_due,
    open_store,
    outgoing,
    send_timed,
)

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize("change", ["hand over", "cancel"])
def test_what_is_settled_while_renewals_are_listed_is_not_renewed(
    tmp_path: Path, clock: ManualClock, monkeypatch: Any, change: str
) -> None:
    settings = StoreSettings(sizes=SIZES, ballast_bytes=65_536, retention_ms=2 * HOUR_MS)
    with open_store(tmp_path / "store", clock, settings=settings) as store:
        message_id = send_timed(store, 3 * HOUR_MS)
        store.send([outgoing(store, body_bytes=6_000) for _ in range(6)])
        clock.advance(2 * HOUR_MS)
        store.send([outgoing(store, body_bytes=6_000) for _ in range(6)])
        listed = store._retention._kept_below

        def listed_then_settled(*arguments: Any) -> Any:
            found = listed(*arguments)
            if change == "hand over":
                clock.advance(2 * HOUR_MS)
                hand_over_due(store)
            else:
                store.cancel(message_id, by="tester")
            return found

        monkeypatch.setattr(store._retention, "_kept_below", listed_then_settled)
        assert store.housekeep(clock.now_ms()).renewed == 0
        view = store.find(message_id)
        assert view is not None
        assert view.state == ("ready" if change == "hand over" else "cancelled")
        assert store.parked() == []
        assert store.count_waiting(TIMER_TOPIC, 0) == 0


@pytest.fixture
def unflushed(tmp_path: Path, clock: ManualClock, monkeypatch: Any) -> Any:
    """Two processes of a store in sync mode; what the first does is not flushed yet."""
    with (
        open_store(tmp_path / "store", clock, settings=SYNC) as first,
        open_store(tmp_path / "store", clock, settings=SYNC) as second,
    ):

        def do(what: Any) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(first._changes, "settle_flush", lambda _end: None)
                what()

        yield first, second, do


def test_a_cancelled_message_whose_restore_is_not_flushed_is_seen_cancelled(
    unflushed: Any,
) -> None:
    first, second, do = unflushed
    message_id = send_timed(first, 60_000)
    first.cancel(message_id, by="tester")
    do(lambda: first.restore(message_id, by="tester"))
    view = second.find(message_id)
    assert view.state == "cancelled"
    second.flush()
    assert second.find(message_id).state == "scheduled"


def test_a_parked_message_whose_move_is_not_flushed_is_seen_parked(
    unflushed: Any, clock: ManualClock
) -> None:
    first, second, do = unflushed
    message_id = send_timed(first, 60_000)
    first.park(TIMER_TOPIC, 0, 0, reason="the topic was deleted")
    do(lambda: first.move(message_id, clock.now_ms() + 90_000, by="tester"))
    view = second.find(message_id)
    assert (view.state, view.parked_reason) == ("parked", "the topic was deleted")
    assert second.release(message_id, by="tester").outcome == "not_parked"
    assert second.find(message_id).due_ms == clock.now_ms() + 90_000


def test_a_queue_table_that_power_loss_left_empty_is_made_anew(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = tmp_path / "store"
    with open_store(root, clock) as store:
        store.send([outgoing(store, unique_id=store.new_id("orders", clock.now_ms()))])
    sent = delivered(root, clock)
    (root / "postdate" / "queues").write_bytes(b"")
    assert delivered(root, clock) == sent != []


def delivered(root: Path, clock: ManualClock) -> list[str]:
    store: Store
    with open_store(root, clock) as store:
        return delivered_ids(store)
