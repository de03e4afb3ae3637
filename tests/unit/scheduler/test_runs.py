"""Runs: stretches of a queue whose due times do not fall, read through a window."""

import numpy as np
import pytest

from queues.store.schedule import ScheduleSlice
from scheduler.levels.runs import Run
from scheduler.limits import WINDOW_UNITS


class Table:
    """A schedule table in memory."""

    def __init__(self, due_ms: list[int] | np.ndarray, settled: set[int] = frozenset()) -> None:
        self.due_ms = np.asarray(due_ms, dtype=np.int64)
        self.settled = np.zeros(len(self.due_ms), dtype=np.int64)
        self.settled[list(settled)] = 99

    def read(self, start: int, stop: int) -> ScheduleSlice:
        zeros = np.zeros(stop - start, dtype=np.int64)
        return ScheduleSlice(start, self.settled[start:stop], self.due_ms[start:stop], zeros)


def test_what_is_due_is_given_in_order_and_stays_until_taken() -> None:
    run = Run(Table([10, 20, 20, 30]).read, 0, 4)
    offsets, dues = run.due(20, 100)
    assert (offsets.tolist(), dues.tolist()) == ([0, 1, 2], [10, 20, 20])
    assert run.due(20, 100)[0].tolist() == [0, 1, 2]
    run.take(2)
    assert run.due(20, 100)[0].tolist() == [2]
    assert run.head_due_ms() == 20


def test_no_more_is_given_than_was_asked_for() -> None:
    run = Run(Table([10] * 50).read, 0, 50)
    assert run.due(20, 7)[0].tolist() == list(range(7))


def test_settled_units_are_stepped_over() -> None:
    run = Run(Table([10, 20, 30, 40], settled={0, 2}).read, 0, 4)
    assert run.due(100, 100)[0].tolist() == [1, 3]


def test_a_run_at_its_end_has_no_due_time() -> None:
    run = Run(Table([10, 20], settled={0, 1}).read, 0, 2)
    assert run.head_due_ms() is None
    assert len(run.due(100, 100)[0]) == 0


def test_a_run_that_goes_on_is_read_on() -> None:
    table = Table([10, 20, 30])
    run = Run(table.read, 0, 2)
    run.take(len(run.due(100, 100)[0]))
    assert run.head_due_ms() is None
    run.stop = 3
    assert run.due(100, 100)[0].tolist() == [2]


def test_a_run_longer_than_the_window_is_read_to_its_end() -> None:
    count = WINDOW_UNITS * 2 + 5
    run = Run(Table(np.arange(count)).read, 0, count)
    seen: list[int] = []
    while run.head_due_ms() is not None:
        offsets, _ = run.due(count, 10_000)
        seen += offsets.tolist()
        run.take(len(offsets))
    assert seen == list(range(count))


@pytest.mark.parametrize("now_ms", [5, 15, 25])
def test_single_units_in_order_are_a_run(now_ms: int) -> None:
    offsets, dues = np.array([7, 3]), np.array([10, 20])
    run = Run.of_units(Table([]).read, offsets, dues)
    assert run.due(now_ms, 9)[0].tolist() == offsets[dues <= now_ms].tolist()
