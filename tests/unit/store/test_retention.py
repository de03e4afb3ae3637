"""Retention: what is old goes, what waits or is parked never does, and the log stays bounded."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from queues.store import TIMER_TOPIC, Store
from queues.store.control import Word
from queues.store.names import JOURNAL_TOPIC
from queues.store.settings import DAY_MS
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.forgetful_disk import Machine
from tests.support.storeworld import (
    SETTINGS,
    SIZES,
    at_four,
    delivered_ids,
    fill,
    hand_over_due,
    open_store,
    outgoing,
    send_level,
    send_timed,
    told_of,
)

HOUR_MS = 3_600_000
SEGMENT = SIZES.segment_bytes


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


class RoomyDisk(UnsyncedDisk):
    """A disk that says itself how much is free."""

    free = 1 << 40

    def free_bytes(self, path: Path) -> int:  # noqa: ARG002 (as the disk has it)
        return self.free


@pytest.fixture
def disk() -> RoomyDisk:
    return RoomyDisk()


@pytest.fixture
def store(root: Path, clock: ManualClock, disk: RoomyDisk) -> Iterator[Store]:
    at_four(clock)
    with open_store(root, clock, disk=disk) as store:
        yield store


def keep(store: Store, clock: ManualClock) -> tuple[int, int]:
    """Do what housekeeping does until there is nothing more: renewed, removed."""
    renewed = removed = 0
    while True:
        done = store.housekeep(clock.now_ms())
        renewed, removed = renewed + done.renewed, removed + done.segments_removed
        if not done.more:
            return renewed, removed


def segments(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "commitlog").iterdir())


# -- when a segment goes ---------------------------------------------------------------------------


def test_nothing_younger_than_the_retention_goes(
    store: Store, clock: ManualClock, disk: RoomyDisk, root: Path
) -> None:
    fill(store, 3)
    disk.free = 0
    clock.advance(3 * DAY_MS - 1)
    assert keep(store, clock) == (0, 0)
    clock.advance(1)
    fill(store, 1)
    assert keep(store, clock)[1] == 3
    assert len(segments(root)) == 2


def test_old_segments_go_at_the_deletion_hour_or_when_space_is_low(
    store: Store, clock: ManualClock, disk: RoomyDisk
) -> None:
    fill(store, 3)
    clock.advance(4 * DAY_MS + HOUR_MS)
    fill(store, 1)
    assert keep(store, clock) == (0, 0)
    disk.free = 2 * SEGMENT - 1
    assert keep(store, clock)[1] > 0
    disk.free = 1 << 40
    clock.advance(23 * HOUR_MS)
    fill(store, 3)
    clock.advance(4 * DAY_MS)
    fill(store, 1)
    assert keep(store, clock)[1] > 0


def test_a_segment_into_which_a_lease_points_stays(
    store: Store, clock: ManualClock, root: Path
) -> None:
    fill(store, 3)
    clock.advance(4 * DAY_MS)
    fill(store, 1)
    store._retention.leased_from = lambda: SEGMENT + 10
    assert keep(store, clock) == (0, 1)
    assert segments(root)[0] == f"{SEGMENT:020d}"
    store._retention.leased_from = lambda: None
    assert keep(store, clock)[1] > 0


def test_what_was_removed_is_gone_and_what_is_there_has_its_old_offsets(
    store: Store, clock: ManualClock, root: Path
) -> None:
    first = outgoing(store, queue_id=0)
    store.send([first])
    fill(store, 4)
    clock.advance(4 * DAY_MS)
    last = outgoing(store, queue_id=0)
    store.send([last])
    before = store.queue_bounds("orders", 0)
    unit = store.read_units("orders", 0, before.max_offset - 1, 1)
    keep(store, clock)
    after = store.queue_bounds("orders", 0)
    assert after.min_offset > before.min_offset
    assert after.max_offset == before.max_offset
    assert store.read_units("orders", 0, after.max_offset - 1, 1) == unit
    assert len(store.read_units("orders", 0, 0, after.min_offset)) == 0
    assert store.find(first.unique_id) is None
    assert store.find(last.unique_id).state == "ready"
    assert store._control.words[Word.LOG_MIN] == int(segments(root)[0])


def test_space_of_removed_segments_is_given_back_by_every_process(
    store: Store, clock: ManualClock, root: Path
) -> None:
    with open_store(root, clock) as other:
        fill(store, 4)
        for base in other._log.bases():
            other._log.memory(base)
        clock.advance(4 * DAY_MS)
        fill(store, 1)
        assert keep(store, clock)[1] > 0
        fill(store, 2)
        other.read_record(other._log.bases()[-2])
        assert set(other._log._maps) <= set(other._log.bases())


def test_derived_files_go_with_the_segments(
    root: Path, clock: ManualClock, disk: RoomyDisk
) -> None:
    at_four(clock)
    settings = replace(
        SETTINGS, sizes=replace(SIZES, consume_queue_units=10, index_entries=40, index_slots=10)
    )
    with open_store(root, clock, settings=settings, disk=disk) as store:
        fill(store, 8)
        units = list((root / "consumequeue" / "orders" / "0").iterdir())
        index = list((root / "index").iterdir())
        clock.advance(4 * DAY_MS)
        fill(store, 1)
        keep(store, clock)
        assert len(list((root / "consumequeue" / "orders" / "0").iterdir())) < len(units)
        for _ in range(60):
            store.send([outgoing(store)])
        keep(store, clock)
        assert min((root / "index").iterdir()) > min(index)


# -- what waits is renewed -------------------------------------------------------------------------


def test_what_waits_is_renewed_before_its_segment_goes_and_arrives_once(
    store: Store, clock: ManualClock
) -> None:
    ids = [send_timed(store, 9 * DAY_MS + number) for number in range(20)]
    ids += [send_timed(store, 10 * DAY_MS, keys=("a", "b")) for _ in range(5)]
    cancelled = send_timed(store, 9 * DAY_MS)
    store.cancel(cancelled, by=None)
    fill(store, 2)
    for _ in range(8):
        clock.advance(DAY_MS)
        fill(store, 1)
        keep(store, clock)
    assert store._control.words[Word.LOG_MIN] > 3 * SEGMENT
    assert all(store.find(message_id).state == "scheduled" for message_id in ids)
    assert {event.event for event in store.find(ids[0]).timeline} >= {"renewed"}
    assert store.counters()["renewed"] >= 25
    clock.advance(3 * DAY_MS)
    assert hand_over_due(store) == 25
    assert sorted(set(delivered_ids(store)) & set(ids)) == sorted(ids)
    assert cancelled not in delivered_ids(store)


def test_nothing_is_renewed_within_a_minute_of_its_due_time(
    store: Store, clock: ManualClock
) -> None:
    message_id = send_timed(store, 4 * DAY_MS)
    fill(store, 2)
    clock.advance(4 * DAY_MS - 60_000)
    fill(store, 1)
    assert keep(store, clock) == (0, 0)
    clock.advance(60_000)
    assert keep(store, clock) == (0, 0)
    assert hand_over_due(store) == 1
    assert keep(store, clock)[1] > 0
    assert store.find(message_id).state == "ready"


def test_a_parked_message_stays_parked_with_its_reason_over_renewals(
    store: Store, clock: ManualClock, root: Path
) -> None:
    ids = [send_timed(store, 1_000), send_level(store, 1)]
    clock.advance(1_000)
    for message_id in ids:
        view = store.find(message_id)
        place = view.held_topic, view.held_queue_id, view.held_offset
        assert store.park(*place, reason=f"about {message_id}")
    fill(store, 2)
    for _ in range(6):
        clock.advance(DAY_MS)
        fill(store, 1)
        keep(store, clock)
    assert store._control.words[Word.LOG_MIN] > 2 * SEGMENT
    assert {(view.id, view.parked_reason) for view in store.parked()} == {
        (message_id, f"about {message_id}") for message_id in ids
    }
    with open_store(root, clock) as other:
        assert {view.id for view in other.parked()} == set(ids)
    assert hand_over_due(store) == 0
    assert store.release(ids[0], by=None).outcome == "released"
    assert hand_over_due(store) == 1
    assert [view.id for view in store.parked()] == ids[1:]


def test_a_parked_message_that_is_released_during_its_renewal_is_not_parked_again(
    store: Store, clock: ManualClock, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id = send_timed(store, 1_000)
    clock.advance(1_000)
    store.park(TIMER_TOPIC, 0, 0, reason="the topic was deleted")
    fill(store, 2)
    clock.advance(2 * DAY_MS)
    fill(store, 1)
    with open_store(root, clock) as other:
        units_at = store._hand_overs.units_at

        def release_meanwhile(*arguments: object) -> object:
            other.release(message_id, by=None)
            return units_at(*arguments)

        monkeypatch.setattr(store._hand_overs, "units_at", release_meanwhile)
        store.housekeep(clock.now_ms())
        monkeypatch.undo()
    later = send_timed(store, 1_000)
    clock.advance(1_000)
    assert hand_over_due(store) == 2
    assert [store.find(found).state for found in (message_id, later)] == ["ready", "ready"]


def test_changes_after_a_renewal_are_as_true_as_before(store: Store, clock: ManualClock) -> None:
    ids = [send_timed(store, 5 * DAY_MS) for _ in range(3)] + [send_level(store, 18)]
    fill(store, 2)
    clock.advance(2 * DAY_MS)
    fill(store, 1)
    assert keep(store, clock)[0] >= 3
    clock.advance(2 * DAY_MS)
    fill(store, 1)
    hand_over_due(store)
    keep(store, clock)
    assert store.cancel(ids[0], by=None).outcome == "cancelled"
    assert store.restore(ids[0], by=None).outcome == "restored"
    assert store.cancel(ids[1], by=None).outcome == "cancelled"
    moved = store.move(ids[2], clock.now_ms() + 5, by=None, expected_version=1)
    assert (moved.outcome, moved.view.version) == ("moved", 2)
    assert store.cancel(ids[3], by=None).outcome == "too_late"
    clock.advance(DAY_MS)
    assert hand_over_due(store) == 2
    assert set(ids) - set(delivered_ids(store)) == {ids[1]}


def test_a_damaged_message_does_not_hold_its_segment_for_ever(
    store: Store, clock: ManualClock, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    send_timed(store, 20 * DAY_MS)
    place = int(store.read_units(TIMER_TOPIC, 0, 0, 1)["log_offset"][0])
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(place + 95)
        file.write(b"\xff")
    fill(store, 2)
    clock.advance(4 * DAY_MS)
    fill(store, 1)
    assert keep(store, clock)[1] == 0
    # Parked first, so that it is told; then there is nothing left to keep.
    assert [seen.payload_gone for seen in store.parked()] == [True]
    assert keep(store, clock)[1] > 0
    assert [seen.state for seen in store.parked()] == ["parked"]
    assert f"offset {place}" in caplog.text
    assert store.counters()["damaged"] == 1


# -- over long ------------------------------------------------------------------------------------


def test_the_log_stays_bounded_over_a_month_whatever_the_delays(
    store: Store, clock: ManualClock, root: Path
) -> None:
    expected: set[str] = set()
    seen: set[str] = set()
    sizes = []
    for day in range(30):
        expected |= {send_timed(store, days * DAY_MS) for days in (1, 9, 25) if day + days < 30}
        fill(store, 2)
        for _ in range(2):
            clock.advance(DAY_MS // 2)
            hand_over_due(store)
            seen |= set(delivered_ids(store))
        keep(store, clock)
        sizes.append(len(segments(root)))
    assert max(sizes[10:]) <= 2 * (3 + 2) + 4
    assert expected <= seen
    for queue_id in store.queue_ids("orders"):
        assert store.queue_bounds("orders", queue_id).min_offset > 100


def test_a_rebuild_after_removal_gives_the_same_store(
    root: Path, clock: ManualClock, disk: RoomyDisk
) -> None:
    at_four(clock)
    with open_store(root, clock, disk=disk) as store:
        ids = [send_timed(store, 20 * DAY_MS) for _ in range(6)] + [send_level(store, 2)]
        store.cancel(ids[4], by=None)
        store.park(TIMER_TOPIC, 0, 5, reason="the topic was deleted")
        fill(store, 3)
        for _ in range(5):
            clock.advance(DAY_MS)
            hand_over_due(store)
            fill(store, 1)
            keep(store, clock)
        before = told_of(store, ids)
        assert store.queue_bounds("orders", 0).min_offset % 100
    shutil.rmtree(root / "consumequeue")
    with open_store(root, clock, disk=disk) as store:
        after = told_of(store, ids)
        assert before.keys() - after.keys() == set()
        for name, told in before.items():
            if not name.startswith("schedule"):
                assert after[name] == told, name
        waiting = store.schedule(TIMER_TOPIC, 0, 0, 1 << 40)
        assert np.count_nonzero(waiting.settled == 0) == 4
        assert store.queue_bounds(JOURNAL_TOPIC, 0).max_offset > 0
        store.send([outgoing(store, queue_id=0)])


def test_renewed_messages_survive_power_loss_after_their_old_segment_went(
    root: Path, clock: ManualClock
) -> None:
    at_four(clock)
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    waiting, due = send_timed(store, 20 * DAY_MS), send_timed(store, 4 * DAY_MS)
    fill(store, 2)
    store.flush()
    clock.advance(4 * DAY_MS)
    fill(store, 1)
    hand_over_due(store)
    assert keep(store, clock)[1] > 0
    machine.power_cut()
    with open_store(root, clock, disk=machine.disk()) as store:
        assert store.find(waiting).state == "scheduled"
        assert store.find(due).state == "ready"
