"""The clock watch tells a clock that was set from one that runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.clockwatch import ClockStep, ClockWatch
from scheduler.limits import CLOCK_STEP_MS


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000, CLOCK_STEP_MS, -CLOCK_STEP_MS])
def test_a_set_clock_is_told_once_with_its_size(step_ms: int) -> None:
    watch = ClockWatch()
    watch.observe(5_000, 100)
    assert watch.observe(6_000 + step_ms, 1_100) == ClockStep(6_000 + step_ms, step_ms)
    assert watch.observe(7_000 + step_ms, 2_100) is None
    assert watch.count == 1


@given(st.lists(st.integers(0, 10_000), max_size=50))
def test_a_running_clock_is_never_told_as_set(spans_ms: list[int]) -> None:
    watch, now_ms, monotonic_ms = ClockWatch(), 1_000_000, 7
    for span_ms in spans_ms:
        # NTP slews by up to half a millisecond a second.
        now_ms, monotonic_ms = now_ms + span_ms + span_ms // 2_000, monotonic_ms + span_ms
        assert watch.observe(now_ms, monotonic_ms) is None
