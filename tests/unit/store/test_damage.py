"""Damage: it is told with path and offset, good records stay readable, a failed sync is final."""

from pathlib import Path

import numpy as np
import pytest

from queues.store import TIMER_TOPIC
from queues.store.control import Word
from queues.store.errors import RecordCorrupt, StoreFailed
from queues.store.names import JOURNAL_TOPIC
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.forgetful_disk import Machine
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SETTINGS,
    SYNC,
    delivered_ids,
    hand_over_due,
    open_store,
    send_timed,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def flip(root: Path, offset: int) -> None:
    segment = SETTINGS.sizes.segment_bytes
    path = root / "commitlog" / f"{offset // segment * segment:020d}"
    with path.open("r+b") as file:
        file.seek(offset % segment)
        byte = file.read(1)[0]
        file.seek(offset % segment)
        file.write(bytes([byte ^ 0xFF]))


@pytest.mark.parametrize("at", [2, 22, 60, 92, 180], ids=lambda at: f"byte {at}")
def test_damage_in_the_flushed_log_is_told_and_the_good_records_after_it_are_read(
    root: Path, clock: ManualClock, at: int
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    ids = [send_timed(store, 1_000) for _ in range(12)]
    store.flush()
    place = int(store.read_units(TIMER_TOPIC, 0, 5, 1)["log_offset"][0])
    machine.sync_everything()
    machine.power_cut()
    flip(root, place + at)
    with open_store(root, clock, disk=machine.disk()) as store:
        assert [(d.path.name, d.offset) for d in store.damages] == [(f"{0:020d}", place)]
        others = [message_id for number, message_id in enumerate(ids) if number != 5]
        assert all(store.find(message_id) for message_id in others)
        clock.advance(2_000)
        assert hand_over_due(store) == 11
        assert delivered_ids(store) == sorted(others)
        assert store.count_waiting(TIMER_TOPIC, 0) == 0


@pytest.mark.parametrize("at", [22, 95, 180], ids=lambda at: f"byte {at}")
def test_a_record_that_is_damaged_in_use_is_told_and_can_be_parked(
    root: Path, clock: ManualClock, at: int
) -> None:
    with open_store(root, clock) as store:
        ids = [send_timed(store, 1_000) for _ in range(3)]
        place = int(store.read_units(TIMER_TOPIC, 0, 1, 1)["log_offset"][0])
        flip(root, place + at)
        clock.advance(1_000)
        result = store.hand_over(TIMER_TOPIC, 0, np.arange(3))
        assert result.handed == 2
        assert [(f.queue_offset, f.permanent) for f in result.failed] == [(1, True)]
        assert str(place) in result.failed[0].reason
        assert store.park(TIMER_TOPIC, 0, 1, reason=result.failed[0].reason)
        assert store.first_unsettled(TIMER_TOPIC, 0) == 3
        assert not store.park(TIMER_TOPIC, 0, 1, reason="again")
        with pytest.raises(RecordCorrupt) as caught:
            store.read_record(place)
        assert (caught.value.path.name, caught.value.offset) == (f"{0:020d}", place)
        assert [store.find(ids[number]).state for number in (0, 2)] == ["ready", "ready"]
        assert store.queue_bounds(JOURNAL_TOPIC, 0).max_offset == 1
        (seen,) = store.parked()
        assert str(place) in (seen.parked_reason or "")
        assert (seen.state, seen.payload_gone, seen.topic) == ("parked", True, "orders")
        assert seen.id == ids[1]
        assert seen.due_ms == store.schedule(TIMER_TOPIC, 0, 1, 2).due_ms[0]
        assert store.find(seen.id) == seen
        for refused in (
            store.release(seen.id, by="tester"),
            store.move(seen.id, clock.now_ms() + 1_000, by="tester"),
        ):
            assert refused.outcome == "payload_gone"
        assert store.cancel(seen.id, by="tester").outcome == "cancelled"
        assert store.cancel(seen.id, by="tester").outcome == "already_cancelled"
        assert store.restore(seen.id, by="tester").outcome == "payload_gone"
        assert store.parked() == []
        assert [event.event for event in store.find(seen.id).timeline] == ["parked", "cancelled"]


def test_a_damaged_message_whose_id_cannot_be_read_gets_one_to_be_looked_at_by(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as store:
        message_id = send_timed(store, 1_000)
        unit = store.read_units(TIMER_TOPIC, 0, 0, 1)[0]
        raw = store.read_records(np.array([unit]))[0]
        flip(root, int(unit["log_offset"]) + raw.index(message_id.encode()) + 20)
        assert store.park(TIMER_TOPIC, 0, 0, reason="it is damaged")
        (seen,) = store.parked()
        assert seen.id != message_id
        assert store.find(seen.id) == seen
        assert store.find(message_id) is None
        assert store.cancel(seen.id, by="tester").outcome == "cancelled"


def test_a_damaged_message_that_was_parked_is_still_told_after_a_rebuild(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as store:
        ids = [send_timed(store, 1_000) for _ in range(3)]
        place = int(store.read_units(TIMER_TOPIC, 0, 1, 1)["log_offset"][0])
        flip(root, place + 180)
        assert store.park(TIMER_TOPIC, 0, 1, reason="it is damaged")
        assert [seen.id for seen in store.parked()] == [ids[1]]
    (root / "postdate" / "control").unlink()
    with open_store(root, clock) as store:
        assert [(seen.id, seen.parked_reason) for seen in store.parked()] == [
            (ids[1], "it is damaged")
        ]
        assert store.cancel(ids[1], by="tester").outcome == "cancelled"
        assert store.parked() == []
    (root / "postdate" / "control").unlink()
    with open_store(root, clock) as store:
        assert store.parked() == []
        assert store.find(ids[1]).state == "cancelled"


def test_a_lost_control_page_does_not_make_damage_the_end_of_the_log(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as store:
        ids = [send_timed(store, 1_000) for _ in range(6)]
        place = int(store.read_units(TIMER_TOPIC, 0, 2, 1)["log_offset"][0])
        end = store.committed
    flip(root, place + 100)
    (root / "postdate" / "control").unlink()
    with open_store(root, clock) as store:
        assert store.committed == end
        assert [store.find(message_id) is not None for message_id in ids] == [
            number != 2 for number in range(6)
        ]


def test_after_a_failed_sync_the_store_writes_nothing_until_it_is_opened_anew(
    root: Path, clock: ManualClock
) -> None:
    machine = Machine(root)
    store = open_store(root, clock, settings=SYNC, disk=machine.disk())
    first = send_timed(store, 1_000)
    machine.syncs_fail = True
    with pytest.raises(StoreFailed):
        send_timed(store, 1_000)
    machine.syncs_fail = False
    with pytest.raises(StoreFailed):
        send_timed(store, 1_000)
    with pytest.raises(StoreFailed):
        store.cancel(first, by=None)
    assert store.health()["reason"] == "store_failed"
    assert store.find(first).state == "scheduled"
    store.close()
    assert (root / "abort").exists()
    with open_store(root, clock, settings=SYNC, disk=machine.disk()) as store:
        assert store.health()["writable"]
        assert store.cancel(first, by=None).outcome == "cancelled"
        assert_sound(store)


class LyingCache(UnsyncedDisk):
    """The device never got what lies behind `end`; the page cache still shows it."""

    end = 0

    def read_direct(self, path: Path) -> bytes:
        return super().read_direct(path)[: self.end].ljust(path.stat().st_size, b"\0")


def test_after_a_failed_sync_the_log_ends_where_the_device_says(
    root: Path, clock: ManualClock
) -> None:
    store = open_store(root, clock)
    first = send_timed(store, 1_000)
    disk = LyingCache()
    disk.end = store.committed
    second = send_timed(store, 1_000)
    store._control.set(Word.FAILED, 1)
    store.close()
    with open_store(root, clock, disk=disk) as store:
        assert store.committed == disk.end
        assert store.find(first) is not None
        assert store.find(second) is None
        assert_sound(store)


class StaleDevice(UnsyncedDisk):
    """The device holds an older writing of a place than the page cache does."""

    old = b""

    def read_direct(self, path: Path) -> bytes:
        return self.old.ljust(path.stat().st_size, b"\0")


def test_after_a_failed_sync_a_record_that_was_written_over_is_not_taken_for_the_logs_end(
    root: Path, clock: ManualClock
) -> None:
    store = open_store(root, clock)
    first = send_timed(store, 1_000)
    end = store.committed
    store.flush()
    path, disk = root / "commitlog" / f"{0:020d}", StaleDevice()
    longer = open_store(root.with_name("other"), clock)
    send_timed(longer, 1_000)
    assert longer.committed == end
    send_timed(longer, 1_000, body_bytes=500)
    disk.old = path.read_bytes()[:end] + bytes(longer._log.memory(0).memory[end:])
    longer.close()
    second = send_timed(store, 1_000)
    store._control.set(Word.FAILED, 1)
    store.close()
    with open_store(root, clock, disk=disk) as store:
        assert store.committed == end
        assert store.find(first) is not None
        assert store.find(second) is None
        assert_sound(store)
