"""Marks: ledger entries that are settled by a record in the log, whoever writes it.

A retry or dead-letter record says in ``PD_LEDGER`` which ledger entry it goes on from: epoch, queue
and offset, and the topic. Dispatching the record sets that entry's chain word to the record's log
offset, by one aligned word, under the append lock alone; so a process that dies between the record
and its own entry leaves no message that two go on with: the repair of its write settles the entry.

A ledger of another epoch (its group was deleted or reset since) is left alone, and so is what lies
below its floor, which is settled already.

Example: ``PD_LEDGER`` of ``77 0 12 orders`` in a record of ``%RETRY%billing`` is offset 12 of
``postdate/ledger/billing/orders/0``, if that ledger's epoch is 77.
"""

import contextlib
import struct
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from queues.store.disk import Disk, File
from queues.store.errors import LedgerDamaged
from queues.store.ledgerentries import ENTRY_BYTES
from queues.store.ledgerheader import ENTRIES_AT, HEADER_BYTES, LIVE, Header, decode_header
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX

PD_LEDGER = b"PD_LEDGER\x01"
#: Log offset of the dead letter that a message's next one replaces, and so settles.
PD_FORMER = b"PD_FORMER\x01"
_WORD = struct.Struct("=q")
_OPEN_MAX = 64
#: A header that is read while its holder writes it looks damaged for a moment.
_READS_MAX = 100


class LedgerMark(NamedTuple):
    """A ledger entry that a record settles."""

    group: str
    topic: str
    queue_id: int
    offset: int
    epoch: int

    def encode(self) -> bytes:
        """The property."""
        told = f"{self.epoch} {self.queue_id} {self.offset} {self.topic}"
        return b"%b%b\x02" % (PD_LEDGER, told.encode())


def mark_of(raw: bytes, property_at: int, topic: str) -> LedgerMark | None:
    """The mark of a retry or dead-letter record for `topic`; None if it has none."""
    at = raw.find(b"\x02" + PD_LEDGER, property_at)
    if at < 0:
        return None
    start = at + 1 + len(PD_LEDGER)
    epoch, queue_id, offset, name = raw[start : raw.index(b"\x02", start)].decode().split(" ", 3)
    group = topic.removeprefix(RETRY_PREFIX).removeprefix(DEAD_LETTER_PREFIX)
    return LedgerMark(group, name, int(queue_id), int(offset), int(epoch))


def former_of(raw: bytes, property_at: int) -> int | None:
    """Log offset of the dead letter that a dead-letter record replaces; None without one."""
    at = raw.find(b"\x02" + PD_FORMER, property_at)
    if at < 0:
        return None
    start = at + 1 + len(PD_FORMER)
    return int(raw[start : raw.index(b"\x02", start)])


class LedgerMarks:
    """Settles entries in the ledgers of one store; used under the append lock only."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk, self._directory = disk, root / "postdate" / "ledger"
        self._files: OrderedDict[Path, File] = OrderedDict()

    def settle(self, mark: LedgerMark, log_offset: int) -> None:
        """Note in the entry that the record at a log offset goes on with its message."""
        path = self._directory / mark.group / mark.topic / str(mark.queue_id)
        file = self._open(path)
        header = None if file is None else _header(file, path)
        if file is None or header is None or header.standing != LIVE:
            return
        if header.epoch == mark.epoch and header.floor <= mark.offset:
            at = ENTRIES_AT + mark.offset * ENTRY_BYTES + _WORD.size
            file.pwrite(_WORD.pack(log_offset), at)

    def peek(self, group: str, topic: str, queue_id: int, offset: int) -> tuple[Header | None, int]:
        """Header and lease word of an entry, without any lock; no header for no live ledger."""
        path = self._directory / group / topic / str(queue_id)
        if not self._disk.exists(path):
            return None, 0
        file = self._disk.open(path, write=False)
        try:
            header = _header(file, path)
            word = file.pread(_WORD.size, ENTRIES_AT + offset * ENTRY_BYTES)
        finally:
            file.close()
        if header is None or header.standing != LIVE:
            return None, 0
        return header, _WORD.unpack(word)[0] if len(word) == _WORD.size else 0

    def _open(self, path: Path) -> File | None:
        file = self._files.get(path)
        if file is None:
            if not self._disk.exists(path):
                return None
            file = self._files[path] = self._disk.open(path)
            if len(self._files) > _OPEN_MAX:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(path)
        return file

    def close(self) -> None:
        """Give all descriptors back."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def _header(file: File, path: Path) -> Header | None:
    for _ in range(_READS_MAX):
        with contextlib.suppress(LedgerDamaged):
            found = decode_header(file.pread(HEADER_BYTES, 0), path)
            return found[0] if found else None
    return None
