"""A wheel whose files are damaged, missing, or of another size is rebuilt, or refused by name."""

import pytest

from scheduler.wheel.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from scheduler.wheel.errors import WheelSizeDiffers
from scheduler.wheel.step import WheelStep
from scheduler.wheel.timerlog import FOLDER_NAME
from scheduler.wheel.timerwheel import FILE_NAME
from tests.support.wheelworld import WheelWorld, small_sizes

SIZES = small_sizes(window_slots=6, log_units=20)


def live(world: WheelWorld) -> None:
    """Some seconds with rolling, late arrivals and checkpoints."""
    now_ms = world.clock.now_ms()
    world.settle()
    world.send([*range(100, 12_000, 350), 1_500, 1_500, 1_500])
    world.run_until(now_ms + 2_600)
    world.send([1, 20, 1_900, 2_500, *range(3_000, 9_000, 500)])
    world.run_until(now_ms + 6_000)


def finish(world: WheelWorld) -> None:
    world.look()
    world.settle()
    world.assert_sound()
    world.run_until(max(world.due_ms.values(), default=0))
    world.check()
    assert world.waiting() == 0


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


def test_a_wheel_of_another_size_is_refused_by_name() -> None:
    with WheelWorld(SIZES) as world:
        world.step.close()
        world.disk.unlink(world.root / FILE_NAME)
        world.disk.map(world.root / FILE_NAME, size_bytes=640, create=True).close()
        with pytest.raises(WheelSizeDiffers, match="timer_rebuild"):
            WheelStep(world.store, sync_beside=False).open()
        world.disk.unlink(world.root / FILE_NAME)
        world.replace_step()


def test_a_slot_that_leads_behind_the_logs_end_is_mended() -> None:
    with WheelWorld(small_sizes(window_slots=60, log_units=2_000)) as world:
        world.settle()
        world.send([20_500, 30_500])
        world.settle()
        world.reopen()
        world.settle()
        log = world.root / FOLDER_NAME / world.disk.list_names(world.root / FOLDER_NAME)[0]
        before = log.read_bytes()
        world.send([20_600, 40_500, 40_600])
        world.settle()
        log.write_bytes(before)
        world.replace_step()
        world.settle()
        world.assert_sound()
        finish(world)
