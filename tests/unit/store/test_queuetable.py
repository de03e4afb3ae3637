"""The queue table as one process sees what another adds to it."""

from pathlib import Path

from tests.support.clock import ManualClock
from tests.support.storeworld import open_store, outgoing


def test_queues_that_another_process_added_are_told_in_order(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_store(tmp_path, clock) as here, open_store(tmp_path, clock) as there:
        here.send([outgoing(here, queue_id=3)])
        assert list(there.queue_ids("orders")) == [3]
        for queue_id in (5, 0, 4):
            there.send([outgoing(there, queue_id=queue_id)])
        assert list(here.queue_ids("orders")) == list(there.queue_ids("orders")) == [0, 3, 4, 5]
        assert list(here.queue_ids("nobody")) == []


def test_a_look_at_all_queues_tells_how_far_each_goes(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_store(tmp_path, clock) as here, open_store(tmp_path, clock) as there:
        here.send([outgoing(here, queue_id=1), outgoing(here, topic="other", queue_id=0)])
        before = there.queue_tips()
        here.send([outgoing(here, queue_id=1), outgoing(here, queue_id=2)])
        told = {there.queue_place(at): int(tip) for at, tip in enumerate(there.queue_tips())}
    assert before.tolist() == [1, 1], "a copy, which later sends do not change"
    assert told == {("orders", 1): 2, ("other", 0): 1, ("orders", 2): 1}
