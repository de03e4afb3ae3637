"""A holder that died at any write is followed by one that loses, hurries and doubles nothing.

The same life, with either engine, killed at each of its writes; then the next holder goes on.
"""

import shutil
from pathlib import Path

import pytest

from queues.store import Store
from queues.store.control import Word
from scheduler.engine.places import TIMELINE, WHEEL_CHECKPOINT, WHEEL_FILE, WHEEL_LOG
from tests.support.faulty_disk import Died, Fate, FaultyDisk
from tests.support.forgetful_disk import Machine
from tests.support.wheelworld import WheelWorld, bury, small_sizes

SIZES = small_sizes(window_slots=6, log_units=20)
ENGINES = ("wheel", "rocksdb")
DAY_MS = 86_400_000


def live(world: WheelWorld) -> None:
    """Twelve seconds with rolling, late arrivals, cancels, moves, restores and checkpoints."""
    now_ms = world.clock.now_ms()
    world.settle()
    ids = world.send([*range(100, 12_000, 350), 1_500, 1_500, 1_500])
    world.settle()
    world.cancel(ids[7])
    world.run_until(now_ms + 2_600)
    world.send([1, 20, 1_900, 2_500, *range(3_000, 9_000, 500)])
    move(world, ids[30], now_ms + 7_777)
    world.clock.advance(1_500)
    world.run_until(now_ms + 6_000)
    world.cancel(ids[25])
    world.run_until(now_ms + 9_000)


def move(world: WheelWorld, message_id: str, due_ms: int) -> None:
    if world.store.move(message_id, due_ms, by="test").outcome == "moved":
        world.due_ms[message_id] = due_ms


def finish(world: WheelWorld) -> None:
    world.look()
    world.settle()
    world.assert_sound()
    world.run_until(max(world.due_ms.values(), default=0))
    world.check()
    assert world.waiting() == 0


def count_writes(engine: str) -> int:
    fate = Fate()
    with WheelWorld(SIZES, engine=engine) as world:
        world.replace_step(FaultyDisk(fate))
        live(world)
        finish(world)
    return fate.writes


WRITES = {"wheel": 85, "rocksdb": 36}
STOPS = [
    (engine, write, torn)
    for engine in ENGINES
    for torn, first, step in ((0.0, 0, 1), (0.3, 0, 3), (0.99, 1, 1 if engine == "rocksdb" else 3))
    for write in range(first, WRITES[engine], step)
    if engine == "wheel" or torn != 0.3
]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_life_in_these_tests_makes_as_many_writes_as_are_stopped(engine: str) -> None:
    assert WRITES[engine] - 20 < count_writes(engine) <= WRITES[engine]


@pytest.mark.parametrize(("engine", "die_at", "torn"), STOPS)
def test_a_holder_that_died_at_a_write_is_followed(engine: str, die_at: int, torn: float) -> None:
    with WheelWorld(SIZES, engine=engine) as world:
        fate = Fate(die_at, torn=torn)
        try:
            world.replace_step(FaultyDisk(fate))
            live(world)
            finish(world)
            fate.die_at = None
        except Died:
            world.replace_step()
        finish(world)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("die_again", range(0, 20, 2))
