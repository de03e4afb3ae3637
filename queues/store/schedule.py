"""The schedule table: for every unit of a holding queue, whether it still waits, and until when.

Beside each holding queue (levels, timer topic) and each dead-letter queue lies an array of 16 bytes
a ConsumeQueue unit, in mapped files of 65,536 units (``postdate/schedule/<topic>/<queue>/``):

=====  ========  ==========================================================================
word   field     meaning (native 8-byte words)
=====  ========  ==========================================================================
0      settled   0 while the message waits; else the log offset of the record that settled
                 it: the delivered record, the next holding record after a move or renewal,
                 the cancel or parking record
1      due       bits 0 to 43: due time, ms; bits 44 to 62: the number of the real topic; bit 63,
                 in the timer queue: a message of a level that waits there since it was restored
                 or renewed
=====  ========  ==========================================================================

The invariant: the settled word is read and set under the append lock only, by one aligned store.
**This is the one point where every race is decided**: hand-over, cancel, move, restore, park.
Example: a message of topic number 3 that is due at 1,700,000,000,000 has word 1 =
3 << 44 | 1,700,000,000,000.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.disk import Disk, Mapped
from queues.store.grouping import members_by_number
from queues.store.limits import DUE_MS_MAX, SCHEDULE_UNITS, TOPICS_MAX

UNIT_BYTES = 16
FILE_BYTES = SCHEDULE_UNITS * UNIT_BYTES
DUE_BITS = 44
#: Added to the number of the real topic of a message of a level in the timer queue.
OF_LEVEL = TOPICS_MAX
#: What of word 1, shifted by `DUE_BITS`, is the number.
NUMBER_MASK = TOPICS_MAX - 1
_SIGN = 1 << 63
#: The settled word of a unit whose record is damaged: no record begins there, nothing waits.
LOST = 1

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScheduleSlice:
    """A stretch of a schedule table, copied out."""

    #: Offset of the first unit.
    start: int
    #: Settled words; 0 = waiting.
    settled: Int64s
    #: Due times, ms.
    due_ms: Int64s
    #: Numbers of the real topics.
    topic_number: Int64s


def due_word(due_ms: int, topic_number: int) -> int:
    """Word 1 of an entry, as a signed number."""
    word = due_ms | topic_number << DUE_BITS
    return word - 2 * _SIGN if word & _SIGN else word


class ScheduleTable:
    """The schedule table of one holding queue."""

    def __init__(self, disk: Disk, directory: Path, *, write: bool) -> None:
        self._disk, self._directory, self._write = disk, directory, write
        self._files: dict[int, tuple[Mapped, Int64s]] = {}
        self._mutex = threading.Lock()

    def path(self, unit: int) -> Path:
        """The file that holds a unit."""
        return self._directory / f"{unit - unit % SCHEDULE_UNITS:020d}"

    def _file(self, number: int) -> tuple[Mapped, Int64s]:
        found = self._files.get(number)
        return found if found is not None else self._map(number)

    def _map(self, number: int) -> tuple[Mapped, Int64s]:
        with self._mutex:
            path = self.path(number * SCHEDULE_UNITS)
            mapped = self._disk.map(
                path, size_bytes=FILE_BYTES, create=self._write, write=self._write
            )
            found = (mapped, mapped.array(np.int64).reshape(-1, 2))
            self._files[number] = found
            return found

    def describes(self, *units: int) -> bool:
        """Whether the files of these units are there and say when they are due, or were lost."""
        for unit in units:
            array = self._readable(unit // SCHEDULE_UNITS)
            if array is None or not array[unit % SCHEDULE_UNITS].any():
                return False
        return True

    def make_room(self, end_unit: int) -> None:
        """Map, and make if missing, the file that holds the last unit below `end_unit`."""
        self._file((end_unit - 1) // SCHEDULE_UNITS)

    def has_room(self, end_unit: int) -> bool:
        """Whether this process has the file of the last unit below `end_unit` mapped."""
        return (end_unit - 1) // SCHEDULE_UNITS in self._files

    # -- one unit -------------------------------------------------------------------------------

    def settled(self, unit: int) -> int:
        """The settled word of a unit."""
        return self._file(unit // SCHEDULE_UNITS)[0].words[unit % SCHEDULE_UNITS * 2]

    def due(self, unit: int) -> tuple[int, int]:
        """Due time and topic number of a unit."""
        word = self._file(unit // SCHEDULE_UNITS)[0].words[unit % SCHEDULE_UNITS * 2 + 1]
        return word & DUE_MS_MAX, word >> DUE_BITS & NUMBER_MASK

    def settle(self, unit: int, log_offset: int) -> None:
        """Set the settled word (under the append lock)."""
        self._file(unit // SCHEDULE_UNITS)[0].set_word(unit % SCHEDULE_UNITS * 2, log_offset)

    def add(self, unit: int, due_ms: int, topic_number: int) -> None:
        """Describe a new unit, which waits (under the append lock)."""
        mapped, _ = self._file(unit // SCHEDULE_UNITS)
        mapped.set_word(unit % SCHEDULE_UNITS * 2 + 1, due_word(due_ms, topic_number))

    # -- many units -----------------------------------------------------------------------------

    def settled_many(self, units: Int64s) -> Int64s:
        """The settled words of many units."""
        return self._gather(units, 0)

    def due_many(self, units: Int64s) -> Int64s:
        """The due times of many units, ms."""
        return self._gather(units, 1) & DUE_MS_MAX

    def _gather(self, units: Int64s, word: int) -> Int64s:
        numbers = units // SCHEDULE_UNITS
        found = np.empty(len(units), np.int64)
        for mine in members_by_number(numbers):
            number = int(numbers[mine[0]])
            found[mine] = self._file(number)[1][units[mine] - number * SCHEDULE_UNITS, word]
        return found

    def settle_many(self, units: Int64s, log_offsets: Int64s) -> None:
        """Set many settled words; of a unit that occurs twice the later one stays."""
        self._scatter(units, 0, log_offsets)

    def add_many(self, units: Int64s, due_ms: Int64s, topic_numbers: Int64s) -> None:
        """Describe many new units."""
        self._scatter(units, 1, due_ms | topic_numbers << DUE_BITS)

    def _scatter(self, units: Int64s, word: int, values: Int64s) -> None:
        numbers = units // SCHEDULE_UNITS
        for mine in members_by_number(numbers):
            number = int(numbers[mine[0]])
            mapped, array = self._file(number)
            mapped.assign(array, (units[mine] - number * SCHEDULE_UNITS, word), values[mine])

    def slice(self, start: int, stop: int) -> ScheduleSlice:
        """Units [start, stop), copied; files that retention removed read as zeros."""
        rows = np.zeros((max(0, stop - start), 2), np.int64)
        unit = start
        while unit < stop:
            number = unit // SCHEDULE_UNITS
            end = min(stop, (number + 1) * SCHEDULE_UNITS)
            array = self._readable(number)
            if array is not None:
                first = number * SCHEDULE_UNITS
                rows[unit - start : end - start] = array[unit - first : end - first]
            unit = end
        words = rows[:, 1]
        numbers = words >> DUE_BITS & NUMBER_MASK
        return ScheduleSlice(start, rows[:, 0], words & DUE_MS_MAX, numbers)

    def block(self, number: int) -> Int64s | None:
        """The entries of one file, in place: settled word and word 1; None where there is none."""
        return self._readable(number)

    def _readable(self, number: int) -> Int64s | None:
        found = self._files.get(number)
        if found is not None:
            return found[1]
        if not self._disk.exists(self.path(number * SCHEDULE_UNITS)):
            return None
        return self._file(number)[1]

    def waiting_from(self, start: int, stop: int) -> int:
        """The first unit in [start, stop) that waits; `stop` if none does."""
        unit = start
        while unit < stop:
            number = unit // SCHEDULE_UNITS
            end = min(stop, (number + 1) * SCHEDULE_UNITS)
            array = self._readable(number)
            if array is not None:
                first = number * SCHEDULE_UNITS
                words = array[unit - first : end - first, 0]
                position = int(np.argmin(words != 0)) if len(words) else 0
                if words[position] == 0:
                    return unit + position
            unit = end
        return stop

    def count_waiting(self, start: int, stop: int) -> int:
        """How many units in [start, stop) wait."""
        total, unit = 0, start
        while unit < stop:
            number = unit // SCHEDULE_UNITS
            end = min(stop, (number + 1) * SCHEDULE_UNITS)
            array = self._readable(number)
            if array is not None:
                first = number * SCHEDULE_UNITS
                words = array[unit - first : end - first, 0]
                total += len(words) - int(np.count_nonzero(words))
            unit = end
        return total

    def remove_below(self, min_unit: int) -> None:
        """Remove the files whose units are all below `min_unit`."""
        for name in filter(str.isdigit, self._disk.list_names(self._directory)):
            number = int(name) // SCHEDULE_UNITS
            if (number + 1) * SCHEDULE_UNITS <= min_unit:
                self._files.pop(number, None)
                self._disk.unlink(self._directory / name)
