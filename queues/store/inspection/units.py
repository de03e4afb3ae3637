"""ConsumeQueues against the records: every record has its unit, every unit leads to its record.

Units below the log's begin are those of records that retention removed; blanks (0, 0x7FFFFFFF, 0)
stand before a queue's first unit; a tags code at or below ``EXTENDED_MAX`` is an address in a
ConsumeQueueExt, which holds the real one.
"""

import bisect
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from queues.store.consumequeue import BLANK_UNIT, DISK_UNIT, UNIT, UNIT_BYTES, ConsumeQueues
from queues.store.inspection.chunks import Chunk, QueueNumbers
from queues.store.inspection.facts import TAGS_CODE_UNKNOWN
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.inspection.log import LogWalk

#: Tags codes up to here are addresses in a ConsumeQueueExt.
EXTENDED_MAX: Final = -(2**31) - 1
#: Units that are read at once.
BLOCK_UNITS: Final = 300_000
#: How far apart the queue offsets of one chunk's records may be; farther is damage.
SPAN_UNITS_MAX: Final = 4 * BLOCK_UNITS

BLANK: Final = np.frombuffer(BLANK_UNIT, DISK_UNIT).astype(UNIT)[0]
BLANK_SIZE: Final = int(BLANK["size"])

Units = npt.NDArray[np.void]


