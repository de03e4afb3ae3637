"""The loop runs a step with the time and sleeps in between; here time is moved by hand."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from queues.store.disk import Disk
from queues.store.errors import StoreClosing
from scheduler.clockwatch import ClockStep
from scheduler.limits import FAILURES_MAX
from scheduler.loop import Ending, Loop, Surroundings
from scheduler.status import LoopStatus, StatusPage, read_status
from scheduler.tally import Tally
from tests.support.clock import ManualClock
from tests.support.steps import ClockEvent, ClockWake, CountingStep


class World:
    """A loop with everything around it."""

    def __init__(self, root: Path, step: CountingStep) -> None:
        self.clock = ManualClock()
        self.step = step
        self.wake = ClockWake(self.clock)
        self.stopped: threading.Event = ClockEvent(self.clock)
        self.standby = False
        self.may_move_early = False
        self.pulses = 0
        self.pulse: Callable[[], None] = self._count_pulse
        self.clock_steps: list[ClockStep] = []
        self.path = root / "levels.status"
        self.begun_ms = self.clock.now_ms()

    def run(self, *, term_ms: int = 60_000) -> Ending:
        introduction = LoopStatus(group="levels", holder="one", process_id=1, since_ms=0)
        loop = Loop(
            group="levels",
            step=self.step,
            tally=Tally(introduction=introduction, page=StatusPage(Disk(), self.path)),
            around=Surroundings(
                clock=self.clock,
                wake=self.wake,
                stopped=self.stopped,
                has_standby=lambda: self.standby,
                may_move=lambda term_over: term_over or self.may_move_early,
                pulse=self.pulse,
                note_clock_step=self.clock_steps.append,
            ),
            term_ms=term_ms,
        )
        return loop.run()

    def _count_pulse(self) -> None:
        self.pulses += 1

    def stop_after(self, span_ms: int) -> None:
        """Stop when so much time has passed."""

        def stop(now_ms: int) -> None:
            if now_ms >= self.begun_ms + span_ms:
                self.stopped.set()

        self.step.on_advance = stop

    def status(self) -> LoopStatus:
        status = read_status(Disk(), self.path, self.clock.monotonic_ms())
        assert status is not None
        return status


def test_a_step_is_run_at_its_next_due_time(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=70))
    world.stop_after(210)
    assert world.run() is Ending.STOPPED
    assert [ms - world.begun_ms for ms in world.step.times_ms] == [0, 70, 140, 210]


def test_a_loop_with_nothing_to_do_sleeps_half_a_second_at_most(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=None))
    world.stop_after(2000)
    world.run()
    assert set(world.wake.slept_s) == {0.5}


def test_a_step_is_opened_once_and_closed_once(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=10))
    world.stop_after(100)
    world.run()
    assert (world.step.opened, world.step.closed) == (1, 1)


def test_a_holder_without_a_standby_goes_on_past_its_term(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=100))
    world.stop_after(10_000)
    assert world.run(term_ms=2_000) is Ending.STOPPED


def test_a_holder_with_a_standby_ends_at_its_term(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=100))
    world.standby = True
    assert world.run(term_ms=2_000) is Ending.TERM_OVER
    assert 2_000 <= world.clock.now_ms() - world.begun_ms <= 3_100


def test_a_term_counts_monotonic_time(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=100))
    world.standby = True
    stepped = []

    def set_back(_now_ms: int) -> None:
        if not stepped:
            stepped.append(True)
            world.clock.step_back(3_600_000)

    world.step.on_advance = set_back
    before_ms = world.clock.monotonic_ms()
    assert world.run(term_ms=2_000) is Ending.TERM_OVER
    assert world.clock.monotonic_ms() - before_ms <= 3_100


def test_a_holder_yields_to_a_better_placed_standby_before_its_term(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=100))
    world.standby = world.may_move_early = True
    assert world.run() is Ending.YIELDED


def test_a_costly_change_of_holder_waits_for_a_quiet_moment(tmp_path: Path) -> None:
    step = CountingStep(every_ms=100)
    world = World(tmp_path, step)
    world.standby = True
    step.open = lambda: world.clock.advance(400)  # type: ignore[method-assign]

    def grow_quiet(now_ms: int) -> None:
        if now_ms >= world.begun_ms + 5_000:
            step.every_ms = 10_000

    step.on_advance = grow_quiet
    assert world.run(term_ms=1_000) is Ending.TERM_OVER
    assert world.clock.now_ms() - world.begun_ms >= 5_000


def test_a_failing_step_is_tried_again_with_growing_waits(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=1_000, failures=3))
    world.stop_after(700)
    world.run()
    assert [ms - world.begun_ms for ms in world.step.times_ms] == [0, 100, 300, 700]


def test_a_holder_that_waits_after_failures_says_that_it_lives(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(failures=1_000))
    told: list[bool] = []
    pulses: list[int] = []
    world.pulse = lambda: pulses.append(world.clock.monotonic_ms())

    def stop(now_ms: int) -> None:
        status = read_status(Disk(), world.path, world.clock.monotonic_ms())
        told.append(status is not None)
        if now_ms >= world.begun_ms + 60_000:
            world.stopped.set()

    world.step.on_advance = stop
    world.run()
    gaps_ms = [after - before for before, after in itertools.pairwise(pulses)]
    assert max(gaps_ms) <= 500
    assert all(told)


def test_a_failure_stands_in_the_status_until_a_step_succeeds(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=100, failures=1))
    world.stop_after(1_500)
    world.run()
    status = world.status()
    assert status.failures == 1
    assert status.failures_in_a_row == 0
    assert status.last_error == "OSError: told to fail"


def test_a_holder_that_only_fails_lets_its_standby_try(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(failures=1_000))
    world.standby = True
    assert world.run() is Ending.FAILING
    assert len(world.step.times_ms) >= FAILURES_MAX
    assert world.step.closed == 1


def test_a_closing_store_ends_the_loop(tmp_path: Path) -> None:
    step = CountingStep()
    world = World(tmp_path, step)

    def close(_now_ms: int) -> None:
        raise StoreClosing

    step.on_advance = close
    assert world.run() is Ending.STOPPED


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
def test_a_step_of_the_wall_clock_is_noticed_logged_and_survived(
    tmp_path: Path, step_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, CountingStep(every_ms=50))
    world.standby = True
    stepped = []

    def set_clock(now_ms: int) -> None:
        if not stepped and now_ms >= world.begun_ms + 1_200:
            stepped.append(now_ms)
            world.clock.step_forward(step_ms) if step_ms > 0 else world.clock.step_back(-step_ms)

    world.step.on_advance = set_clock
    world.run(term_ms=5_000)
    status = world.status()
    assert (status.clock_steps, status.clock_step_ms) == (1, step_ms)
    assert [step.step_ms for step in world.clock_steps] == [step_ms]
    assert "The wall clock was set by" in caplog.text
    assert len(world.step.times_ms) >= 90


def test_the_status_page_is_fresh_while_the_loop_runs(tmp_path: Path) -> None:
    world = World(tmp_path, CountingStep(every_ms=10))
    world.stop_after(5_000)
    world.run()
    status = world.status()
    assert status.holder == "one"
    assert status.last_step_ms is not None
    assert world.clock.now_ms() - status.last_step_ms <= 1_010
    assert status.steps_per_second == pytest.approx(100, rel=0.1)
    assert world.pulses == len(world.step.times_ms)
