"""The head of a ledger file: where a group stands in one queue of one topic.

It fills the first 4 KiB of the file; the entries follow (`queues.store.ledgerentries`). All numbers
are native; words are 8 bytes.

=====  ===============  =========================================================================
byte   field            meaning
=====  ===============  =========================================================================
0      magic            ``PDLEDGER``
8      sequence         even: at rest; odd: a change was begun and not finished
16     crc              4 bytes: CRC-32 of byte 20 to the end (the sequence is noted by itself)
20     version          4 bytes: 1
24     epoch            a random number; receipts of another epoch are void
32     standing         1 live, 2 dropped (the group is gone; the next one inherits nothing),
                        3 restarting (the entries are of before and go)
40     start            the offset that the group began at
48     floor            all before it is settled; what ``consumerOffset.json`` holds
56     cursor           nothing from here on was handed out
64     leased           leases between floor and cursor
72     again            messages between floor and cursor that are ready (again)
80     again_from       none of them lies before this offset
88     next_expiry_ms   no lease runs out before this wall time; 0 without leases
96     min_offset       the queue's first readable offset that was last seen
104    punched          entries before this offset were given back to the file system
112    filtered         messages settled because their tag is not subscribed to
120    damaged          messages settled because their record cannot be read
128    lapsed           messages that retention removed before the group fetched them
136    ran_out          leases that ran out
144    redelivered      hand-outs with an attempt above 1
152    ordered          1: of an ordered group, where `CHAINED` entries are open
=====  ===============  =========================================================================

Invariant: ``start <= floor <= cursor``, and the entry at the floor is open unless floor = cursor.
The numbers of leases, of messages ready again, and the two bounds follow from the entries: they are
counted anew by the first holder in a process, and by whoever finds an odd sequence.
"""

import struct
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store.crc import crc32
from queues.store.errors import LedgerDamaged, StoreVersionUnknown
from queues.store.ledgerentries import State, Words

#: Where the entries begin.
ENTRIES_AT = 4096
MAGIC = b"PDLEDGER"
VERSION = 1
SEQUENCE_AT = 8
_CHECKED_AT = 20
_LEADING = struct.Struct("=8sqI")
_FIELDS = struct.Struct("=I17q")
HEADER_BYTES = _LEADING.size + _FIELDS.size
SEQUENCE = struct.Struct("=q")

LIVE = 1
DROPPED = 2
RESTARTING = 3


@dataclass(slots=True)
class Header:
    """The working copy that the holder of the ledger's lock changes and then writes whole."""

    #: A random number; receipts of another epoch are void.
    epoch: int
    #: `LIVE`, `DROPPED` or `RESTARTING`.
    standing: int
    #: The offset that the group began at.
    start: int
    #: Everything before this offset is settled.
    floor: int
    #: Nothing from this offset on was handed out.
    cursor: int
    #: Leases between floor and cursor.
    leased: int = 0
    #: Messages between floor and cursor that are ready (again).
    again: int = 0
    #: No message that is ready again lies before this offset.
    again_from: int = 0
    #: No lease runs out before this wall time, ms; 0 without leases.
    next_expiry_ms: int = 0
    #: The queue's first readable offset that was last seen.
    min_offset: int = 0
    #: Entries before this offset were given back to the file system.
    punched: int = 0
    #: Messages settled because their tag is not subscribed to.
    filtered: int = 0
    #: Messages settled because their record cannot be read.
    damaged: int = 0
    #: Messages that retention removed before the group fetched them.
    lapsed: int = 0
    #: Leases that ran out.
    ran_out: int = 0
    #: Hand-outs with an attempt above 1.
    redelivered: int = 0
    #: 1 for an ordered group's: entries of messages that are tried again are open.
    ordered: int = 0

    def opened(self, states: Words) -> npt.NDArray[np.bool_]:
        """Which entries of these states are open."""
        found: npt.NDArray[np.bool_] = states < State.ACKED
        return found | (states == State.CHAINED) if self.ordered else found

    def expiry_due(self, now_ms: int, lease_ms_max: int) -> bool:
        """Whether a lease may have run out: its time came, or the wall clock was set back."""
        next_ms = self.next_expiry_ms
        return bool(self.leased) and not now_ms < next_ms <= now_ms + lease_ms_max

    def raise_floor(self, offset: int) -> None:
        """Settle all before an offset: below the floor a blank entry is settled as well."""
        self.floor = offset
        self.again_from = max(self.again_from, offset)

    def expires_by(self, until_ms: int) -> None:
        """Note that a lease ends at a wall time."""
        next_ms = self.next_expiry_ms
        self.next_expiry_ms = min(next_ms, until_ms) if next_ms else until_ms


_values_of = attrgetter(*(field.name for field in fields(Header)))


def encode_header(header: Header, sequence: int) -> bytes:
    """The header's bytes."""
    checked = _FIELDS.pack(VERSION, *_values_of(header))
    return _LEADING.pack(MAGIC, sequence, crc32(checked)) + checked


def decode_header(data: bytes, path: Path) -> tuple[Header, int] | None:
    """The header and its sequence; None where none was ever written.

    Raises `LedgerDamaged` when the checksum does not hold, and `StoreVersionUnknown`.
    """
    if len(data) < HEADER_BYTES or not any(data):
        return None
    magic, sequence, crc = _LEADING.unpack_from(data)
    version, *values = _FIELDS.unpack_from(data, _CHECKED_AT)
    if magic != MAGIC or crc32(data[_CHECKED_AT:HEADER_BYTES]) != crc:
        raise LedgerDamaged(path=path, offset=0)
    if version != VERSION:
        raise StoreVersionUnknown(path=path, found=version)
    return Header(*values), sequence
