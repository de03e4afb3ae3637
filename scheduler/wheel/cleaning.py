"""Cleaning: TimerLog files whose every unit lies in a slot that is settled for good go.

The hand that counts is the one in the last durable checkpoint: no recovery looks behind it.
"""

import numpy as np

from scheduler.engine.limits import READ_UNITS_MAX
from scheduler.wheel.state import WheelState


class Cleaning:
    """Looks at the oldest file, one at a time."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._newest_slot_ms = 0

    def step(self, state: WheelState, durable_read_ms: int) -> int:
        """Drop the oldest file if it is no longer needed; how many files went."""
        log, per_file = state.log, state.geometry.units_per_file
        oldest = log.begin_number // per_file
        if oldest >= log.end_number // per_file:
            return 0
        if self._file != oldest:
            self._file, self._newest_slot_ms = oldest, _newest_slot_ms(state, oldest * per_file)
        if self._newest_slot_ms >= durable_read_ms:
            return 0
        return log.drop_before((oldest + 1) * per_file)


def _newest_slot_ms(state: WheelState, begin: int) -> int:
    newest, number, stop = 0, begin, begin + state.geometry.units_per_file
    while number < stop:
        units = state.log.read(number, min(READ_UNITS_MAX, stop - number))
        if not len(units):
            break
        slots_ms = units["written_ms"] + units["delay_ms"].astype(np.int64)
        newest = max(newest, int(slots_ms.max()))
        number += len(units)
    return newest
