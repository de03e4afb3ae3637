"""A wheel that died at any write goes on as if nothing had happened, or is rebuilt."""

import pytest

from scheduler.wheel.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from scheduler.wheel.errors import WheelSizeDiffers
from scheduler.wheel.step import WheelStep
from scheduler.wheel.timerlog import FOLDER_NAME
from scheduler.wheel.timerwheel import FILE_NAME
from tests.support.faulty_disk import Died, Fate, FaultyDisk
from tests.support.wheelworld import WheelWorld, small_sizes

SIZES = small_sizes(window_slots=6, log_units=20)


def live(world: WheelWorld) -> None:
    """Twelve seconds with new files, rolling, late arrivals, cancels and checkpoints."""
    now_ms = world.clock.now_ms()
    world.settle()
    ids = world.send([*range(100, 12_000, 350), 1_500, 1_500, 1_500])
    world.settle()
    world.cancel(ids[7])
    world.run_until(now_ms + 2_600)
    world.send([1, 20, 1_900, 2_500, *range(3_000, 9_000, 500)])
    world.clock.advance(1_500)
    world.run_until(now_ms + 6_000)
    world.cancel(ids[25])
    world.run_until(now_ms + 9_000)


def finish(world: WheelWorld) -> None:
    world.look()
    world.settle()
    world.assert_sound()
    world.run_until(max(world.due_ms.values(), default=0))
    world.check()
    assert world.waiting() == 0


def count_writes() -> int:
    fate = Fate()
    with WheelWorld(SIZES) as world:
        world.replace_step(FaultyDisk(fate))
        live(world)
        finish(world)
    return fate.writes


WRITES = 80


def test_the_life_in_these_tests_makes_as_many_writes_as_are_stopped() -> None:
    assert WRITES - 20 < count_writes() <= WRITES


@pytest.mark.parametrize(
    ("die_at", "torn"),
    [(write, 0.0) for write in range(WRITES)]
    + [(write, 0.3) for write in range(0, WRITES, 3)]
    + [(write, 0.99) for write in range(1, WRITES, 3)],
)
def test_a_wheel_that_died_at_a_write_goes_on(die_at: int, torn: float) -> None:
    with WheelWorld(SIZES) as world:
        fate = Fate(die_at, torn=torn)
        try:
            world.replace_step(FaultyDisk(fate))
            live(world)
            finish(world)
            fate.die_at = None
        except Died:
            world.replace_step()
        finish(world)


@pytest.mark.parametrize("die_again", range(0, 20, 2))
def test_a_wheel_that_dies_again_while_it_recovers_goes_on(die_again: int) -> None:
    with WheelWorld(SIZES) as world:
        world.step.close()
        world.replace_step(FaultyDisk(Fate(45, torn=0.5)))
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


@pytest.mark.parametrize("lost", [FILE_NAME, FOLDER_NAME, "config/timercheck"])
def test_a_wheel_whose_files_were_deleted_is_rebuilt(lost: str) -> None:
    with WheelWorld(SIZES) as world:
        live(world)
        world.step.close()
        path = world.root / lost
        world.disk.remove_tree(path) if path.is_dir() else world.disk.unlink(path)
        world.replace_step()
        finish(world)


@pytest.mark.parametrize("position", [13, 52 * 9_999])
def test_a_wheel_whose_checkpoint_leads_nowhere_is_rebuilt(position: int) -> None:
    with WheelWorld(SIZES) as world:
        live(world)
        world.step.close()
        known = load_checkpoint(world.disk, world.root)
        assert known is not None
        wrong = type(known)(known.read_ms, position, known.queue_offset, known.written_ms)
        save_checkpoint(world.disk, world.root, wrong)
        world.replace_step()
        finish(world)


def test_a_checkpoint_that_is_garbage_counts_as_missing() -> None:
    with WheelWorld(SIZES) as world:
        live(world)
        world.step.close()
        world.disk.replace(checkpoint_path(world.root), b"\xff" * 4096)
        assert load_checkpoint(world.disk, world.root) is None
        world.replace_step()
        finish(world)


def test_a_damaged_timer_log_is_noticed_when_its_slot_is_read_and_rebuilt() -> None:
    with WheelWorld(SIZES) as world:
        world.settle()
        world.send([2_500] * 30)
        world.settle()
        world.reopen()
        name = world.disk.list_names(world.root / FOLDER_NAME)[0]
        file = world.disk.open(world.root / FOLDER_NAME / name)
        file.pwrite(bytes(520), 52)
        file.close()
        world.run_until(world.clock.now_ms() + 3_000)
        world.check()
        finish(world)


def test_after_a_downtime_longer_than_the_wheel_everything_still_comes() -> None:
    with WheelWorld(small_sizes(window_slots=6_000)) as world:
        world.settle()
        world.send([*range(1_000, 20_000_000, 600_000)])
        world.settle()
        world.step.close()
        world.clock.advance(90 * 86_400_000)
        world.send([1_000, 90_000_000])
        world.replace_step()
        world.settle()
        world.assert_sound()
        assert world.waiting() == 2
        world.check()
        world.clock.advance(90_000_000)
        finish(world)


def test_a_wheel_of_another_size_is_refused_by_name() -> None:
    with WheelWorld(SIZES) as world:
        world.step.close()
        world.disk.unlink(world.root / FILE_NAME)
        world.disk.map(world.root / FILE_NAME, size_bytes=640, create=True).close()
        with pytest.raises(WheelSizeDiffers, match="timercheck"):
            WheelStep(world.store, sync_beside=False).open()
        world.disk.unlink(world.root / FILE_NAME)
        world.replace_step()


def test_whoever_comes_after_a_clean_stop_scans_nothing_again() -> None:
    with WheelWorld(SIZES) as world:
        live(world)
        before = world.step.report()
        world.reopen()
        after = world.step.report()
        assert after["enqueue_lag_messages"] == 0
        assert after["log_end"] == before["log_end"]
