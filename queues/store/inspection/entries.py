"""Index files: their chains as they must be, and every entry against the record it leads to.

Slots and predecessors follow from the entries' hashes in their order, so the whole of a file is
computed again and compared. The count of slots is learned: RocketMQ has a slot for four entries,
and where a file was made otherwise, the last entry must be the head of its slot.

Entries are written first, then slots, then the header's count. So while a store is written, and
after a kill, slots may lead beyond the count; but never, in a store of ours, to an entry of a
record that is committed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from queues.store.disk import Mapped
from queues.store.indexfile import (
    COUNT_AT,
    ENTRY,
    ENTRY_BYTES,
    FIRST_COUNT,
    HEADER_BYTES,
    SLOT,
    SLOT_BYTES,
    IndexFile,
)
from queues.store.inspection.chunks import Chunk
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.inspection.log import LogWalk

#: RocketMQ's own ratio of entries to slots.
_ENTRIES_A_SLOT: Final = 4
#: Wrong entries of one file that are told one by one.
_TOLD_MAX: Final = 100

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
#: Numbers, log offsets and hashes of entries, in the order of their log offsets.
_Columns = tuple[Int64s, Int64s, Int32s]
_OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class IndexNote:
    """An index file that could be opened."""

    path: Path
    file: IndexFile
    slot_count: int


def open_indexes(layout: Layout, report: Report) -> list[IndexNote]:
    """Return the index files, oldest first; take down those whose sizes cannot be learned."""
    notes = []
    for name in layout.number_names(layout.root / "index"):
        path = layout.root / "index" / name
        mapped = layout.map(path)
        slots = learn_slots(mapped) if mapped else None
        if mapped is None and not layout.disk.exists(path):
            continue  # Retention of a running platform was faster.
        if mapped is None or slots is None:
            report.add(path, None, "the file is no index file of any size")
            continue
        entries = (mapped.size_bytes - HEADER_BYTES - slots * SLOT_BYTES) // ENTRY_BYTES
        note = IndexNote(path, IndexFile(mapped, slots, entries), slots)
        if _check_count(note, layout, report):
            notes.append(note)
    return notes


def _check_count(note: IndexNote, layout: Layout, report: Report) -> bool:
    """Take down a count that cannot be right; tell whether the file may be looked at by it."""
    file = note.file
    end_ms = file.end_ms  # Before the count: a broker sets it after.
    count, most = file.stored_count, len(file.entries)
    if not 0 <= count <= most:
        report.add(note.path, COUNT_AT, f"its count is {count}, in a file of {most} entries")
        return False
    told = f"its count is {count}"
    beyond = np.flatnonzero(file.slots >= max(FIRST_COUNT, count))
    if layout.committed is not None:
        heads = file.slots[beyond].astype(np.int64)
        late = heads < most
        late[late] = file.entries["log_offset"][heads[late]] >= layout.committed
        beyond = beyond[~late]
    elif not layout.closed:
        beyond = beyond[:0]
    if beyond.size:
        slot = int(beyond[0])
        report.add(
            note.path, COUNT_AT, f"{told}, but slot {slot} leads to entry {file.slots[slot]}"
        )
    elif not layout.ours and count <= FIRST_COUNT and end_ms:
        report.add(note.path, COUNT_AT, f"{told}, but the header tells of a last entry")
    return True


def learn_slots(mapped: Mapped) -> int | None:
    """Return how many slots the file has; None if no count of slots can be right.

    Of a file without entries, and one whose count is damaged, it is RocketMQ's own ratio.
    """
    words = (mapped.size_bytes - HEADER_BYTES) // SLOT_BYTES
    a_slot = 1 + _ENTRIES_A_SLOT * ENTRY_BYTES // SLOT_BYTES
    if words <= 0 or (mapped.size_bytes - HEADER_BYTES) % SLOT_BYTES:
        return None
    usual = words // a_slot if words % a_slot == 0 else None
    last = int.from_bytes(mapped.memory[HEADER_BYTES - 4 : HEADER_BYTES], "big") - 1
    if last < FIRST_COUNT or (usual and _is_head(mapped, np.array([usual]), last)[0]):
        rough = words // a_slot
        return usual or rough + (words - rough) % (ENTRY_BYTES // SLOT_BYTES) or None
    # The slots are what the entries, of five words each, leave over.
    rest = words % (ENTRY_BYTES // SLOT_BYTES)
    candidates = np.arange(rest or 5, words - last * 5, 5, dtype=np.int64)
    if not candidates.size:
        return usual
    fitting = candidates[_is_head(mapped, candidates, last)].tolist()
    return min(fitting, key=lambda slots: _amiss(mapped, slots, last), default=usual)


def _is_head(mapped: Mapped, slot_counts: Int64s, last: int) -> npt.NDArray[np.bool_]:
    """Tell for which counts of slots the last entry is the newest of its slot."""
    words = mapped.array(SLOT, 0, mapped.size_bytes // SLOT_BYTES)
    head = HEADER_BYTES // SLOT_BYTES
    at = head + slot_counts + last * (ENTRY_BYTES // SLOT_BYTES)
    inside = at < len(words)
    hashes = words[np.where(inside, at, 0)].astype(np.int64)
    fits: npt.NDArray[np.bool_] = (
        inside & (hashes >= 0) & (words[head + np.abs(hashes) % slot_counts] == last)
    )
    return fits


def _amiss(mapped: Mapped, slots: int, last: int) -> int:
    """Return how many slots and predecessors are not what this count of slots asks for."""
    entries = mapped.array(ENTRY, HEADER_BYTES + slots * SLOT_BYTES, last + 1)[FIRST_COUNT:]
    hashes = entries["key_hash"].astype(np.int64)
    previous, heads = _chains(hashes, slots)
    amiss = np.count_nonzero((entries["previous"] != previous) | (hashes < 0))
    return int(amiss + np.count_nonzero(mapped.array(SLOT, HEADER_BYTES, slots) != heads))


def _chains(hashes: Int64s, slot_count: int) -> tuple[Int64s, Int64s]:
    """Return each entry's predecessor and each slot's head, as the hashes ask for."""
    numbers = np.arange(FIRST_COUNT, FIRST_COUNT + len(hashes), dtype=np.int64)
    slots = hashes % slot_count
    order = np.argsort(slots, kind="stable")
    previous = np.zeros(len(order), dtype=np.int64)
    same = slots[order][1:] == slots[order][:-1]
    previous[order[1:]] = np.where(same, numbers[order[:-1]], 0)
    heads = np.zeros(slot_count, dtype=np.int64)
    heads[slots[order]] = numbers[order]
    return previous, heads


def check_chains(note: IndexNote, report: Report) -> None:
    """Take down slots and predecessors that are not what the entries say."""
    file, count = note.file, note.file.count
    hashes = file.entries["key_hash"][FIRST_COUNT:count].astype(np.int64)
    previous, heads = _chains(hashes, note.slot_count)
    wrong = np.flatnonzero((file.entries["previous"][FIRST_COUNT:count] != previous) | (hashes < 0))
    entries_at = HEADER_BYTES + note.slot_count * SLOT_BYTES
    for place in wrong[:_TOLD_MAX].tolist():
        told = int(file.entries["previous"][place + 1])
        at = entries_at + (place + 1) * ENTRY_BYTES
        reason = f"entry {place + 1} follows entry {told}, not {previous[place]}"
        report.add(note.path, at, reason)
    lost = np.flatnonzero((file.slots != heads) & (file.slots < count))
    for slot in lost[:_TOLD_MAX].tolist():
        reason = f"slot {slot} leads to entry {file.slots[slot]}, not {heads[slot]}"
        report.add(note.path, HEADER_BYTES + slot * SLOT_BYTES, reason)
    report.findings_total += max(0, wrong.size - _TOLD_MAX) + max(0, lost.size - _TOLD_MAX)
    report.counts["index_files"] += 1
    report.counts["index_slots"] += int(np.count_nonzero(heads))
    report.counts["entries"] += len(hashes)


class EntryCheck:
    """Holds the entries of all index files against the records, chunk by chunk."""

    def __init__(self, layout: Layout, notes: list[IndexNote], report: Report) -> None:
        self._layout, self._report = layout, report
        self._notes = [note for note in notes if note.file.count > FIRST_COUNT]
        # Of ours every key is in the index; a broker's may be switched off.
        first = layout.log_min if layout.ours else _OFFSET_MAX
        self._begin = min((note.file.begin_log_offset for note in self._notes), default=first)
        self._end = max((note.file.end_log_offset for note in self._notes), default=-1)
        self._ranges = [_range(note) for note in self._notes]
        self._columns: dict[int, _Columns] = {}
        #: The last record that was looked at.
        self._before = -1

    def take(self, chunk: Chunk) -> None:
        """Look at the entries that lead to a chunk's records, or between them."""
        wanted = _pairs(chunk.key_owners, chunk.key_hashes)
        seen = np.zeros(len(wanted), dtype=np.bool_)
        last = int(chunk.offsets[-1])
        for number, (low, high) in enumerate(self._ranges):
            if low > last or high <= self._before:
                continue
            numbers, offsets, hashes = self._between(number, self._before, last)
            places = np.searchsorted(chunk.offsets, offsets)
            pairs = _pairs(places, hashes)
            right = (chunk.offsets[places] == offsets) & np.isin(pairs, wanted)
            seen |= np.isin(wanted, pairs[right])
            self._tell(number, numbers[~right], offsets[~right], hashes[~right])
        self._before = last
        owners = chunk.offsets[chunk.key_owners]
        lacking = ~seen & (owners >= self._begin)
        if not self._layout.complete:
            lacking &= owners <= self._end
        for offset in np.unique(owners[lacking])[:_TOLD_MAX].tolist():
            reason = f"the record at log offset {offset} is not in the index"
            self._report.add(self._layout.root / "index", None, reason)

    def finish(self, walk: LogWalk) -> None:
        """Look at the entries that lead behind the last record."""
        stop = walk.readable_end()
        for number in range(len(self._notes)):
            numbers, offsets, hashes = self._between(number, self._before, _OFFSET_MAX)
            if stop is not None:
                kept = offsets < stop
                numbers, offsets, hashes = numbers[kept], offsets[kept], hashes[kept]
            self._tell(number, numbers, offsets, hashes)

    def _between(self, number: int, after: int, last: int) -> "_Columns":
        """Return number, offset and hash of the entries that lead to (after, last]."""
        columns = self._columns.pop(number, None)
        if columns is None:
            entries = self._notes[number].file.entries[FIRST_COUNT : self._notes[number].file.count]
            offsets = entries["log_offset"].astype(np.int64)
            order = np.argsort(offsets, kind="stable")
            hashes = entries["key_hash"].astype(np.int32)
            columns = (order + FIRST_COUNT, offsets[order], hashes[order])
        # Chunks go forward, and files follow each other: two at most are needed at a time.
        self._columns = dict([*self._columns.items()][-1:]) | {number: columns}
        start, stop = np.searchsorted(columns[1], [after, last], side="right")
        return columns[0][start:stop], columns[1][start:stop], columns[2][start:stop]

    def _tell(self, number: int, numbers: Int64s, offsets: Int64s, hashes: Int32s) -> None:
        """Take down wrong entries; those of records that retention removed are only counted."""
        live = offsets >= self._layout.log_min
        self._report.counts["expired_entries"] += int(np.count_nonzero(~live))
        note = self._notes[number]
        at = HEADER_BYTES + note.slot_count * SLOT_BYTES
        wrong = zip(
            numbers[live].tolist(), offsets[live].tolist(), hashes[live].tolist(), strict=True
        )
        for entry, offset, key_hash in list(wrong)[:_TOLD_MAX]:
            reason = f"entry {entry} leads to {offset}, where no key has the hash {key_hash}"
            self._report.add(note.path, at + entry * ENTRY_BYTES, reason)
        self._report.findings_total += max(0, int(live.sum()) - _TOLD_MAX)


def _range(note: IndexNote) -> tuple[int, int]:
    offsets = note.file.entries["log_offset"][FIRST_COUNT : note.file.count]
    return int(offsets.min()), int(offsets.max())


def _pairs(owners: Int64s, hashes: Int32s) -> Int64s:
    return (owners.astype(np.int64) << 32) | hashes.astype(np.int64)
