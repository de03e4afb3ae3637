"""The timer's files: every TimerLog unit, every slot of the wheel, every chain, ``timercheck``.

TimerLog positions are byte offsets over all its files. A unit names the next older unit of its
slot, so the slot's time of both must agree; a slot's last unit must be one of its own time. Slot
counts are RocketMQ's metric and may be off; they are shown and not judged. The precision is learned
from a slot and its last unit.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.timerunits import (
    BLANK_MAGIC,
    MAGIC_BITS,
    SLOT,
    SLOT_BYTES,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
)

TIMER_CHECK: Final = struct.Struct(">7q")
_PRECISION_MS_USUAL: Final = 1000
_TOLD_MAX: Final = 100

Units = npt.NDArray[np.void]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimerCheck:
    """What RocketMQ's ``config/timercheck`` says."""

    #: Up to when slots were read out, ms.
    read_ms: int
    #: Up to where the TimerLog was flushed.
    flushed_position: int
    #: The timer topic's next queue offset.
    queue_offset: int
    #: The same of the master.
    master_queue_offset: int
    #: RocketMQ's dataVersion: state, time in ms, counter.
    state_version: int
    version_ms: int
    version_counter: int


@dataclass(frozen=True, slots=True)
class TimerLogFile:
    """One file of the TimerLog."""

    #: Position of its first byte.
    base: int
    path: Path
    #: All bytes of it, as units.
    units: Units
    #: How many units were written.
    count: int


class TimerFiles:
    """The timer's files of a store directory."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.wheel_path = layout.root / "timerwheel"
        self.log = [self._read_log(name) for name in layout.number_names(layout.root / "timerlog")]
        mapped = layout.map(self.wheel_path)
        whole = mapped is not None and mapped.size_bytes % SLOT_BYTES == 0
        self.wheel_bytes = mapped.size_bytes if mapped else 0
        #: The wheel; None when it is missing or of a length that no wheel has.
        self.slots: npt.NDArray[Any] | None = mapped.array(SLOT) if mapped and whole else None
        self.wheel_missing = mapped is None and not layout.disk.exists(self.wheel_path)
        self.precision_ms = self._learn_precision_ms()

    def check(self) -> TimerCheck | None:
        """Return what ``timercheck`` says; None when it is missing or too short."""
        mapped = self._layout.map(self._layout.root / "config" / "timercheck")
        if mapped is None or mapped.size_bytes < TIMER_CHECK.size:
            return None
        return TimerCheck(*TIMER_CHECK.unpack_from(mapped.memory))

    def used_slots(self) -> Int64s:
        """Return the numbers of the slots that were ever used."""
        if self.slots is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.slots["time"])

    def unit(self, position: int) -> np.void | None:
        """Return the unit at a position; None when none is there."""
        for file in self.log:
            inside = position - file.base
            if 0 <= inside < file.count * TIMER_UNIT_BYTES and inside % TIMER_UNIT_BYTES == 0:
                return file.units[inside // TIMER_UNIT_BYTES]  # type: ignore[no-any-return]
        return None

    def chain(self, slot: np.void) -> list[tuple[int, np.void]]:
        """Return a slot's units with their positions, newest first, as far as they are there."""
        found = []
        position, before = int(slot["last"]), 2**63
        while 0 <= position < before:  # A predecessor is older, or it is damage.
            unit = self.unit(position)
            if unit is None or slot_ms(unit) != int(slot["time"]) * self.precision_ms:
                break
            found.append((position, unit))
            before, position = position, int(unit["previous"])
        return found

    def _read_log(self, name: str) -> TimerLogFile:
        path = self._layout.root / "timerlog" / name
        mapped = self._layout.map(path)
        whole = mapped.size_bytes // TIMER_UNIT_BYTES if mapped else 0
        units: Any = mapped.array(TIMER_UNIT, 0, whole) if mapped else np.zeros(0, TIMER_UNIT)
        ends = np.flatnonzero((units["size"] == 0) | (_magic(units) == BLANK_MAGIC))
        return TimerLogFile(int(name), path, units, int(ends[0]) if ends.size else whole)

    def _learn_precision_ms(self) -> int:
        for number in self.used_slots()[:1000].tolist():
            assert self.slots is not None
            unit = self.unit(int(self.slots[number]["last"]))
            time = int(self.slots[number]["time"])
            if unit is not None and time > 0 and slot_ms(unit) % time == 0:
                return slot_ms(unit) // time
        return _PRECISION_MS_USUAL


