"""Reading a ledger's entries: the part of its file behind the header.

The layout is that of `queues.store.ledgerentries`; offset n lies at byte 4096 + 16 n. Entries that
were never written read as 0, which is `BLANK`.
"""

from itertools import pairwise

import numpy as np

from queues.store.disk import File
from queues.store.ledgerentries import ENTRY_BYTES, Words
from queues.store.ledgerheader import ENTRIES_AT
from queues.store.limits import LEDGER_SCAN_ENTRIES

#: Entries between two offsets that are cheaper read than asked for apart.
_GAP_ENTRIES = 256


class EntryFile:
    """The entries of one ledger file, for reading."""

    def __init__(self, file: File) -> None:
        self._file = file

    def words(self, first: int, count: int) -> Words:
        """The lease words of `count` offsets from `first` on; entries never written are 0."""
        data = self._file.pread(count * ENTRY_BYTES, entry_at(first))
        missing = count * ENTRY_BYTES - len(data)
        return np.frombuffer(data + bytes(missing) if missing else data, dtype=np.int64)[::2]

    def entries(self, first: int, count: int) -> Words:
        """Both words of `count` offsets from `first` on, one row an offset."""
        data = self._file.pread(count * ENTRY_BYTES, entry_at(first))
        data += bytes(count * ENTRY_BYTES - len(data))
        return np.frombuffer(data, dtype=np.int64).reshape(-1, 2)

    def entry(self, offset: int) -> tuple[int, int]:
        """Both words of one offset."""
        lease, chain = self.entries(offset, 1)[0].tolist()
        return lease, chain

    def word(self, offset: int) -> int:
        """The lease word of one offset."""
        data = self._file.pread(8, entry_at(offset))
        return int.from_bytes(data, "little") if len(data) == 8 else 0  # noqa: PLR2004 - a word

    def words_of(self, offsets: Words) -> Words:
        """The lease words of ascending offsets, near ones read together."""
        found = np.empty(len(offsets), dtype=np.int64)
        breaks = np.flatnonzero(np.diff(offsets) > _GAP_ENTRIES) + 1
        edges = [0, *breaks.tolist(), len(offsets)]
        for start, stop in pairwise(edges):
            first = int(offsets[start])
            near = self.words(first, int(offsets[stop - 1]) - first + 1)
            found[start:stop] = near[offsets[start:stop] - first]
        return found

    def written_end(self, cursor: int) -> int:
        """The offset after the last one with an entry; at least `cursor`."""
        end = -((ENTRIES_AT - self._file.size()) // ENTRY_BYTES)
        while end > cursor:
            first = max(cursor, end - LEDGER_SCAN_ENTRIES)
            written = np.flatnonzero(self.entries(first, end - first).any(axis=1))
            if len(written):
                return first + int(written[-1]) + 1
            end = first
        return cursor


def entry_at(offset: int) -> int:
    """The byte at which an offset's entry begins."""
    return ENTRIES_AT + offset * ENTRY_BYTES
