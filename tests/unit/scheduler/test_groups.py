"""The groups of a process: a tick runs a loop, stands by for it, or ends at once."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from queues.store.clock import SystemClock
from queues.store.disk import Disk
from scheduler.groups import Group, Groups, group_names
from scheduler.limits import PLACEMENT_TICKS
from scheduler.loop import Ending
from scheduler.schedule import LoopTable
from scheduler.status import LoopStatus
from scheduler.wake import TimedWake
from tests.support.steps import CountingStep

SECONDS_MAX = 20
NAMES = ("levels", "wheel", "housekeeping")


class Process:
    """One process's groups, each ticked in a thread, as a Celery worker does."""

    def __init__(self, root: Path, name: str, *, term_ms: int = 60_000) -> None:
        self.steps = {group: CountingStep(every_ms=5) for group in NAMES}
        self.pulses: list[bool] = []
        self.groups = Groups(
            {group: self._group(group) for group in NAMES},
            directory=root,
            process=name,
            clock=SystemClock(),
            disk=Disk(),
            term_ms=term_ms,
        )
        self._threads: list[threading.Thread] = []
        self.endings: list[Ending | None] = []

    def _group(self, name: str) -> Group:
        return Group(
            name=name,
            make_step=lambda: self.steps[name],
            make_wake=TimedWake,
            pulse=self.pulses.append,
        )

    def tick(self, name: str) -> None:
        thread = threading.Thread(target=lambda: self.endings.append(self.groups.tick(name)))
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        self.groups.stop()
        for thread in self._threads:
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()

    def told(self, name: str, condition: Callable[[LoopStatus], bool]) -> bool:
        """Whether the group's holder says something within the time."""
        pause = threading.Event()
        for _ in range(SECONDS_MAX * 100):
            status = self.groups.statuses()[name]
            if status is not None and condition(status):
                return True
            pause.wait(0.01)
        return False

    def begun(self, name: str) -> threading.Event:
        """Set once the group's step has run in this process."""
        event = threading.Event()
        self.steps[name].on_advance = lambda _: event.set()
        return event


@pytest.fixture
def new_process(tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    processes: list[Process] = []

    def new(name: str, *, term_ms: int = 60_000) -> Process:
        processes.append(Process(tmp_path, name, term_ms=term_ms))
        return processes[-1]

    yield new
    for process in processes:
        process.stop()


def holders(process: Process) -> dict[str, str]:
    statuses = process.groups.statuses()
    return {name: status.holder for name, status in statuses.items() if status is not None}


def test_a_tick_runs_the_loop_until_the_process_stops(new_process: Callable[..., Process]) -> None:
    one = new_process("one")
    begun = one.begun("levels")
    one.tick("levels")
    assert begun.wait(SECONDS_MAX)
    assert holders(one) == {"levels": "one"}
    one.stop()
    assert one.endings == [Ending.STOPPED]
    assert one.steps["levels"].closed == 1
    assert holders(one) == {}
    assert one.pulses[0] is True
    assert one.pulses[-1] is False


def test_a_process_runs_each_group_once(new_process: Callable[..., Process]) -> None:
    one = new_process("one")
    begun = one.begun("levels")
    one.tick("levels")
    assert begun.wait(SECONDS_MAX)
    assert one.groups.tick("levels") is None
    assert one.steps["levels"].opened == 1


def test_a_second_process_stands_by_and_takes_over(new_process: Callable[..., Process]) -> None:
    one, two = new_process("one"), new_process("two")
    first, second = one.begun("levels"), two.begun("levels")
    one.tick("levels")
    assert first.wait(SECONDS_MAX)
    two.tick("levels")
    assert not second.is_set()
    one.stop()
    assert second.wait(SECONDS_MAX)
    assert holders(two) == {"levels": "two"}


def test_a_third_process_finds_both_places_taken(new_process: Callable[..., Process]) -> None:
    one, two, three = new_process("one"), new_process("two"), new_process("three")
    begun = one.begun("levels")
    one.tick("levels")
    assert begun.wait(SECONDS_MAX)
    pause = threading.Event()
    lease = three.groups._lease("levels")
    ticks = 0
    for _ in range(SECONDS_MAX * 100):
        if len(two.endings) == ticks:  # A look takes the place for a moment, and may keep it out.
            two.tick("levels")
            ticks += 1
        if lease.has_standby():
            break
        pause.wait(0.01)
    else:
        pytest.fail("nobody stands by")
    assert three.groups.tick("levels") is None


def test_a_failing_step_leaves_the_lease_free(new_process: Callable[..., Process]) -> None:
    one, two = new_process("one"), new_process("two")

    def fail() -> None:
        raise OSError("told to fail")

    one.steps["levels"].open = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="told to fail"):
        one.groups.tick("levels")
    begun = two.begun("levels")
    two.tick("levels")
    assert begun.wait(SECONDS_MAX)


