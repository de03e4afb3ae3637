"""Our schedule tables: every holding unit's due time, and where its settled word leads.

A settled word names the record that settled the unit: one that lies behind it in the log. Words at
or beyond the committed end belong to a write that is going on, or that was killed, and are left
alone; in a store that was closed there is none.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.inspection.chunks import Chunk, QueueNumbers
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.limits import DUE_MS_MAX, SCHEDULE_UNITS
from queues.store.names import holds_schedule
from queues.store.schedule import FILE_BYTES, UNIT_BYTES

Int64s = npt.NDArray[np.int64]


class ScheduleCheck:
    """Holds the schedule tables against the records, chunk by chunk."""

    def __init__(self, layout: Layout, numbers: QueueNumbers, report: Report) -> None:
        self._layout, self._numbers, self._report = layout, numbers, report
        self._root = layout.root / "postdate" / "schedule"
        self._tables: dict[Path, Int64s | None] = {}
        self._settled = self._all_settled() if layout.ours else np.zeros(0, np.int64)
        self._before = layout.log_min - 1

    def take(self, chunk: Chunk) -> None:
        """Look at the table entries of a chunk's records, and at the words that lead to these."""
        if not self._layout.ours:
            return
        for number in np.unique(chunk.queues[chunk.queues >= 0]).tolist():
            topic, queue = self._numbers.names[number]
            if holds_schedule(topic):
                self._take_queue(topic, queue, chunk, np.flatnonzero(chunk.queues == number))
        last = int(chunk.offsets[-1])
        self._check_settled(last, chunk.offsets)

    def finish(self) -> None:
        """Look at the settled words that lead behind the last record."""
        committed = self._layout.committed or 0
        self._check_settled(committed - 1, np.zeros(0, np.int64))
        if self._settled.size and self._layout.still_closed:
            self._check_settled(int(self._settled[-1]), np.zeros(0, np.int64))

    def _take_queue(
        self, topic: str, queue: int, chunk: Chunk, places: npt.NDArray[np.intp]
    ) -> None:
        units, dues = chunk.queue_offsets[places], chunk.dues[places]
        directory = self._root / topic / str(queue)
        for file in np.unique(units // SCHEDULE_UNITS).tolist():
            here = units // SCHEDULE_UNITS == file
            path = directory / f"{file * SCHEDULE_UNITS:020d}"
            table = self._table(path)
            if table is None:
                self._report.add(path, None, "the schedule table is missing or of a wrong length")
                continue
            rows = table[units[here] % SCHEDULE_UNITS]
            self._report.counts["schedule_entries"] += len(rows)
            self._report.counts["waiting"] += int(np.count_nonzero(rows[:, 0] == 0))
            own = chunk.offsets[places][here]
            late = rows[:, 1] & DUE_MS_MAX != dues[here]
            back = (rows[:, 0] != 0) & (rows[:, 0] <= own)
            for place in np.flatnonzero(late | back).tolist():
                unit = int(units[here][place])
                told = f"settled by {rows[place, 0]}, due {rows[place, 1] & DUE_MS_MAX}"
                wanted = f"lies at {own[place]}, due {dues[here][place]}"
                reason = f"unit {unit} is {told}; its record {wanted}"
                self._report.add(path, unit % SCHEDULE_UNITS * UNIT_BYTES, reason)

    def _check_settled(self, last: int, offsets: Int64s) -> None:
        start, stop = np.searchsorted(self._settled, [self._before, last], side="right")
        words = self._settled[start:stop]
        for word in words[~np.isin(words, offsets)].tolist():
            path, at = self._place_of(word)
            self._report.add(path, at, f"a unit is settled by {word}, where no record lies")
        self._before = last

    def _paths(self) -> list[Path]:
        return [
            self._root / topic / queue / name
            for topic in self._layout.names(self._root)
            for queue in self._layout.number_names(self._root / topic)
            for name in self._layout.number_names(self._root / topic / queue)
        ]

    def _all_settled(self) -> Int64s:
        """Return all settled words in order: 8 bytes a settled unit."""
        parts = [np.zeros(0, np.int64)]
        for path in self._paths():
            table = self._table(path)
            if table is not None:
                words = np.array(table[:, 0])
                parts.append(words[words != 0])
        return np.sort(np.concatenate(parts))

    def _place_of(self, word: int) -> tuple[Path, int | None]:
        for path in self._paths():
            table = self._table(path)
            found = np.flatnonzero(table[:, 0] == word) if table is not None else np.zeros(0)
            if found.size:
                return path, int(found[0]) * UNIT_BYTES
        return self._root, None

    def _table(self, path: Path) -> Int64s | None:
        if path not in self._tables:
            mapped = self._layout.map(path)
            whole = mapped is not None and mapped.size_bytes == FILE_BYTES
            self._tables[path] = mapped.array(np.int64).reshape(-1, 2) if mapped and whole else None
        return self._tables[path]
