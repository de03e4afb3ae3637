"""What is due soon goes ahead of the scan, however much waits before it."""

import pytest

from scheduler.engine import express, step
from tests.support.wheelworld import WheelWorld


def test_a_flood_of_far_messages_delays_nothing_that_is_due_behind_it(
    world: WheelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.step.engine, "enqueue_per_ms", 1)
    monkeypatch.setattr(step, "ENQUEUE_MS_MAX", 1)
    monkeypatch.setattr(express, "EXPRESS_UNITS", 700)
    started_ms = world.clock.now_ms()
    world.send([60_000_000] * 3_000)
    near = world.send([40, 2_500, 9_000])
    cancelled = world.send([45])[0]
    world.cancel(cancelled)
    for _ in range(6):
        world.turn()
    for _ in range(900):
        world.clock.advance(10)
        world.turn()
        world.check()
    assert world.step.report()["stages"][0]["messages"] > 0, "the flood was taken in too soon"
    late_ms = {world.handed[id_][0] - world.due_ms[id_] for id_ in near}
    assert late_ms == {0}
    assert world.clock.now_ms() == started_ms + 9_000
    monkeypatch.undo()
    world.settle()
    assert len(world.look()) == 3


def test_what_went_ahead_of_the_scan_survives_a_kill(world: WheelWorld) -> None:
    world.step.engine.enqueue_per_ms = 1  # type: ignore[misc]
    world.send([60_000_000] * 200)
    near = world.send([500, 1_500])
    for _ in range(3):
        world.turn()
    assert world.step.engine.books.due.size == 2
    world.replace_step()
    world.run_until(world.clock.now_ms() + 1_500)
    assert world.look().keys() == set(near)