def slot_ms(unit: np.void) -> int:
    """Return the time of the slot that a unit belongs to, ms."""
    return int(unit["written_ms"]) + int(unit["delay_ms"])


def check_timer_files(files: TimerFiles, layout: Layout, report: Report) -> None:
    """Take down directories in the place of files, and a wheel of a wrong length.

    An empty wheel is only wrong where there are units.
    """
    for path in (files.wheel_path, *(file.path for file in files.log)):
        layout.check_file(path, report)
    if layout.disk.is_directory(files.wheel_path):
        return
    if files.slots is not None or files.wheel_missing:
        return
    if any(file.count for file in files.log) or files.wheel_bytes:
        reason = f"its length, {files.wheel_bytes} bytes, is not that of a wheel"
        report.add(files.wheel_path, None, reason)


def check_timer(files: TimerFiles, layout: Layout, report: Report) -> None:
    """Take down what is wrong with TimerLog and wheel."""
    for file in files.log:
        report.counts["timer_units"] += file.count
        _check_units(files, file, layout, report)
    check_timer_files(files, layout, report)
    if files.slots is None:
        return
    used = files.used_slots()
    report.counts["wheel_slots"] += len(used)
    wheel = files.slots
    wrong = used[wheel["time"][used] % len(wheel) != used]
    for number in wrong[:_TOLD_MAX].tolist():
        reason = f"slot {number} holds the time of slot {wheel['time'][number] % len(wheel)}"
        report.add(files.wheel_path, number * SLOT_BYTES, reason)
    begin = files.log[0].base if files.log else 0
    end = files.log[-1].base + files.log[-1].count * TIMER_UNIT_BYTES if files.log else 0
    known = wheel["last"][used] >= begin
    if not layout.closed:  # The wheel may have gone on since the TimerLog was read.
        known &= wheel["last"][used] < end
    for number in used[known].tolist():
        unit = files.unit(int(wheel[number]["last"]))
        if unit is None or slot_ms(unit) != int(wheel[number]["time"]) * files.precision_ms:
            reason = f"slot {number} leads to {wheel[number]['last']}: no unit of its time"
            report.add(files.wheel_path, number * SLOT_BYTES, reason)


def _check_units(files: TimerFiles, file: TimerLogFile, layout: Layout, report: Report) -> None:
    units = file.units[: file.count]
    places = np.arange(file.count, dtype=np.int64) * TIMER_UNIT_BYTES
    begin = files.log[0].base
    torn = (units["size"] != TIMER_UNIT_BYTES) | (_magic(units) & ~np.uint32(MAGIC_BITS) != 0)
    previous = units["previous"].astype(np.int64)
    times = units["written_ms"].astype(np.int64) + units["delay_ms"]
    inside = (previous >= file.base) & (previous < file.base + places)
    number = np.where(inside, (previous - file.base) // TIMER_UNIT_BYTES, 0)
    astray = previous >= file.base + places
    astray |= inside & (times[number] != times if file.count else inside)
    for place in np.flatnonzero((previous >= begin) & (previous < file.base)).tolist():
        unit = files.unit(int(previous[place]))
        astray[place] |= unit is None or slot_ms(unit) != times[place]
    for place in np.flatnonzero(torn | astray)[:_TOLD_MAX].tolist():
        reason = (
            "the unit is torn"
            if torn[place]
            else f"the unit follows {previous[place]}, which is no unit of its slot"
        )
        report.add(file.path, int(places[place]), reason)
    offsets = units["log_offset"].astype(np.int64)
    report.counts["expired_timer_units"] += int(np.count_nonzero(offsets < layout.log_min))


def check_timer_records(
    files: TimerFiles, offsets: Int64s, sizes: Int64s, log_range: tuple[int, int], report: Report
) -> None:
    """Take down units that lead into ``log_range``, but not to a timer record of this size."""
    for file in files.log:
        told = file.units["log_offset"][: file.count].astype(np.int64)
        here = np.flatnonzero((told >= log_range[0]) & (told < log_range[1]))
        places = np.searchsorted(offsets, told[here])
        found = places < len(offsets)
        found[found] &= offsets[places[found]] == told[here][found]
        found[found] &= sizes[places[found]] == file.units["record_size"][here][found]
        for place in here[~found][:_TOLD_MAX].tolist():
            reason = f"the unit leads to {told[place]}, where no such timed record lies"
            report.add(file.path, place * TIMER_UNIT_BYTES, reason)


def _magic(units: Units) -> npt.NDArray[np.uint32]:
    return units["magic"].astype(np.int32).view(np.uint32)
