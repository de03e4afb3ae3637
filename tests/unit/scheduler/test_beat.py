"""The beat scheduler sends by the monotonic clock, once for each missed stretch."""

from typing import Any

import pytest
from celery import Celery

from scheduler.beat import SLEEP_S_MAX, MonotonicScheduler
from tests.support.clock import ManualClock


class Scheduler(MonotonicScheduler):
    """Notes what is sent instead of sending it."""

    def __init__(self, *args: Any, clock: ManualClock, **kwargs: Any) -> None:
        self.clock = clock
        self.sent: list[str] = []
        self.broken = False
        super().__init__(*args, **kwargs)

    producer = None

    def apply_async(self, entry: Any, **_kwargs: Any) -> None:
        """Note it."""
        if self.broken:
            raise OSError("no broker")
        self.sent.append(entry.name)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(clock: ManualClock) -> Scheduler:
    app = Celery("test", set_as_current=False, backend="disabled://")
    app.conf.update(
        result_expires=None,
        beat_schedule={
            "levels": {"task": "tick", "schedule": 1.0, "args": ("levels",)},
            "report": {"task": "tick", "schedule": 30.0},
        },
    )
    return Scheduler(app, clock=clock)


def run(scheduler: Scheduler, clock: ManualClock, span_ms: int) -> None:
    end_ms = clock.monotonic_ms() + span_ms
    while clock.monotonic_ms() < end_ms:
        clock.advance(round(scheduler.tick() * 1000))


def test_every_entry_is_sent_as_often_as_it_says(scheduler: Scheduler, clock: ManualClock) -> None:
    run(scheduler, clock, 60_000)
    assert scheduler.sent.count("levels") == 60
    assert scheduler.sent.count("report") == 2


def test_ticks_go_on_when_the_wall_clock_is_set_an_hour_back(
    scheduler: Scheduler, clock: ManualClock
) -> None:
    run(scheduler, clock, 5_000)
    clock.step_back(3_600_000)
    scheduler.sent.clear()
    run(scheduler, clock, 5_000)
    assert scheduler.sent.count("levels") == 5


def test_no_sleep_is_longer_than_a_second(scheduler: Scheduler, clock: ManualClock) -> None:
    for _ in range(50):
        sleep_s = scheduler.tick()
        assert 0 < sleep_s <= SLEEP_S_MAX
        clock.advance(round(sleep_s * 1000))


def test_missed_ticks_are_caught_up_once(scheduler: Scheduler, clock: ManualClock) -> None:
    scheduler.tick()
    clock.advance(20_000)
    scheduler.sent.clear()
    scheduler.tick()
    scheduler.tick()
    assert scheduler.sent == ["levels"]


def test_a_broker_that_is_away_does_not_stop_beat(
    scheduler: Scheduler, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.broken = True
    run(scheduler, clock, 3_000)
    assert "could not be sent" in caplog.text
    scheduler.broken = False
    run(scheduler, clock, 3_000)
    assert scheduler.sent.count("levels") == 3
