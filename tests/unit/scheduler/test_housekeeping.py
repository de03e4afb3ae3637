"""Housekeeping does each duty as often as it says, and one that fails stops no other."""

from collections.abc import Callable

import pytest

from queues.store.errors import StoreClosing
from scheduler.housekeeping.step import Duty, HousekeepingStep

START_MS = 1_700_000_000_000


class Diary:
    """Remembers when which duty was done."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.failing: set[str] = set()

    def duty(self, name: str, every_ms: int, *, on_close: bool = False) -> Duty:
        return Duty(name, every_ms, self._do(name), on_close=on_close)

    def _do(self, name: str) -> Callable[[int], None]:
        def do(now_ms: int) -> None:
            self.done.append((name, now_ms - START_MS))
            if name in self.failing:
                raise OSError("told to fail")

        return do


def test_each_duty_is_done_as_often_as_it_says() -> None:
    diary = Diary()
    step = HousekeepingStep([diary.duty("a", 500), diary.duty("b", 1_000)])
    now_ms = START_MS
    while now_ms <= START_MS + 2_000:
        next_due_ms = step.advance(now_ms).next_due_ms
        assert next_due_ms is not None
        now_ms = next_due_ms
    assert [ms for name, ms in diary.done if name == "a"] == [0, 500, 1_000, 1_500, 2_000]
    assert [ms for name, ms in diary.done if name == "b"] == [0, 1_000, 2_000]


def test_missed_times_are_caught_up_once() -> None:
    diary = Diary()
    step = HousekeepingStep([diary.duty("a", 500)])
    step.advance(START_MS)
    step.advance(START_MS + 60_000)
    step.advance(START_MS + 60_001)
    assert [ms for _, ms in diary.done] == [0, 60_000]


def test_a_clock_set_back_stops_no_duty() -> None:
    diary = Diary()
    step = HousekeepingStep([diary.duty("a", 500)])
    step.advance(START_MS)
    step.advance(START_MS - 3_600_000)
    step.advance(START_MS - 3_600_000 + 500)
    assert len(diary.done) == 3


def test_a_failing_duty_is_shown_and_tried_less_often_and_stops_no_other() -> None:
    diary = Diary()
    diary.failing.add("bad")
    step = HousekeepingStep([diary.duty("bad", 500), diary.duty("good", 500)])
    for now_ms in range(START_MS, START_MS + 10_000, 500):
        step.advance(now_ms)
    assert len([1 for name, _ in diary.done if name == "good"]) == 20
    assert 2 <= len([1 for name, _ in diary.done if name == "bad"]) <= 6
    assert step.report()["failing"] == {"bad": "OSError: told to fail"}
    diary.failing.clear()
    step.advance(START_MS + 60_000)
    assert step.report()["failing"] == {}


def test_closing_does_once_more_what_the_next_start_needs() -> None:
    diary = Diary()
    step = HousekeepingStep([diary.duty("a", 500, on_close=True), diary.duty("b", 500)])
    step.advance(START_MS)
    step.close()
    assert [name for name, _ in diary.done] == ["a", "b", "a"]


def test_a_closing_store_is_no_failure_of_a_duty() -> None:
    def closed(_now_ms: int) -> None:
        raise StoreClosing

    with pytest.raises(StoreClosing):
        HousekeepingStep([Duty("a", 500, closed)]).advance(START_MS)
