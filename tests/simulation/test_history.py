"""The model of a simulated world follows the log over what the machine loses of it."""

import shutil
from pathlib import Path

from tests.simulation.history import History
from tests.support.clock import ManualClock
from tests.support.storeworld import SIZES, open_store, outgoing


def test_a_record_in_the_place_of_a_filler_that_was_lost_is_followed(tmp_path: Path) -> None:
    clock, root, before = ManualClock(), tmp_path / "store", tmp_path / "before"
    history = History(root, sync=False, segment_bytes=SIZES.segment_bytes)

    def send(body_bytes: int) -> str:
        """Send a message in a process of its own; its id."""
        store = open_store(root, clock)
        message = outgoing(store, body_bytes=body_bytes)
        store.send([message])
        store.close()
        return message.unique_id

    large = SIZES.segment_bytes // 2
    send(large)
    filler_at = history.follow(clock.now_ms())
    shutil.copytree(root, before)
    send(large)  # It does not fit behind the first.
    assert history.follow(clock.now_ms()) > SIZES.segment_bytes
    shutil.rmtree(root)
    before.rename(root)
    small = send(0)  # In the filler's place, before anybody looks.
    assert history.lose(filler_at) == filler_at
    history.follow(clock.now_ms())
    assert small in history.messages
