"""A ledger: what one group did with each message of one queue, in one sparse file of its own.

The file lies at ``postdate/ledger/<group>/<topic>/<queue>``: a header of 4 KiB
(`queues.store.ledgerheader`), then 16 bytes an offset (`queues.store.ledgerentries`). It is not
derived from the log: only the acks in it are nowhere else.

It is changed by the holder of its lock alone, in this order, each step one or more ``pwrite``:

1. the header's sequence is made odd: a change has begun;
2. the entries are written, each whole;
3. the header is written with the next even sequence.

A process that dies after (1) leaves an odd sequence; the next holder counts the header anew from
the entries. The entries alone decide, so a stop at any point loses nothing: a lease that was
written runs out, a message whose lease was not written is ready, an ack that was written stays.
Power loss may take the writes of the last second, each entry by itself: acks then come again.

Example: with floor 5 and cursor 9, offsets 0 to 4 are settled, 5 is open, 9 is handed out next.
"""

import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from queues.store.disk import Disk
from queues.store.errors import LedgerDamaged
from queues.store.ledgerentries import (
    ENTRY_BYTES,
    State,
    Words,
    split_runs,
    states,
    untils,
    with_state,
)
from queues.store.ledgerfile import EntryFile, entry_at
from queues.store.ledgerheader import (
    DROPPED,
    ENTRIES_AT,
    HEADER_BYTES,
    LIVE,
    RESTARTING,
    SEQUENCE,
    SEQUENCE_AT,
    Header,
    decode_header,
    encode_header,
)
from queues.store.limits import LEDGER_KEPT_ENTRIES, LEDGER_SCAN_ENTRIES

_ENTRY = struct.Struct("=qq")
#: Entries that are looked at first when the floor moves.
_STEP_ENTRIES = 256
#: Entries that are given back to the file system at once at least, and the entries in a page.
_PUNCH_ENTRIES = 65_536
_PAGE_ENTRIES = 256


