"""The wheel's geometry: the numbers that fix where a slot and a TimerLog unit lie.

A unit has a number, counted from 0, and a position, its byte in RocketMQ's continuous address
space: each file of F bytes holds U = (F - 16) / 52 units and ends with a blank record, so unit n
lies at ``n // U * F + n % U * 52``. Example with F = 16 MiB: U = 322,638, and unit 322,638 lies at
16,777,216.
"""

from dataclasses import dataclass

import numpy as np

from queues.store.errors import SettingsDiffer
from queues.store.settings import Sizes
from queues.store.timerunits import (
    BLANK_BYTES_MIN,
    PRECISION_MS_MAX,
    SLOT_BYTES,
    TIMER_UNIT_BYTES,
    Longs,
    slot_of,
)
from scheduler.engine.limits import LEAD_MS
from scheduler.wheel.limits import DELAY_MS_MAX, WINDOW_SLOTS_MIN


@dataclass(frozen=True, slots=True)
class WheelGeometry:
    """Sizes of the wheel; fixed once a store is made."""

    #: Width of a slot in ms.
    precision_ms: int
    #: Slots of the window; the file has twice as many.
    window_slots: int
    #: Bytes of one TimerLog file.
    log_file_bytes: int

    def __post_init__(self) -> None:
        if not 0 < self.precision_ms <= PRECISION_MS_MAX:
            raise SettingsDiffer(timer_precision_ms=self.precision_ms, maximum=PRECISION_MS_MAX)
        if self.window_slots < WINDOW_SLOTS_MIN or 2 * self.window_ms > DELAY_MS_MAX:
            raise SettingsDiffer(timer_window_ms=self.window_ms, maximum=DELAY_MS_MAX // 2)
        if self.log_file_bytes < TIMER_UNIT_BYTES + BLANK_BYTES_MIN:
            raise SettingsDiffer(timer_log_bytes=self.log_file_bytes)

    @classmethod
    def of(cls, sizes: Sizes) -> "WheelGeometry":
        """The geometry that the store was made with."""
        return cls(sizes.timer_precision_ms, sizes.timer_window_slots, sizes.timer_log_bytes)

    @property
    def window_ms(self) -> int:
        """How far ahead of the slot being read a message may lie."""
        return self.window_slots * self.precision_ms

    @property
    def lead_ms(self) -> int:
        """How long before its start a slot is read out: a quarter of a small window."""
        return min(LEAD_MS, self.window_ms // 4)

    @property
    def slots_total(self) -> int:
        """Slots of the file: two windows, so that old and new laps are told apart."""
        return 2 * self.window_slots

    @property
    def wheel_bytes(self) -> int:
        """Length of the `timerwheel` file."""
        return self.slots_total * SLOT_BYTES

    @property
    def units_per_file(self) -> int:
        """TimerLog units in one file."""
        return (self.log_file_bytes - BLANK_BYTES_MIN) // TIMER_UNIT_BYTES

    def slot_of(self, time_ms: int) -> int:
        """The slot that holds what is due at `time_ms`."""
        return slot_of(time_ms, self.precision_ms)

    def index(self, slot_ms: int) -> int:
        """The number of a slot in the file."""
        return slot_ms // self.precision_ms % self.slots_total

    def indexes(self, slots_ms: Longs) -> Longs:
        """The numbers of slots in the file."""
        return slots_ms // self.precision_ms % self.slots_total

    def position(self, unit_number: int) -> int:
        """Where unit `unit_number` lies."""
        file, inside = divmod(unit_number, self.units_per_file)
        return file * self.log_file_bytes + inside * TIMER_UNIT_BYTES

    def positions(self, first_number: int, count: int) -> Longs:
        """Where the units from `first_number` on lie."""
        file, inside = np.divmod(
            np.arange(first_number, first_number + count, dtype=np.int64), self.units_per_file
        )
        return np.asarray(file * self.log_file_bytes + inside * TIMER_UNIT_BYTES, dtype=np.int64)

    def unit_number(self, position: int) -> int:
        """Which unit lies at `position`; a position in a blank gives the next file's first unit."""
        file, inside = divmod(position, self.log_file_bytes)
        return file * self.units_per_file + min(inside // TIMER_UNIT_BYTES, self.units_per_file)

    def is_unit_position(self, position: int) -> bool:
        """Whether a unit can begin at `position`."""
        return position >= 0 and self.position(self.unit_number(position)) == position