class QueueFiles:
    """The ConsumeQueue files of a store directory."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._root = layout.root / "consumequeue"
        self.file_bytes = self._learn_file_bytes()
        units = max(1, self.file_bytes // UNIT_BYTES)
        self._files = ConsumeQueues(layout.disk, self._root, units, write=False)
        self._bounds: dict[tuple[str, int], tuple[int, int]] = {}

    def queues(self) -> list[tuple[str, int]]:
        """Return all queues that have a directory."""
        return [
            (topic, int(queue))
            for topic in self._layout.names(self._root)
            for queue in self._layout.number_names(self._root / topic)
        ]

    def check(self, report: Report) -> None:
        """Take down directories that stand where files should."""
        for topic, queue in self.queues():
            directory = self._root / topic / str(queue)
            for name in self._layout.number_names(directory):
                self._layout.check_file(directory / name, report)

    def bounds(self, topic: str, queue: int) -> tuple[int, int]:
        """Return the first unit that there is, and the one behind the last."""
        known = self._bounds.get((topic, queue))
        if known is None:
            known = self._bounds[topic, queue] = self._learn_bounds(topic, queue)
        return known

    def read(self, topic: str, queue: int, first: int, count: int) -> Units:
        """Return units, native; fewer where the files end."""
        return self._files.read(topic, queue, first, count)

    def place(self, topic: str, queue: int, unit: int) -> tuple[Path, int]:
        """Return the file that holds the unit, and the byte where it begins there."""
        at = unit * UNIT_BYTES
        base = at - at % (self.file_bytes or UNIT_BYTES)
        return self._files.path(topic, queue, base), at - base

    def close(self) -> None:
        """Close all files."""
        self._files.close()

    def _learn_file_bytes(self) -> int:
        for topic, queue in self.queues():
            directory = self._root / topic / str(queue)
            for name in self._layout.number_names(directory):
                path = directory / name
                size = 0 if self._layout.disk.is_directory(path) else self._layout.disk.size(path)
                if size >= UNIT_BYTES:
                    return size - size % UNIT_BYTES
        return 0

    def _learn_bounds(self, topic: str, queue: int) -> tuple[int, int]:
        names = self._layout.number_names(self._root / topic / str(queue))
        bases = [int(name) // UNIT_BYTES for name in names]
        for base in reversed(bases):
            units = self.read(topic, queue, base, self.file_bytes // UNIT_BYTES)
            used = np.flatnonzero(units["size"] > 0)
            if used.size:
                return bases[0], base + int(used[-1]) + 1
        return (bases[0], bases[0]) if bases else (0, 0)


class UnitCheck:
    """Holds the units of all queues against the records, chunk by chunk."""

    def __init__(
        self, layout: Layout, files: QueueFiles, numbers: QueueNumbers, report: Report
    ) -> None:
        self._layout, self._files, self._numbers, self._report = layout, files, numbers, report
        #: How far each queue's units have been looked at.
        self._covered: dict[tuple[str, int], int] = {}
        #: Units that no record claimed, to be judged at the end: queue, first, behind the last.
        self._gaps: list[tuple[str, int, int, int]] = []
        self._dispatched = self._dispatched_end()

    def take(self, chunk: Chunk) -> None:
        """Look at the units of a chunk's records."""
        order = np.argsort(chunk.queues, kind="stable")
        queues = chunk.queues[order]
        starts = np.flatnonzero(np.diff(queues, prepend=-2))
        for start, stop in zip(starts, [*starts[1:].tolist(), len(order)], strict=True):
            number = int(queues[start])
            if number >= 0:
                topic, queue = self._numbers.names[number]
                self._take_queue(topic, queue, chunk, order[start:stop])

    def finish(self, walk: LogWalk) -> None:
        """Look at the units that no record claimed."""
        for topic, queue in self._files.queues():
            first, end = self._files.bounds(topic, queue)
            self._report.counts["queues"] += 1
            covered = self._covered.get((topic, queue), first)
            if covered < end:
                self._gaps.append((topic, queue, covered, end))
        for topic, queue, first, end in self._gaps:
            for start in range(first, end, BLOCK_UNITS):
                self._judge(topic, queue, start, min(end, start + BLOCK_UNITS), walk)

    def leads_to(self, start: int, end: int) -> bool:
        """Tell whether any unclaimed unit leads into a stretch of the log."""
        for topic, queue in self._files.queues():
            first, stop = self._files.bounds(topic, queue)
            covered = max(first, self._covered.get((topic, queue), first))
            offsets = self._files.read(topic, queue, covered, stop - covered)["log_offset"]
            if bool(np.any((offsets >= start) & (offsets < end))):
                return True
        return False

    def _dispatched_end(self) -> int:
        """Where the last record lies that has a unit."""
        last = -1
        for topic, queue in self._files.queues():
            _, end = self._files.bounds(topic, queue)
            for unit in self._files.read(topic, queue, max(0, end - 1), 1 if end else 0):
                last = max(last, int(unit["log_offset"]))
        return last

    def _take_queue(
        self, topic: str, queue: int, chunk: Chunk, places: npt.NDArray[np.intp]
    ) -> None:
        wanted = chunk.queue_offsets[places]
        low, high = int(wanted.min()), int(wanted.max())
        first, _ = self._files.bounds(topic, queue)
        covered = self._covered.get((topic, queue), first)
        if low > covered:
            self._gaps.append((topic, queue, covered, low))
        self._covered[topic, queue] = max(covered, high + 1)
        if high - low > SPAN_UNITS_MAX:
            path = self._layout.root / "consumequeue" / topic / str(queue)
            reason = f"neighbouring records have the queue offsets {low} and {high}"
            self._report.add(path, None, reason)
            return
        found = np.zeros(high + 1 - low, dtype=UNIT)
        read = self._files.read(topic, queue, low, len(found))
        found[: len(read)] = read
        self._compare(topic, queue, chunk, places, found[wanted - low])

    def _compare(
        self, topic: str, queue: int, chunk: Chunk, places: npt.NDArray[np.intp], units: Units
    ) -> None:
        """Hold units against the records at ``places`` of the chunk, one for one."""
        offsets, codes = chunk.offsets[places], chunk.tags_codes[places]
        told, extended = units["tags_code"], units["tags_code"] <= EXTENDED_MAX
        self._report.counts["units"] += int(np.count_nonzero(units["size"]))
        self._report.counts["extended_units"] += int(np.count_nonzero(extended))
        missing = (units["size"] == 0) & (units["log_offset"] == 0)
        elsewhere = (units["log_offset"] != offsets) | (units["size"] != chunk.sizes[places])
        tagged = (told != codes) & (codes != TAGS_CODE_UNKNOWN) & ~extended
        wrong = missing | elsewhere | tagged
        if not self._layout.complete:
            lately = missing & (offsets > self._dispatched)
            self._report.counts["undispatched"] += int(np.count_nonzero(lately))
            wrong &= ~lately
        for place in np.flatnonzero(wrong).tolist():
            if missing[place]:
                reason = "the unit is missing"
            elif elsewhere[place]:
                reason = f"the unit says {_told(units[place])}"
            else:
                reason = f"the unit's tags code is {told[place]}, not {codes[place]}"
            number = int(chunk.queue_offsets[places[place]])
            path, at = self._files.place(topic, queue, number)
            record = f"; record {number} of the queue lies at {offsets[place]}"
            self._report.add(path, at, reason + record)

    def _judge(self, topic: str, queue: int, first: int, end: int, walk: LogWalk) -> None:
        units = self._files.read(topic, queue, first, end - first)
        blank = units["size"] == BLANK_SIZE
        expired = ~blank & (units["size"] > 0) & (units["log_offset"] < self._layout.log_min)
        self._report.counts["blank_units"] += int(np.count_nonzero(blank))
        self._report.counts["expired_units"] += int(np.count_nonzero(expired))
        stop = walk.readable_end()
        for place in np.flatnonzero(~blank & ~expired).tolist():
            offset = int(units["log_offset"][place])
            if (stop is not None and offset >= stop) or _inside(walk, offset):
                continue
            if topic.startswith("%LMQ%"):  # A queue that shares the records of others.
                self._report.counts["shared_units"] += 1
                continue
            path, at = self._files.place(topic, queue, first + place)
            hole = units["size"][place] == 0
            reason = "a unit is missing" if hole else f"{_told(units[place])} is no record of it"
            self._report.add(path, at, reason)


def _told(unit: np.void) -> str:
    return f"log offset {unit['log_offset']}, size {unit['size']}"


def _inside(walk: LogWalk, offset: int) -> bool:
    """Tell whether a place lies in a stretch that is already known to be damaged."""
    place = bisect.bisect_right([stretch.start for stretch in walk.damaged], offset) - 1
    return place >= 0 and offset < walk.damaged[place].end
