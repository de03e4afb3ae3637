"""Many processes on one directory: real ones, that write, hand over, come, go and are killed."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Store
from queues.store.control import read_progress
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.invariants import assert_sound
from tests.support.storeworld import SETTINGS, SYNC, delivered_ids, hand_over_due, outgoing

SPAWN = multiprocessing.get_context("spawn")
DEADLINE_S = 60


def opened(root: Path, *, sync: bool = False) -> Store:
    return Store.open(root, SYNC if sync else SETTINGS, disk=None if sync else UnsyncedDisk())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def run(*tasks: tuple[Callable[..., None], tuple[Any, ...]]) -> None:
    """Run each task in a process of its own; all begin together and must end well."""
    start = SPAWN.Barrier(len(tasks))
    processes = [SPAWN.Process(target=task, args=(start, *told)) for task, told in tasks]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE_S)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    assert codes == [0] * len(tasks)


def append(start: Barrier, root: Path, count: int, sync: bool) -> None:
    with opened(root, sync=sync) as store:
        start.wait(DEADLINE_S)
        for number in range(count):
            store.send([outgoing(store, level=number % 2), outgoing(store, topic="other")])


def hand_over(start: Barrier, root: Path, answers: Any) -> None:
    handed = 0
    with opened(root) as store:
        start.wait(DEADLINE_S)
        for first in range(0, 100, 5):
            handed += store.hand_over(TIMER_TOPIC, 0, np.arange(first, first + 5)).handed
    answers.put(("handed", handed))


def cancel(start: Barrier, root: Path, ids: list[str], answers: Any) -> None:
    with opened(root) as store:
        start.wait(DEADLINE_S)
        outcomes = [store.cancel(message_id, by=None).outcome for message_id in reversed(ids)]
    answers.put(("cancelled", outcomes.count("cancelled")))
    assert set(outcomes) <= {"cancelled", "already_cancelled", "too_late"}


def come_and_go(start: Barrier, root: Path, count: int) -> None:
    start.wait(DEADLINE_S)
    for _ in range(count):
        with opened(root) as store:
            assert (root / "abort").exists()
            store.send([outgoing(store)])


def test_what_processes_append_at_once_is_all_there(root: Path) -> None:
    run((append, (root, 40, False)), (append, (root, 40, False)), (append, (root, 40, False)))
    with opened(root) as store:
        assert len(assert_sound(store)) == 240
        assert store.count_waiting(SCHEDULE_TOPIC, 0) == 60


def test_in_sync_mode_processes_share_their_flushes_and_see_only_what_is_flushed(
    root: Path,
) -> None:
    run((append, (root, 15, True)), (append, (root, 15, True)))
    with opened(root, sync=True) as store:
        assert len(assert_sound(store)) == 60
        assert store.flushed == store.committed
        assert store.counters()["syncs"] <= 31


def test_of_processes_that_hand_over_and_cancel_at_once_one_settles_each_message(
    root: Path,
) -> None:
    answers = SPAWN.Queue()
    with opened(root) as store:
        now_ms = store.clock.now_ms()
        messages = [outgoing(store, due_ms=now_ms + 10) for _ in range(100)]
        store.send(messages)
        ids = [message.unique_id for message in messages]
        while store.clock.now_ms() < now_ms + 11:
            time.sleep(0.002)
    told = (root, ids, answers)
    run((hand_over, (root, answers)), (hand_over, (root, answers)), (cancel, told))
    counts = [answers.get(timeout=DEADLINE_S) for _ in range(3)]
    with opened(root) as store:
        assert_sound(store)
        delivered = delivered_ids(store)
        assert len(set(delivered)) == len(delivered)
        assert len(delivered) == sum(count for name, count in counts if name == "handed")
        assert 100 - len(delivered) == sum(n for name, n in counts if name == "cancelled")


def test_processes_that_come_and_go_at_once_leave_a_clean_store(root: Path) -> None:
    run(*[(come_and_go, (root, 8))] * 3)
    assert not (root / "abort").exists()
    with opened(root) as store:
        assert len(assert_sound(store)) == 24


def ring(root: Path, go: Event) -> None:
    with opened(root) as store:
        go.wait(DEADLINE_S)
        store.send([outgoing(store)])


def test_a_bell_wakes_a_waiter_in_another_process(root: Path) -> None:
    go = SPAWN.Event()
    with opened(root) as store:
        ringer = SPAWN.Process(target=ring, args=(root, go))
        ringer.start()
        seen = store.bell.value()
        go.set()
        assert store.bell.wait(seen, DEADLINE_S) != seen
        ringer.join(DEADLINE_S)
        assert store.visible() > 0


def write_for_ever(root: Path) -> None:
    with opened(root) as store:
        while True:
            now_ms = store.clock.now_ms()
            store.send([outgoing(store, due_ms=now_ms + 5, body_bytes=300) for _ in range(20)])
            hand_over_due(store)


def test_processes_that_are_killed_leave_whole_writes_and_free_locks(root: Path) -> None:
    with opened(root) as store:
        for number in range(3):
            before = store.committed
            writers = [SPAWN.Process(target=write_for_ever, args=(root,)) for _ in range(2)]
            for writer in writers:
                writer.start()
            end = time.monotonic() + DEADLINE_S
            while store.committed < before + 30_000 + 7_000 * number and time.monotonic() < end:
                time.sleep(0.005)
            for writer in writers:
                os.kill(writer.pid or 0, signal.SIGKILL)
                writer.join(DEADLINE_S)
            store.send([outgoing(store)])
            assert_sound(store)
        hand_over_due(store)
        delivered = delivered_ids(store)
        assert len(set(delivered)) == len(delivered)
        assert (root / "abort").exists()


def hold_for_ever(root: Path, held: Event) -> None:
    with opened(root) as store, store._appender.hold():
        held.set()
        time.sleep(DEADLINE_S)


def test_the_holder_of_the_append_lock_is_told_by_name_and_its_death_frees_the_lock(
    root: Path,
) -> None:
    held = SPAWN.Event()
    with opened(root) as store:
        holder = SPAWN.Process(target=hold_for_ever, args=(root, held))
        holder.start()
        assert held.wait(DEADLINE_S)
        told, progress = read_progress(store._control)["append"]
        assert told == holder.pid
        assert read_progress(store._control)["append"] == (told, progress)
        holder.kill()
        holder.join(DEADLINE_S)
        store.send([outgoing(store)])
        told, later = read_progress(store._control)["append"]
        assert told == 0
        assert later > progress
