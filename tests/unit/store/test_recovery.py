"""Recovery: after deaths, power loss and lost files the store is as it must be."""

import contextlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from queues.store import TIMER_TOPIC, Store
from queues.store.settings import DAY_MS
from tests.support.clock import ManualClock
from tests.support.faulty_disk import Died, Fate, FaultyDisk
from tests.support.forgetful_disk import Machine
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SYNC,
    at_four,
    delivered_ids,
    hand_over_due,
    lived,
    open_store,
    outgoing,
    send_level,
    send_timed,
    told_of,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


# -- power loss -----------------------------------------------------------------------------------


def test_in_sync_mode_power_loss_takes_nothing_that_was_acknowledged(
    root: Path, clock: ManualClock
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, settings=SYNC, disk=machine.disk())
    ids = lived(store, clock)
    before = told_of(store, ids)
    machine.power_cut()
    with open_store(root, clock, settings=SYNC, disk=machine.disk()) as store:
        assert told_of(store, ids) == before
        assert_sound(store)


@pytest.mark.parametrize("seed", range(4))
def test_a_hand_over_happens_once_over_power_loss_whatever_pages_survive(
    root: Path, clock: ManualClock, seed: int
) -> None:
    machine, chance = Machine(root), random.Random(seed)
    accepted: list[str] = []
    for _ in range(4):
        disk = machine.disk()
        store = open_store(root, clock, settings=SYNC, disk=disk)
        assert_sound(store)
        disk.fate.die_at = disk.fate.writes + chance.randrange(40, 300)
        disk.fate.torn = chance.random()
        with contextlib.suppress(Died):
            while True:
                message = outgoing(store, due_ms=clock.now_ms() + 50, body_bytes=900)
                store.send([message])
                accepted.append(message.unique_id)
                clock.advance(20)
                hand_over_due(store)
        machine.power_cut(chance)
    clock.advance(10_000)
    with open_store(root, clock, settings=SYNC, disk=machine.disk()) as store:
        hand_over_due(store)
        delivered = delivered_ids(store)
        assert len(set(delivered)) == len(delivered)
        assert set(accepted) <= set(delivered)
        assert_sound(store)


@pytest.mark.parametrize("seed", range(8))
def test_without_sync_the_log_ends_at_a_whole_record_and_all_that_is_derived_agrees(
    root: Path, clock: ManualClock, seed: int
) -> None:
    machine, chance = Machine(root), random.Random(seed)
    flushed: list[str] = []
    for _ in range(3):
        store = open_store(root, clock, disk=machine.disk())
        assert_sound(store)
        sent = [send_timed(store, 60_000, body_bytes=700) for _ in range(20)]
        store.flush()
        flushed += sent
        for _ in range(30):
            send_level(store, 2, body_bytes=chance.randrange(3_000))
        store.cancel(sent[0], by=None)
        machine.power_cut(chance)
    with open_store(root, clock, disk=machine.disk()) as store:
        assert_sound(store)
        assert all(store.find(message_id) for message_id in flushed)


