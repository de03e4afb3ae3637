"""The timeline: entries come and go by key and by range, and none is lost to another."""

from pathlib import Path

import numpy as np
import pytest

from queues.store.errors import DiskFull
from queues.store.leading import Leading
from queues.store.names import TIMER_TOPIC
from scheduler.engine.errors import EngineBroken, EngineBusy
from scheduler.engine.scan import Waiting
from scheduler.rocksdb.engine import RocksEngine
from scheduler.rocksdb.enqueue import put
from scheduler.rocksdb.entries import TIMES_END, VALUE, Checkpoint, Floor, time_key
from scheduler.rocksdb.outstanding import OutstandingSlots
from scheduler.rocksdb.timeline import Timeline, TimelineUnusable, translated
from tests.support.wheelworld import WheelWorld


def test_what_is_settled_goes_from_the_timeline_as_one_range() -> None:
    with WheelWorld(engine="rocksdb") as world:
        world.settle()
        for _ in range(4):
            world.send([100, 5_000] * 30)
            world.run_until(world.clock.now_ms() + 40_000)
        world.run_until(world.clock.now_ms() + 130_000)
        engine = world.step.engine
        assert isinstance(engine, RocksEngine)
        assert engine.timeline.read(b"", TIMES_END, 1_000) == []


def test_what_is_cancelled_or_moved_leaves_the_timeline_by_its_key() -> None:
    with WheelWorld(engine="rocksdb") as world:
        world.settle()
        ids = world.send([60_000] * 4)
        world.settle()
        engine = world.step.engine
        assert isinstance(engine, RocksEngine)
        assert len(engine.timeline.read(b"", TIMES_END, 10)) == 4
        world.cancel(ids[1])
        due_ms = world.clock.now_ms() + 90_000
        assert world.store.move(ids[2], due_ms, by="test").outcome == "moved"
        world.due_ms[ids[2]] = due_ms
        world.settle()
        left = {key[-32:].decode() for key, _ in engine.timeline.read(b"", TIMES_END, 10)}
        assert left == {ids[0], ids[2], ids[3]}
        assert world.store.restore(ids[1], by="test").outcome == "restored"
        world.due_ms[ids[1]] = world.due_ms[ids[0]]
        world.settle()
        assert len(engine.timeline.read(b"", TIMES_END, 10)) == 4
        world.run_until(due_ms)
        world.check()
        assert world.waiting() == 0


def test_two_messages_with_one_key_are_both_kept(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    with WheelWorld() as world:
        world.settle()
        world.send([60_000] * 2)
        units = world.store.read_units(TIMER_TOPIC, 0, 0, 2)
        places = units["log_offset"].astype(np.int64)
        octets = np.zeros((2, 124), np.uint8)
        octets[:, 29] = ord("A")
        octets[:, 30:50] = ord("0")
        octets[:, 91:123] = ord("f")
        due_ms = np.full(2, world.clock.now_ms() + 60_000)
        both = Waiting(np.arange(2), due_ms, places, units["size"])
        put(world.store, timeline, both, due_ms, Leading(octets, due_ms), floor=None)
        ((_, value),) = timeline.read(b"", TIMES_END, 10)
        assert sorted(np.frombuffer(value, VALUE)["queue_offset"].tolist()) == [0, 1]
        world.run_until(world.clock.now_ms() + 60_000)
        put(world.store, timeline, both, due_ms, Leading(octets, due_ms), floor=None)
    timeline.close()


def test_the_notes_give_back_what_they_were_made_of() -> None:
    checkpoint = Checkpoint(1, 2, 3, 4, 5, 6, 7)
    assert Checkpoint.decode(checkpoint.encode()) == checkpoint
    assert Checkpoint.decode(b"\0" * 64) is None
    assert Checkpoint.decode(b"") is None
    floor = Floor(10)
    assert Floor.decode(floor.encode()) == floor


def test_reading_goes_from_a_key_on_and_no_further_than_asked(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "db")
    entries = [(time_key(at) + b"t" + b"f" * 32, b"v" * 16) for at in (1, 5, 5_000, 1 << 43)]
    timeline.write(entries, floor=Floor(4))
    assert timeline.read(time_key(5), time_key(5_001), 10) == entries[1:3]
    assert timeline.read(time_key(0), TIMES_END, 2) == entries[:2]
    timeline.remove_range(time_key(0), time_key(6))
    assert timeline.read(time_key(0), TIMES_END, 10) == entries[2:]
    timeline.write((), [entries[3][0]], floor=None)
    timeline.close()
    timeline = Timeline(tmp_path / "db")
    assert timeline.read(time_key(0), TIMES_END, 10) == entries[2:3]
    assert timeline.floor() == Floor(4)
    timeline.close()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("IO error: No space left on device: While appending to file", DiskFull),
        ("Result incomplete: Write stall", EngineBusy),
        ("Corruption: block checksum mismatch", EngineBroken),
        ("IO error: lock hold by current process", TimelineUnusable),
    ],
)
def test_rocksdbs_words_become_errors_with_a_class(words: str, kind: type[Exception]) -> None:
    assert type(translated(Exception(words), Path("db"))) is kind


def test_the_oldest_slot_with_anything_outstanding_is_known() -> None:
    counts = OutstandingSlots()
    assert counts.oldest_ms() is None
    counts.add(np.array([5_000, 3_000, 5_000]))
    counts.add(np.array([9_000, 9_000]))
    assert (counts.oldest_ms(), counts.total) == (3_000, 5)
    counts.settle(np.array([3_000, 5_000]))
    assert counts.oldest_ms() == 5_000
    counts.settle(np.array([5_000]))
    counts.add(np.array([3_000]))
    assert counts.oldest_ms() == 3_000
    counts.settle(np.array([9_000, 3_000, 9_000]))
    assert (counts.oldest_ms(), counts.total) == (None, 0)


def test_a_timeline_that_cannot_take_more_is_tried_again_and_delays_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with WheelWorld(engine="rocksdb") as world:
        world.settle()
        engine = world.step.engine
        assert isinstance(engine, RocksEngine)

        def refuse(*_: object, **__: object) -> None:
            raise EngineBusy

        monkeypatch.setattr(engine.timeline, "write", refuse)
        monkeypatch.setattr(engine.timeline, "save", refuse)
        ids = world.send([200, 60_000])
        world.run_until(world.clock.now_ms() + 3_000)
        assert world.look().keys() == {ids[0]}
        monkeypatch.undo()
        world.run_until(world.clock.now_ms() + 60_000)
        assert world.look().keys() == set(ids)
