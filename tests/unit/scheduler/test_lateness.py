"""The lateness meter keeps recent lateness in bounded memory."""

import numpy as np

from scheduler.lateness import Lateness, LatenessMeter


def test_nothing_handed_over_has_no_lateness() -> None:
    assert LatenessMeter().read() is None


def test_quantiles_are_of_what_was_handed_over() -> None:
    meter = LatenessMeter()
    for late_ms in range(100):
        meter.note(np.array([1_000_000 - late_ms]), 1_000_000)
    assert meter.read() == Lateness(p50_ms=50, p99_ms=99, max_ms=99)


def test_a_large_batch_leaves_a_sample_of_itself() -> None:
    meter = LatenessMeter()
    meter.note(np.arange(1_000_000), 1_000_000)
    lateness = meter.read()
    assert lateness is not None
    assert abs(lateness.p50_ms - 500_000) < 10_000


def test_old_samples_make_room_for_new_ones() -> None:
    meter = LatenessMeter()
    meter.note(np.zeros(10, dtype=np.int64), 5_000)
    for _ in range(10_000):
        meter.note(np.array([999]), 1_000)
    assert meter.read() == Lateness(p50_ms=1, p99_ms=1, max_ms=1)
