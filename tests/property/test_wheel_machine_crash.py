"""After a crash of the machine any sector of the wheel and the TimerLog may be old or new."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.wheel.timerlog import FOLDER_NAME
from scheduler.wheel.timerwheel import FILE_NAME
from tests.support.wheelworld import WheelWorld, small_sizes

SECTOR_BYTES = 512


def wheel_files(root: Path) -> dict[Path, bytes]:
    """What the device holds of the wheel now."""
    paths = [root / FILE_NAME, *sorted((root / FOLDER_NAME).iterdir())]
    return {path: path.read_bytes() for path in paths}


def forget(before: dict[Path, bytes], after: dict[Path, bytes], kept: list[bool]) -> None:
    """Write each file back with the sectors that reached the device, the others as they were."""
    number = 0
    for path, new in after.items():
        old = before.get(path, b"").ljust(len(new), b"\0")
        mixed = bytearray(old)
        for at in range(0, len(new), SECTOR_BYTES):
            number += 1
            if kept[number % len(kept)]:
                mixed[at : at + SECTOR_BYTES] = new[at : at + SECTOR_BYTES]
        path.write_bytes(mixed)


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.integers(1, 9_000), min_size=1, max_size=60),
    later=st.lists(st.integers(1, 9_000), min_size=1, max_size=60),
    run_ms=st.integers(0, 900),
    kept=st.lists(st.booleans(), min_size=1, max_size=17),
)
def test_the_wheel_goes_on_whichever_sectors_reached_the_device(
    delays: list[int], later: list[int], run_ms: int, kept: list[bool]
) -> None:
    with WheelWorld(small_sizes(window_slots=6, log_units=40)) as world:
        world.settle()
        world.send(delays)
        world.settle()
        world.reopen()
        world.settle()
        before = wheel_files(world.root)
        counter = world.step.engine.durable_ms
        world.send(later)
        world.run_until(world.clock.now_ms() + run_ms)
        assert world.step.engine.durable_ms == counter
        forget(before, wheel_files(world.root), kept)
        world.replace_step()
        world.settle()
        world.assert_sound()
        world.run_until(max(world.due_ms.values()))
        world.check()
        assert world.waiting() == 0
