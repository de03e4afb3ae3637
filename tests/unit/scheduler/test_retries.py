"""Retries: a failing unit waits longer each time, and no clock step makes it wait for ever."""

import numpy as np

from scheduler.levels.retries import Retries
from scheduler.limits import RETRY_MS, RETRY_MS_MAX


def fail(retries: Retries, offset: int, *, now_ms: int, due_ms: int = 0) -> None:
    retries.failed(offset, due_ms=due_ms, now_ms=now_ms, reason="told to")


def test_waits_double_up_to_ten_seconds() -> None:
    retries, now_ms, waits = Retries(), 1_000_000, []
    for _ in range(12):
        fail(retries, 5, now_ms=now_ms)
        next_ms = retries.next_ms(now_ms)
        assert next_ms is not None
        waits.append(next_ms - now_ms)
        now_ms = next_ms
    assert waits[:4] == [RETRY_MS, 2 * RETRY_MS, 4 * RETRY_MS, 8 * RETRY_MS]
    assert waits[-1] == RETRY_MS_MAX


def test_only_what_has_waited_is_due_and_the_oldest_first() -> None:
    retries = Retries()
    fail(retries, 1, now_ms=0, due_ms=20)
    fail(retries, 2, now_ms=0, due_ms=10)
    fail(retries, 3, now_ms=1_000, due_ms=5)
    offsets, dues = retries.due(500, 10)
    assert (offsets.tolist(), dues.tolist()) == ([2, 1], [10, 20])


def test_a_settled_unit_is_forgotten() -> None:
    retries = Retries()
    fail(retries, 1, now_ms=0)
    fail(retries, 2, now_ms=0)
    retries.settled(np.array([1, 2, 3]), but={2})
    assert len(retries) == 1
    assert retries.next_ms(0) == RETRY_MS


def test_a_clock_set_back_does_not_lengthen_a_wait() -> None:
    retries = Retries()
    fail(retries, 1, now_ms=3_600_000)
    assert retries.next_ms(0) == 0
    assert retries.due(0, 10)[0].tolist() == [1]
