"""The wheel's slots: which is read next, also by a holder whose hand is a whole lap behind."""

from pathlib import Path

import numpy as np
import pytest

from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.timerwheel import TimerWheel
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.wheelworld import small_sizes

PRECISION_MS, WINDOW = 1_000, 30
LAP_MS = 2 * WINDOW * PRECISION_MS
NOW_MS = 1_700_000_000_000


@pytest.fixture
def wheel(tmp_path: Path) -> TimerWheel:
    geometry = WheelGeometry.of(small_sizes(precision_ms=PRECISION_MS, window_slots=WINDOW))
    return TimerWheel(UnsyncedDisk(), tmp_path, geometry)


def fill(wheel: TimerWheel, *slots_ms: int) -> None:
    slots = np.array(slots_ms, dtype=np.int64)
    ones = np.ones(len(slots), dtype=np.int64)
    wheel.put(slots, 52 * ones, 52 * ones, ones)


@pytest.mark.parametrize("ahead_ms", [LAP_MS // 2, LAP_MS, LAP_MS + 7_000])
def test_a_hand_that_is_behind_by_a_lap_reads_the_nearer_slot_first(
    wheel: TimerWheel, ahead_ms: int
) -> None:
    near_ms, far_ms = NOW_MS + 20_000, NOW_MS + ahead_ms
    fill(wheel, near_ms, far_ms)
    wheel.mark_unread_from(NOW_MS)
    assert wheel.next_unread_ms == near_ms
    wheel.mark_read(near_ms)
    assert wheel.next_unread_ms == far_ms
    wheel.mark_read(far_ms)
    assert wheel.next_unread_ms is None