class Ledger(EntryFile):
    """One ledger file; whoever changes it holds its lock (`try_hold`, `release`)."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        *,
        counted: bool = False,
        mend: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        #: The working copy; None while there is no live ledger. Valid under the lock only.
        self.header: Header | None = None
        self._disk = disk
        self._mend = mend
        self._threads = threading.Lock()
        disk.make_dirs(path.parent)
        self._lock = disk.lock(path)
        super().__init__(disk.open(path, create=True))
        self._raw = b""
        self._sequence = 0
        #: This process has counted the header from the entries; what others commit it believes.
        self.counted = counted
        self._changing = False
        self._synced_sequence = -1

    # ---- the lock

    def try_hold(self, wait_s: float = 0.0) -> bool:
        """Take the lock and read the header; False when others keep it for `wait_s` seconds."""
        if not self._threads.acquire(blocking=wait_s > 0, timeout=wait_s if wait_s > 0 else -1):
            return False
        try:
            if not self._lock.acquire_within(wait_s):
                self._threads.release()
                return False
        except BaseException:
            self._threads.release()
            raise
        try:
            self._refresh()
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        """Let the next one in; a change that was not committed is left for it to count."""
        if self._changing:
            self._changing = self.counted = False
            self._raw = b""
        self._lock.release()
        self._threads.release()

    def close(self) -> None:
        """Give the descriptors back."""
        self._file.close()
        self._lock.close()

    # ---- the header

    def peek(self) -> Header | None:
        """The header as last committed, read without the lock; None if it must be asked under it.

        A change that is under way may be missing from it.
        """
        found = self._peek() if self.counted else None
        return found[0] if found else None

    def _peek(self) -> tuple[Header, int] | None:
        try:
            found = decode_header(self._file.pread(HEADER_BYTES, 0), self.path)
        except LedgerDamaged:
            return None  # It may have been read while it was written; the lock's taker will tell.
        return found if found and found[0].standing == LIVE else None

    def _refresh(self) -> None:
        raw = self._file.pread(HEADER_BYTES, 0)
        if raw == self._raw and self.counted:
            return
        try:
            found = decode_header(raw, self.path)
        except LedgerDamaged:
            found = None
        self._raw = raw
        if found is not None and found[0].standing == RESTARTING:
            self.header, self._sequence = found
            self._end_restart(self.header)
            return
        if found is None or found[0].standing != LIVE:
            self.header = None
            self.counted = False
            return
        self.header, self._sequence = found
        if self._sequence % 2 and self._mend is not None:
            self._mend()  # Whoever died may have left a record that settles one of the entries.
        if self._sequence % 2 or not self.counted:
            self.count_anew(self.header)

    def live(self) -> Header:
        """The header of a live ledger whose lock is held."""
        assert self.header is not None
        return self.header

    def begin_at(self, offset: int, epoch: int) -> None:
        """Make the ledger (under its lock): all before `offset` counts as settled.

        Entries that a damaged header left behind are kept; those of a dropped group are not.
        """
        try:
            found = decode_header(self._file.pread(HEADER_BYTES, 0), self.path)
        except LedgerDamaged:
            found = None
        if found is not None:
            assert found[0].standing == DROPPED
            self._file.truncate(ENTRIES_AT)
        self._sequence = found[1] if found else 0
        self.header = Header(epoch, LIVE, offset, offset, offset, again_from=offset, punched=offset)
        self.count_anew(self.header)
        self.commit()

    def restart_at(self, offset: int, epoch: int) -> None:
        """Begin anew at an offset (under the lock); the next holder goes on after a stop."""
        self.header = replace(
            self.live(), epoch=epoch, standing=RESTARTING, start=offset, floor=offset,
            cursor=offset, leased=0, again=0, again_from=offset, next_expiry_ms=0, punched=offset,
            min_offset=0,
        )  # fmt: skip
        self.commit()
        self._end_restart(self.header)

    def _end_restart(self, header: Header) -> None:
        # Power loss must not bring entries of before back under a header that is live.
        self._file.sync()
        self._file.truncate(ENTRIES_AT)
        self._file.sync()
        header.standing = LIVE
        self.commit()

    def drop(self) -> None:
        """Forget the group in this queue (under the lock): the next one inherits nothing.

        A header that says so stays behind: removing the file would let two hold "its" lock.
        """
        if self.header is None:
            return
        self.header.standing = DROPPED
        self.commit()
        self.header = None
        self._raw = b""
        self._file.truncate(ENTRIES_AT)

    def commit(self) -> None:
        """Write the header, which ends the change."""
        header = self.live()
        self._changing = True
        self._sequence += 2 - self._sequence % 2
        raw = encode_header(header, self._sequence)
        self._file.pwrite(raw, 0)
        self._raw = raw
        self.counted = True
        self._changing = False

    # ---- the entries

    def put(self, offsets: Words, words: Words, chains: Words | int = 0) -> None:
        """Write the words of ascending, distinct offsets, one write a run."""
        self.begin_change()
        entries = np.empty((len(offsets), 2), dtype=np.int64)
        entries[:, 0], entries[:, 1] = words, chains
        data = entries.tobytes()
        for start, stop in split_runs(offsets):
            run = data[start * ENTRY_BYTES : stop * ENTRY_BYTES]
            self._file.pwrite(run, entry_at(int(offsets[start])))

    def put_one(self, offset: int, word: int, chain: int = 0) -> None:
        """Write one entry."""
        self.begin_change()
        self._file.pwrite(_ENTRY.pack(word, chain), entry_at(offset))

    def take_off(self, end: int) -> None:
        """Drop the entries from offset `end` on, of which nothing is then left in the file."""
        self._file.truncate(min(self._file.size(), entry_at(end)))

    def begin_change(self) -> None:
        """Note that a change has begun, before anything else that belongs to it is written.

        Without a live header there is nothing to note it in: the next one counts all entries.
        """
        if self._changing or self.header is None:
            return
        self._changing = True
        self._sequence += 1 - self._sequence % 2
        self._file.pwrite(SEQUENCE.pack(self._sequence), SEQUENCE_AT)

    # ---- what follows from the entries

    def first_ready(self, header: Header) -> int | None:
        """The first offset that is ready again, if there is one; needs no lock."""
        return self._first_of(header.again_from, header.cursor, leased=False)

    def first_leased(self) -> int | None:
        """An offset that no lease lies before, if there may be leases; needs no lock."""
        found = self._peek()
        if found is None or found[0].floor == found[0].cursor:
            return None
        header, sequence = found
        if sequence % 2 or not self.counted:
            return header.floor  # The header may not tell of all leases.
        return self._first_of(header.floor, header.cursor, leased=True) if header.leased else None

    def _first_of(self, start: int, stop: int, *, leased: bool) -> int | None:
        for first in range(start, stop, LEDGER_SCAN_ENTRIES):
            found = states(self.words(first, min(LEDGER_SCAN_ENTRIES, stop - first)))
            chosen = np.flatnonzero(found == State.LEASED if leased else found < State.LEASED)
            if len(chosen):
                return first + int(chosen[0])
        return None

    def advance_floor(self) -> None:
        """Move the floor past all that is settled."""
        header = self.live()
        step = _STEP_ENTRIES
        while header.floor < header.cursor:
            count = min(step, header.cursor - header.floor)
            open_ones = np.flatnonzero(header.opened(states(self.words(header.floor, count))))
            if len(open_ones):
                header.raise_floor(header.floor + int(open_ones[0]))
                break
            header.raise_floor(header.floor + count)
            step = LEDGER_SCAN_ENTRIES

    def count_anew(self, header: Header) -> None:
        """Make header and entries agree again (after a stop, and once in each process)."""
        before = encode_header(header, 0)
        header.cursor = max(header.cursor, self.written_end(header.cursor))
        header.leased = header.again = header.next_expiry_ms = 0
        header.again_from = header.cursor
        for first in range(header.floor, header.cursor, LEDGER_SCAN_ENTRIES):
            words = self._chained(first, min(LEDGER_SCAN_ENTRIES, header.cursor - first))
            found = states(words)
            ready = np.flatnonzero(found < State.LEASED)
            if len(ready):
                header.again_from = min(header.again_from, first + int(ready[0]))
                header.again += len(ready)
            held = untils(words[found == State.LEASED])
            if len(held):
                header.leased += len(held)
                header.expires_by(int(held.min()))
        self.advance_floor()
        self.counted = True
        if self._sequence % 2 or encode_header(header, 0) != before:
            self.commit()

    def _chained(self, first: int, count: int) -> Words:
        """Lease words, after those whose chain goes on are settled: their holder died before."""
        entries = self.entries(first, count)
        words, chains = entries[:, 0].copy(), entries[:, 1]
        found = np.flatnonzero((chains > 0) & (states(words) < State.ACKED))
        if len(found):
            words[found] = with_state(words[found], State.CHAINED)
            self.put(first + found, words[found], chains[found])
        return words

    # ---- housekeeping

    def sync(self) -> int | None:
        """Put what was committed on the device and return the floor that now is; None without one.

        Called without the lock, for a sync takes long. What lies far below that floor is given back
        to the file system only after: power loss must not bring back a floor without its entries.
        """
        found = self._peek()
        if found is None:
            return None
        header, sequence = found
        if sequence != self._synced_sequence:
            self._file.sync()
            self._synced_sequence = sequence
        if header.floor - LEDGER_KEPT_ENTRIES - header.punched >= _PUNCH_ENTRIES:
            self._punch_below(header.floor - LEDGER_KEPT_ENTRIES)
        return header.floor

    def sync_file(self) -> None:
        """Put all that was written on the device, whatever the header tells."""
        self._file.sync()

    def _punch_below(self, offset: int) -> None:
        if not self.try_hold():
            return  # It is in use; the next sync comes in a second.
        try:
            if self.header is not None and self.header.punched < offset:
                start = self.header.punched // _PAGE_ENTRIES * _PAGE_ENTRIES
                stop = offset // _PAGE_ENTRIES * _PAGE_ENTRIES
                self._file.punch(entry_at(start), (stop - start) * ENTRY_BYTES)
                self.header.punched = stop
                self.commit()
        finally:
            self.release()