class NarrowDisk(Disk):
    """A disk that has no room for one file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def map(self, path: Path, **asked: Any) -> Any:
        if path.name == self.name:
            raise OSError("told to fail")
        return super().map(path, **asked)


def test_a_status_page_that_cannot_be_made_leaves_the_lease_free(
    new_process: Callable[..., Process],
) -> None:
    one, two = new_process("one"), new_process("two")
    one.groups._disk = NarrowDisk("levels.status")
    with pytest.raises(OSError, match="told to fail"):
        one.groups.tick("levels")
    begun = two.begun("levels")
    two.tick("levels")
    assert begun.wait(SECONDS_MAX)


def test_a_standby_page_that_cannot_be_made_leaves_the_place_free(
    new_process: Callable[..., Process],
) -> None:
    one, two, three = new_process("one"), new_process("two"), new_process("three")
    begun = one.begun("levels")
    one.tick("levels")
    assert begun.wait(SECONDS_MAX)
    two.groups._disk = NarrowDisk("levels.standby.status")
    with pytest.raises(OSError, match="told to fail"):
        two.groups.tick("levels")
    begun = three.begun("levels")
    three.tick("levels")
    one.groups.stop()
    assert begun.wait(SECONDS_MAX)


def test_a_stopped_process_takes_nothing(new_process: Callable[..., Process]) -> None:
    one = new_process("one")
    one.stop()
    assert one.groups.tick("levels") is None
    assert one.steps["levels"].opened == 0


def test_housekeeping_is_left_to_another_process_for_a_while(
    new_process: Callable[..., Process],
) -> None:
    one = new_process("one")
    leading, keeping = one.begun("levels"), one.begun("housekeeping")
    one.tick("levels")
    assert leading.wait(SECONDS_MAX)
    for _ in range(PLACEMENT_TICKS):
        assert one.groups.tick("housekeeping") is None
    one.tick("housekeeping")
    assert keeping.wait(SECONDS_MAX)


def test_housekeeping_moves_to_a_process_that_hands_nothing_over(
    new_process: Callable[..., Process],
) -> None:
    one, two = new_process("one"), new_process("two")
    keeping, leading, moved = (
        one.begun("housekeeping"),
        one.begun("levels"),
        two.begun("housekeeping"),
    )
    one.tick("housekeeping")
    assert keeping.wait(SECONDS_MAX)
    one.tick("levels")
    assert leading.wait(SECONDS_MAX)
    two.tick("housekeeping")
    assert moved.wait(SECONDS_MAX)
    assert holders(two) == {"levels": "one", "housekeeping": "two"}


def test_levels_changes_its_holder_at_the_end_of_its_term(
    new_process: Callable[..., Process],
) -> None:
    one, two = new_process("one", term_ms=0), new_process("two")
    leading, moved = one.begun("levels"), two.begun("levels")
    one.tick("levels")
    assert leading.wait(SECONDS_MAX)
    two.tick("levels")
    assert moved.wait(SECONDS_MAX)


def test_levels_keeps_its_holder_while_the_other_process_hands_over(
    new_process: Callable[..., Process],
) -> None:
    one, two = new_process("one", term_ms=0), new_process("two")
    for process, group in ((one, "levels"), (two, "wheel")):
        begun = process.begun(group)
        process.tick(group)
        assert begun.wait(SECONDS_MAX)
    moved = two.begun("levels")
    two.tick("levels")
    assert one.told("levels", lambda status: status.steps_per_second > 0)
    assert not moved.is_set()
    assert holders(one) == {"levels": "one", "wheel": "two"}


class TestLoopTable:
    """What web processes and the console see of the loops."""

    def table(self, root: Path) -> LoopTable:
        return LoopTable(Disk(), root, NAMES, SystemClock())

    def test_a_held_loop_names_its_holder(
        self, new_process: Callable[..., Process], tmp_path: Path
    ) -> None:
        one = new_process("one")
        begun = one.begun("wheel")
        one.tick("wheel")
        assert begun.wait(SECONDS_MAX)
        levels, wheel, housekeeping = self.table(tmp_path).loops()
        assert (wheel.name, wheel.holder, wheel.stuck) == ("wheel", "one", False)
        assert levels.holder is housekeeping.holder is None

    def test_a_holder_that_is_silent_but_lives_is_stuck(
        self, new_process: Callable[..., Process], tmp_path: Path
    ) -> None:
        one = new_process("one")
        begun = one.begun("wheel")
        one.tick("wheel")
        assert begun.wait(SECONDS_MAX)
        later = LaterClock()
        _, wheel, _ = LoopTable(Disk(), tmp_path, NAMES, later).loops()
        assert (wheel.holder, wheel.stuck) == ("one", True)

    def test_a_holder_that_is_silent_and_gone_is_nobody(self, tmp_path: Path) -> None:
        (tmp_path / "wheel.status").write_bytes(b"\0" * 4096)
        _, wheel, _ = LoopTable(Disk(), tmp_path, NAMES, LaterClock()).loops()
        assert (wheel.holder, wheel.stuck) == (None, False)


def test_level_groups_are_loops_of_their_own() -> None:
    assert group_names(1) == NAMES
    assert group_names(3) == ("levels", "levels-2", "levels-3", "wheel", "housekeeping")


class LaterClock(SystemClock):
    """A reader's clock, a minute on."""

    def monotonic_ms(self) -> int:
        """A minute later."""
        return super().monotonic_ms() + 60_000
