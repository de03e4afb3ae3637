"""Seals checked in sums: which of many records are as their seals tell, most of them by one CRC.

A CRC that begins at zero is linear: that of the XOR of stretches is the XOR of theirs, and zeros
before a stretch change nothing. So stretches of about one length are laid over each other, their
ends in line, and the CRC of their sum is compared with the sum of what the seals tell. Where the
two differ each record of the sum is looked at alone.

A damaged record is found as surely as by a CRC of its own (one in 2**31 would pass), and so are
several, unless they cancel out: the same bits, as far from the end, in an even number of records
of one sum. It takes half the time of a CRC for each.
"""

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from queues.store.crc import crc32
from queues.store.grouping import Places, members_by_number
from queues.store.record import CRC_MASK
from queues.store.scattered import chosen_of, rows_at
from queues.store.seals import hold, told_by

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Lengths that are the same in steps of so many bytes are laid over each other.
_STEP_BYTES: Final = 64
#: Longer stretches are looked at alone: what a call costs does not matter there.
_LONGEST: Final = 1 << 13
#: Fewer of about one length are.
_FEW: Final = 16
#: Bytes that are laid over each other at once: enough to spread numpy's own costs.
_AT_ONCE_BYTES: Final = 1 << 20
#: Row n keeps all but the first n bytes, eight a word.
_KEPT: Final = np.triu(np.full((_STEP_BYTES, _STEP_BYTES), 255, np.uint8)).view(np.uint64)
_ALL: Final = 0xFFFFFFFF


def hold_in_sums(seals: npt.NDArray[np.void], buffer: Any, starts: Int64s, ends: Int64s) -> Bools:
    """Which of the seals tell the CRC of the bytes of a buffer from a start to an end.

    What `queues.store.seals.hold` tells, but for damages that cancel out (see above).
    """
    held = np.ones(len(starts), np.bool_)
    told = told_by(seals)
    alone: list[Places] = []
    for members in members_by_number((ends - starts + _STEP_BYTES - 1) // _STEP_BYTES):
        width = _STEP_BYTES * -(-int(ends[members[0]] - starts[members[0]]) // _STEP_BYTES)
        if len(members) < _FEW or width > _LONGEST or int(ends[members].min()) < width:
            alone.append(members)
            continue
        at_once = max(_FEW, _AT_ONCE_BYTES // width)
        for first in range(0, len(members), at_once):
            some = members[first : first + at_once]
            if not _adds_up(buffer, starts[some], ends[some], width, told[some]):
                alone.append(some)
    for members in alone:
        some_seals = chosen_of(seals, members)
        held[members] = hold(some_seals, buffer, starts[members], ends[members])
    return held


def _adds_up(buffer: Any, starts: Int64s, ends: Int64s, width: int, told: Int64s) -> bool:
    """Whether the CRC of the sum is the sum of the CRCs; no stretch is longer than `width`."""
    lengths = ends - starts
    rows = rows_at(buffer, ends - width, width)
    rows.view(np.uint64)[:, : _KEPT.shape[1]] &= _KEPT[width - lengths]
    added = crc32(np.bitwise_xor.reduce(rows, axis=0), _ALL) ^ _ALL
    expected = np.bitwise_xor.reduce(told ^ _crcs_of_zeros()[lengths])
    return (added ^ int(expected)) & CRC_MASK == 0


@cache
def _crcs_of_zeros() -> Int64s:
    """The CRCs of so many zeros: what beginning at all ones adds to a CRC."""
    crcs = np.zeros(_LONGEST + 1, np.int64)
    for length in range(1, _LONGEST + 1):
        crcs[length] = crc32(b"\0", int(crcs[length - 1]))
    return crcs
