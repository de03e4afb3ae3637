"""What is told of a message whose own records retention took."""

from pathlib import Path

from queues.store.settings import DAY_MS
from tests.support.clock import ManualClock
from tests.support.storeworld import at_four, fill, open_store, send_timed


def test_a_cancelled_message_that_retention_took_says_so(tmp_path: Path) -> None:
    clock = ManualClock()
    at_four(clock)
    with open_store(tmp_path / "store", clock) as store:
        message_id = send_timed(store, 20 * DAY_MS)
        created_ms = clock.now_ms()
        fill(store, 2)
        clock.advance(2 * DAY_MS)
        assert store.cancel(message_id, by="tester").outcome == "cancelled"
        fill(store, 1)
        clock.advance(2 * DAY_MS)
        fill(store, 1)
        assert store.housekeep(clock.now_ms()).segments_removed > 0
        seen = store.find(message_id)
        assert seen is not None
        assert (seen.state, seen.payload_gone, seen.topic) == ("cancelled", True, "orders")
        assert seen.created_ms == created_ms
        assert store.restore(message_id, by="tester").outcome == "payload_gone"
        assert store.cancel(message_id, by="tester").outcome == "already_cancelled"