def test_a_holder_that_dies_again_while_it_recovers_is_followed(
    engine: str, die_again: int
) -> None:
    with WheelWorld(SIZES, engine=engine) as world:
        world.replace_step(FaultyDisk(Fate(WRITES[engine] // 2, torn=0.5)))
        with pytest.raises(Died):
            live(world)
        fate = Fate(die_again, torn=0.5)
        try:
            world.replace_step(FaultyDisk(fate))
            world.settle()
            fate.die_at = None
        except Died:
            world.replace_step()
        finish(world)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_came_while_the_clock_was_a_little_back_survives_a_kill(engine: str) -> None:
    with WheelWorld(engine=engine) as world:
        world.settle()
        world.send([*range(100, 10_100, 100)])
        world.run_until(world.clock.now_ms() + 10_000)
        world.clock.step_back(6_000)
        world.send([2_500, 3_500])
        fate = Fate()
        world.replace_step(FaultyDisk(fate))
        world.turn_until_enqueued(fate)
        world.clock.step_forward(4_000)
        world.replace_step()
        finish(world)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_waits_again_because_the_log_lost_its_cancel_is_not_passed_over(
    engine: str, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "store")
    world = WheelWorld(SIZES, root=machine.root, disk=machine.disk(), engine=engine)
    world.settle()
    first, _ = world.send([4_000, 5_000])
    world.store.flush()
    assert world.store.cancel(first, by="test").outcome == "cancelled"
    world.turn_until_enqueued(Fate())
    bury(world.step)
    cut_power(machine)
    again = WheelWorld(
        SIZES, root=machine.root, disk=machine.disk(), engine=engine, clock=world.clock
    )
    again.due_ms = world.due_ms
    finish(again)
    assert first in again.handed
    again.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_came_late_before_a_kill_and_a_step_back_of_the_clock_is_on_time(engine: str) -> None:
    with WheelWorld(SIZES, engine=engine) as world:
        world.settle()
        now_ms = world.clock.now_ms()
        # The steps were told the time before the clock was set back; the store reads it after.
        world.step.advance(now_ms + 20_000)
        world.send([8_000])
        world.step.advance(now_ms + 20_000)
        world.step.advance(now_ms + 22_000)
        world.replace_step()
        world.run_until(now_ms + 8_000)
        world.check()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checkpoint_waits_for_the_cancel_that_it_passed_over(engine: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "store")
    world = WheelWorld(SIZES, root=machine.root, disk=machine.disk(), engine=engine)
    world.settle()
    first, _ = world.send([4_000, 5_000])
    world.store.flush()
    disk = machine.disk()
    other = Store.open(machine.root, world.settings, clock=world.clock, disk=disk)
    die_before_the_commit(other, first)
    world.clock.advance(1_500)
    world.settle()
    bury(world.step)
    cut_power(machine)
    again = WheelWorld(
        SIZES, root=machine.root, disk=machine.disk(), engine=engine, clock=world.clock
    )
    again.due_ms = world.due_ms
    if again.store.find(first).state == "cancelled":
        del again.due_ms[first]
    finish(again)
    again.close()


def die_before_the_commit(store: Store, message_id: str) -> None:
    """Cancel a message, and die when its settled word is set, the record not committed."""
    disk = store.disk
    assert isinstance(disk, FaultyDisk)
    control = store._control
    set_word = control.set

    def set_or_die(word: int, value: int) -> None:
        if word == Word.COMMITTED:
            disk.fate.dead = True
            raise Died
        set_word(word, value)

    control.set = set_or_die
    with pytest.raises(Died):
        store.cancel(message_id, by="test")
    disk.bury()


def cut_power(machine: Machine) -> None:
    """Cut the power; what the timer wrote had reached the device all the same."""
    root, aside = machine.root, machine.root.with_name("timeline aside")
    for path in (root / WHEEL_FILE, root / WHEEL_CHECKPOINT, *(root / WHEEL_LOG).glob("*")):
        if path.exists():
            machine.sync_file(path, path.stat().st_ino)
            machine.sync_names(path.parent)
    if (root / TIMELINE).exists():
        (root / TIMELINE).rename(aside)
    machine.power_cut()
    if aside.exists():
        shutil.rmtree(root / TIMELINE, ignore_errors=True)
        aside.rename(root / TIMELINE)


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_downtime_longer_than_the_wheel_everything_still_comes(engine: str) -> None:
    with WheelWorld(small_sizes(window_slots=6_000), engine=engine) as world:
        world.settle()
        world.send([*range(1_000, 20_000_000, 600_000)])
        world.settle()
        world.step.close()
        world.clock.advance(90 * DAY_MS)
        world.send([1_000, 90_000_000])
        world.replace_step()
        world.settle()
        world.assert_sound()
        assert world.waiting() == 2
        world.check()
        world.clock.advance(90_000_000)
        finish(world)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_for_years_from_now_waits_and_comes(engine: str) -> None:
    years_ms = 5 * 365 * DAY_MS
    with WheelWorld(small_sizes(precision_ms=60_000, window_slots=9_000), engine=engine) as world:
        world.settle()
        world.send([years_ms, years_ms + 1, 3_000])
        for _ in range(70):
            world.clock.advance(26 * DAY_MS)
            world.settle()
        world.reopen()
        assert len(world.look()) == 1
        world.clock.advance(years_ms - 70 * 26 * DAY_MS)
        world.settle()
        assert len(world.look()) == 2
        world.clock.advance(1)
        finish(world)


@pytest.mark.parametrize("engine", ENGINES)
def test_whoever_comes_after_a_clean_stop_scans_nothing_again(engine: str) -> None:
    with WheelWorld(SIZES, engine=engine) as world:
        live(world)
        world.reopen()
        assert world.step.report()["enqueue_lag_messages"] == 0
        finish(world)


# -- changing the engine ------------------------------------------------------------------------


@pytest.mark.parametrize("first", ENGINES)
@pytest.mark.parametrize("downtime_ms", [0, 2_000, 30_000])
def test_the_engine_may_be_changed_and_changed_back(first: str, downtime_ms: int) -> None:
    second = ENGINES[1 - ENGINES.index(first)]
    with WheelWorld(SIZES, engine=first) as world:
        live(world)
        for engine in (second, first, second):
            world.step.close()
            world.engine = engine
            world.send([500, 4_000, 60_000])
            world.clock.advance(downtime_ms)
            world.replace_step()
            world.settle()
            world.check()
            assert files_of(world) == {engine}
            world.run_until(world.clock.now_ms() + 1_500)
        finish(world)


def files_of(world: WheelWorld) -> set[str]:
    wheel = any(world.disk.exists(world.root / path) for path in (WHEEL_FILE, WHEEL_LOG))
    rocksdb = world.disk.exists(world.root / TIMELINE)
    return {name for name, there in (("wheel", wheel), ("rocksdb", rocksdb)) if there}


@pytest.mark.parametrize("first", ENGINES)
@pytest.mark.parametrize("die_at", range(0, 14, 2))
def test_a_change_of_the_engine_may_be_killed_anywhere(first: str, die_at: int) -> None:
    with WheelWorld(SIZES, engine=first) as world:
        live(world)
        world.step.close()
        world.engine = ENGINES[1 - ENGINES.index(first)]
        fate = Fate(die_at)
        try:
            world.replace_step(FaultyDisk(fate))
            world.settle()
            fate.die_at = None
        except Died:
            world.engine = first
            world.replace_step()
        finish(world)


# -- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["CURRENT", "MANIFEST", ".sst", ".log", "checkpoint"])
def test_a_timeline_that_is_damaged_is_begun_anew(lost: str) -> None:
    with WheelWorld(SIZES, engine="rocksdb") as world:
        world.settle()
        world.send([*range(1_000, 60_000, 300)])
        world.settle()
        world.step.close()
        folder = world.root / TIMELINE
        for name in world.disk.list_names(folder):
            if lost == "checkpoint" and name.endswith(".sst"):
                (folder / name).write_bytes(b"\xff" * 200)
            elif lost in name:
                (folder / name).unlink()
        world.replace_step()
        finish(world)


def test_a_timeline_of_another_store_is_begun_anew() -> None:
    with (
        WheelWorld(SIZES, engine="rocksdb") as world,
        WheelWorld(SIZES, engine="rocksdb") as other,
    ):
        for each in (world, other):
            each.settle()
            each.send([5_000] * 3)
            each.settle()
            each.step.close()
        world.disk.remove_tree(world.root / TIMELINE)
        (other.root / TIMELINE).rename(world.root / TIMELINE)
        for each in (world, other):
            each.replace_step()
            finish(each)


def test_the_wheels_checkpoint_goes_first_when_the_engine_changes() -> None:
    with WheelWorld(SIZES) as world:
        live(world)
        world.step.close()
        world.engine = "rocksdb"
        with pytest.raises(Died):
            world.replace_step(FaultyDisk(Fate(1)))
        assert not world.disk.exists(world.root / WHEEL_CHECKPOINT)
        world.replace_step()
        finish(world)
