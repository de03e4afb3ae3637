"""A full disk: sends are refused with nothing changed, hand-overs and cancels go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Store
from queues.store.disk import File
from queues.store.errors import DiskFull, StoreFull
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk, UnsyncedFile
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SETTINGS,
    SIZES,
    delivered_ids,
    hand_over_due,
    open_store,
    outgoing,
    send_level,
    send_timed,
)


class SmallFile(UnsyncedFile):
    """A file of a small disk."""

    disk: "SmallDisk"

    def allocate(self, offset: int, size_bytes: int) -> None:
        more = max(0, offset + size_bytes - self.disk.given.get(self.path, 0))
        self.disk.take(self.path, more)
        super().allocate(offset, size_bytes)


class SmallDisk(UnsyncedDisk):
    """A disk with so many bytes left to allocate."""

    def __init__(self) -> None:
        self.left = 1 << 40
        #: What each file was given.
        self.given: dict[Path, int] = {}

    def take(self, path: Path, size_bytes: int) -> None:
        if size_bytes > self.left:
            raise DiskFull(path=path)
        self.left -= size_bytes
        self.given[path] = self.given.get(path, 0) + size_bytes

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        file = super().open(path, create=create, write=write)
        small = SmallFile(path, file._descriptor)
        small.disk = self
        return small

    def create_whole(self, path: Path, size_bytes: int) -> None:
        self.take(path, size_bytes)
        left, self.left = self.left, 1 << 40
        super().create_whole(path, size_bytes)
        self.left = left

    def rename(self, source: Path, target: Path) -> None:
        self.given[target] = self.given.pop(source, 0)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.left += self.given.pop(path, 0)
        super().unlink(path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def disk() -> SmallDisk:
    return SmallDisk()


@pytest.fixture
def store(root: Path, clock: ManualClock, disk: SmallDisk) -> Iterator[Store]:
    with open_store(root, clock, disk=disk) as store:
        yield store
        assert_sound(store)


def fill(store: Store, disk: SmallDisk, **fields: Any) -> list[str]:
    """Send until the disk, which has no more room, is full; the ids that were taken."""
    disk.left = 0
    taken = []
    while True:
        message = outgoing(store, body_bytes=1_500, **fields)
        try:
            store.send([message])
        except StoreFull:
            return taken
        taken.append(message.unique_id)


def test_a_send_to_a_full_disk_is_refused_by_name_and_changes_nothing(
    store: Store, disk: SmallDisk
) -> None:
    send_level(store)
    fill(store, disk)
    end, queue = store.committed, store.queue_bounds("orders", 0)
    for fields in ({}, {"level": 1}, {"due_ms": store.clock.now_ms() + 5_000}):
        with pytest.raises(StoreFull, match="Free some space"):
            store.send([outgoing(store, body_bytes=1_500, **fields)])
    assert (store.committed, store.queue_bounds("orders", 0)) == (end, queue)
    assert_sound(store)


def test_hand_overs_cancels_moves_and_parkings_go_on_while_sends_are_refused(
    store: Store, clock: ManualClock, disk: SmallDisk, root: Path
) -> None:
    levels = [send_level(store, 1, body_bytes=1_000) for _ in range(4)]
    timed = [send_timed(store, 1_000, body_bytes=1_000) for _ in range(4)]
    assert fill(store, disk, due_ms=clock.now_ms() + 60_000)
    clock.advance(1_000)
    assert store.cancel(levels[0], by=None).outcome == "cancelled"
    assert store.move(levels[1], clock.now_ms() + 60_000, by=None).outcome == "moved"
    assert store.park(TIMER_TOPIC, 0, 3, reason="the topic was deleted")
    assert hand_over_due(store) == 5
    assert set(delivered_ids(store)) == {*levels[2:], *timed[:3]}
    assert not (root / "postdate" / "ballast").exists()
    with pytest.raises(StoreFull):
        send_level(store)
    assert not store.health()["writable"]
    assert store.health()["reason"] == "store_full"


def test_the_ballast_is_given_up_when_the_spare_is_not_enough(
    store: Store, clock: ManualClock, disk: SmallDisk, root: Path
) -> None:
    ids = [send_timed(store, 1_000, body_bytes=2_000) for _ in range(24)]
    fill(store, disk)
    clock.advance(1_000)
    assert hand_over_due(store) == 24
    assert set(ids) <= set(delivered_ids(store))
    assert not (root / "postdate" / "ballast").exists()


def test_when_nothing_is_left_a_hand_over_says_so_and_the_message_still_waits(
    store: Store, clock: ManualClock, disk: SmallDisk
) -> None:
    ids = [send_timed(store, 1_000, body_bytes=3_000) for _ in range(80)]
    fill(store, disk)
    clock.advance(1_000)
    with pytest.raises((DiskFull, StoreFull)):
        hand_over_due(store)
    assert_sound(store)
    disk.left = 1 << 30
    hand_over_due(store)
    assert sorted(set(delivered_ids(store)) & set(ids)) == sorted(ids)


def test_sends_work_again_once_there_is_room(
    store: Store, clock: ManualClock, disk: SmallDisk, root: Path
) -> None:
    send_timed(store, 500, body_bytes=2_000)
    fill(store, disk)
    clock.advance(600)
    hand_over_due(store)
    with pytest.raises(StoreFull):
        send_level(store)
    disk.left = 1 << 30
    clock.advance(1_000)
    send_level(store)
    assert store.health()["writable"]
    assert (root / "postdate" / "spare").stat().st_size == SIZES.segment_bytes
    assert (root / "postdate" / "ballast").stat().st_size == SETTINGS.ballast_bytes


def test_a_new_queue_on_a_full_disk_is_refused_before_anything_is_written(
    store: Store, disk: SmallDisk
) -> None:
    send_level(store)
    end = store.committed
    disk.left = 0
    with pytest.raises(StoreFull):
        store.send([outgoing(store, topic="another")])
    assert store.committed == end
    assert store.queue_bounds("another", 0) == store.queue_bounds("no such", 0)


def test_readers_and_other_processes_find_a_full_store_consistent(
    store: Store, clock: ManualClock, disk: SmallDisk, root: Path
) -> None:
    taken = fill(store, disk, level=1)
    with open_store(root, clock, disk=disk) as other:
        assert_sound(other)
        assert all(other.find(message_id).state == "scheduled" for message_id in taken)
        assert other.count_waiting(SCHEDULE_TOPIC, 0) == len(taken)


def test_a_spare_that_was_cut_off_is_made_again_and_never_a_segment(
    store: Store, clock: ManualClock, disk: SmallDisk, root: Path
) -> None:
    ids = [send_timed(store, 1_000, body_bytes=2_000) for _ in range(24)]
    spare = root / "postdate" / "spare"
    with spare.open("r+b") as file:
        file.truncate(100)
    fill(store, disk)
    clock.advance(1_000)
    with pytest.raises((DiskFull, StoreFull)):
        hand_over_due(store)
    assert {path.stat().st_size for path in (root / "commitlog").iterdir()} == {SIZES.segment_bytes}
    disk.left = 1 << 30
    clock.advance(1_000)
    send_level(store)
    assert spare.stat().st_size == SIZES.segment_bytes
    hand_over_due(store)
    assert set(ids) <= set(delivered_ids(store))
