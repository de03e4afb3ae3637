"""Another slot width or wheel span: refused while the files differ, taken after a rebuild."""

from dataclasses import replace

import pytest

from queues.store.disk import Disk
from queues.store.resizing import (
    StoreInUse,
    TimerSizesDiffer,
    check_timer_sizes,
    kept_sizes,
    resize_timer,
)
from queues.store.store import Store
from scheduler.engine.places import remove_timeline, remove_wheel
from tests.support.wheelworld import WheelWorld, small_sizes

SMALL = small_sizes(precision_ms=1000, window_slots=30)


def test_a_store_that_does_not_exist_yet_has_no_sizes_to_differ_from(tmp_path) -> None:
    assert kept_sizes(Disk(), tmp_path) is None
    check_timer_sizes(Disk(), tmp_path, SMALL)


@pytest.mark.parametrize(
    "other", [{"timer_precision_ms": 500}, {"timer_window_slots": 60}], ids=["width", "span"]
)
def test_settings_that_differ_from_the_files_are_refused_with_what_to_do(
    other: dict[str, int],
) -> None:
    with WheelWorld(SMALL) as world:
        check_timer_sizes(world.disk, world.root, SMALL)
        with pytest.raises(TimerSizesDiffer, match="timer_rebuild") as refused:
            check_timer_sizes(world.disk, world.root, replace(SMALL, **other))
        assert refused.value.precision_ms == 1000


def test_a_store_in_use_keeps_its_sizes(engine: str) -> None:
    with WheelWorld(SMALL, engine=engine) as world:
        with pytest.raises(StoreInUse):
            resize_timer(Disk(), world.root, replace(SMALL, timer_precision_ms=500), list)
        assert kept_sizes(Disk(), world.root) == SMALL


@pytest.mark.parametrize(("precision_ms", "window_slots"), [(100, 40), (5000, 7), (1000, 200)])
def test_messages_wait_on_in_a_timer_of_another_size(
    engine: str, precision_ms: int, window_slots: int
) -> None:
    wanted = replace(SMALL, timer_precision_ms=precision_ms, timer_window_slots=window_slots)
    with WheelWorld(SMALL, engine=engine) as world:
        world.settle()
        ids = world.send([300, 1_700, 9_000, 40_000, 200_000])
        world.run_until(world.clock.now_ms() + 1_000)
        world.cancel(ids[2])
        world.step.close()
        world.store.close()

        def remove_files() -> None:
            remove_wheel(world.disk, world.root)
            remove_timeline(world.disk, world.root)

        before, after = resize_timer(Disk(), world.root, wanted, remove_files)
        assert (before, after) == (SMALL, wanted)
        world.store = Store.open(
            world.root,
            replace(world.settings, sizes=wanted),
            clock=world.clock,
            disk=world.disk,
        )
        world.replace_step()
        assert world.step.engine.books.precision_ms == precision_ms
        world.run_until(max(world.due_ms.values()))
        world.check()
        assert world.waiting() == 0