def test_after_power_loss_the_log_ends_before_the_first_hole(
    root: Path, clock: ManualClock
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    kept = send_timed(store, 60_000)
    store.flush()
    hole = store.committed
    lost = [send_timed(store, 60_000, body_bytes=6_000) for _ in range(8)]
    segments = sorted((root / "commitlog").iterdir())
    assert len(segments) > 2
    machine.sync_everything()
    machine.kill()
    machine.boots += 1
    with segments[0].open("r+b") as file:
        file.seek(hole + 4_096)
        file.write(bytes(4_096))
    with open_store(root, clock, disk=machine.disk()) as store:
        assert store.committed == hole
        assert store.find(kept) is not None
        assert [store.find(message_id) for message_id in lost] == [None] * 8
        assert sorted((root / "commitlog").iterdir()) == segments[:1]
        assert_sound(store)


def test_a_record_behind_the_end_does_not_come_back_at_the_next_power_loss(
    root: Path, clock: ManualClock
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    send_timed(store, 60_000)
    store.flush()
    hole = store.committed
    first = send_timed(store, 60_000)
    behind = store.committed
    second = send_timed(store, 60_000)
    machine.sync_everything()
    machine.power_cut()
    segment = root / "commitlog" / f"{0:020d}"
    with segment.open("r+b") as file:
        file.seek(hole)
        file.write(bytes(behind - hole))
    machine.sync_everything()
    store = open_store(root, clock, disk=machine.disk())
    assert store.committed == hole
    machine.power_cut()
    data = segment.read_bytes()
    assert not data[hole:].strip(b"\0")
    with open_store(root, clock, disk=machine.disk()) as store:
        assert store.find(first) is None
        assert store.find(second) is None
        assert_sound(store)


def test_power_loss_while_the_last_one_leaves_is_not_taken_for_a_clean_close(
    root: Path, clock: ManualClock
) -> None:
    for number in range(8):
        here = root / str(number)
        machine = Machine(here)
        disk = machine.disk()
        store = open_store(here, clock, disk=disk)
        ids = lived(store, clock)
        store.flush()
        disk.fate.die_at = disk.fate.writes + number
        with contextlib.suppress(Died):
            store.close()
        machine.power_cut(random.Random(number))
        with open_store(here, clock, disk=machine.disk()) as store:
            assert_sound(store)
            assert all(store.find(message_id) for message_id in ids)


def test_a_copied_directory_is_not_believed_but_derived_anew(
    root: Path, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(root, clock)
    ids = lived(store, clock)
    before = told_of(store, ids)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    for table in (copy / "postdate" / "schedule").rglob(f"{0:020d}"):
        table.write_bytes(bytes(table.stat().st_size))
    with open_store(copy, clock) as copied:
        assert told_of(copied, ids) == before
        assert_sound(copied)
    assert "the machine may have crashed" in caplog.text
    store.close()


# -- files that went ------------------------------------------------------------------------------


def remove(*names: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        for name in names:
            path = root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return act


def remove_one_queue(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / TIMER_TOPIC)


def blank_a_queue(root: Path) -> None:
    for path in (root / "consumequeue" / "orders").rglob(f"{0:020d}"):
        path.write_bytes(bytes(path.stat().st_size))


def blank_the_schedule(root: Path) -> None:
    for path in (root / "postdate" / "schedule").rglob(f"{0:020d}"):
        path.write_bytes(bytes(path.stat().st_size))


def blank_the_index(root: Path) -> None:
    for path in (root / "index").iterdir():
        path.write_bytes(bytes(path.stat().st_size))


def blank_the_table(root: Path) -> None:
    path = root / "postdate" / "queues"
    path.write_bytes(bytes(path.stat().st_size))


def shorten_the_table(root: Path) -> None:
    (root / "postdate" / "queues").write_bytes(bytes(192))


LOSSES = {
    "consume queues": remove("consumequeue"),
    "one consume queue": remove_one_queue,
    "a blank consume queue": blank_a_queue,
    "index": remove("index"),
    "a blank index": blank_the_index,
    "schedule": remove("postdate/schedule"),
    "a blank schedule": blank_the_schedule,
    "queue table": remove("postdate/queues"),
    "a blank queue table": blank_the_table,
    "a short queue table": shorten_the_table,
    "control page": remove("postdate/control"),
    "all that is derived": remove(
        "consumequeue", "index", "postdate/schedule", "postdate/queues", "postdate/control"
    ),
}


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_what_is_missing_or_behind_comes_back_as_it_was(
    root: Path, clock: ManualClock, loss: Callable[[Path], None], clean: bool
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    ids = lived(store, clock)
    before = told_of(store, ids)
    if clean:
        store.close()
    machine.kill()
    loss(root)
    with open_store(root, clock, disk=machine.disk()) as store:
        assert told_of(store, ids) == before
        assert_sound(store)
        send_level(store)
        assert_sound(store)


def test_a_death_in_a_rebuild_is_followed_by_another_rebuild(
    root: Path, clock: ManualClock
) -> None:
    machine = Machine(root)
    with open_store(root, clock, disk=machine.disk()) as store:
        ids = lived(store, clock)
        before = told_of(store, ids)
    for write in (1, 5, 20, 60, 100):
        shutil.rmtree(root / "index", ignore_errors=True)
        disk = machine.disk()
        disk.fate.die_at = write
        with pytest.raises(Died):
            open_store(root, clock, disk=disk)
        machine.kill()
    with open_store(root, clock, disk=machine.disk()) as store:
        assert told_of(store, ids) == before
        assert_sound(store)


def test_files_that_were_never_finished_are_removed(root: Path, clock: ManualClock) -> None:
    open_store(root, clock).close()
    left = [root / "index" / "1.77.1.new", root / "config" / "x.json.3.1.new"]
    for path in left:
        path.write_bytes(b"half")
    open_store(root, clock).close()
    assert not any(path.exists() for path in left)


def test_a_file_that_a_living_scheduler_is_making_is_left_alone(
    root: Path, clock: ManualClock
) -> None:
    making = root / "postdate" / "leases" / "levels.status.77.1.new"
    making.parent.mkdir(parents=True)
    making.write_bytes(b"half")
    open_store(root, clock).close()
    assert making.exists()


def test_a_queue_whose_messages_all_went_goes_on_at_its_offset_after_a_rebuild(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as store:
        store.send([outgoing(store, topic="old", queue_id=0) for _ in range(5)])
        for _ in range(20):
            store.send([outgoing(store, body_bytes=2_000)])
        clock.advance(4 * DAY_MS)
        store.send([outgoing(store, body_bytes=9_000) for _ in range(2)])
        at_four(clock)
        assert store.housekeep(clock.now_ms()).segments_removed
        assert bounds(store) == (5, 5)
    shutil.rmtree(root / "index")
    with open_store(root, clock) as store:
        assert bounds(store) == (5, 5)
        store.send([outgoing(store, topic="old", queue_id=0)])
        assert bounds(store) == (5, 6)
        assert len(store.read_units("old", 0, 5, 1)) == 1


def bounds(store: Store) -> tuple[int, int]:
    found = store.queue_bounds("old", 0)
    return found.min_offset, found.max_offset


@pytest.mark.parametrize("before_the_end", range(7, 11))
def test_the_very_first_write_may_be_stopped_and_its_repair_too(
    root: Path, clock: ManualClock, before_the_end: int
) -> None:
    count = writes_of_one(root.with_name("whole"), clock)
    for again_at in range(12):
        place = root.with_name(f"stopped {again_at}")
        (one, fate), (other, other_fate) = (mortal(place, clock) for _ in range(2))
        for store, its_fate, writes in (
            (one, fate, count - before_the_end),
            (other, other_fate, again_at),
        ):
            its_fate.die_at = its_fate.writes + writes
            with contextlib.suppress(Died):
                send_level(store)
            its_fate.dead = True
            store.disk.bury()
        with open_store(place, clock) as store:
            send_level(store)
            assert_sound(store)


def mortal(root: Path, clock: ManualClock) -> tuple[Store, Fate]:
    """A store of a process that can die."""
    fate = Fate()
    return open_store(root, clock, disk=FaultyDisk(fate)), fate


def writes_of_one(root: Path, clock: ManualClock) -> int:
    """How many writes the first send makes."""
    store, fate = mortal(root, clock)
    with store:
        before = fate.writes
        send_level(store)
        return fate.writes - before
