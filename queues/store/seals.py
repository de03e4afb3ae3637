"""Seals: the property that ends a record, a CRC of all that is before it. Many at once.

A seal is 20 bytes: ``__CRC32#``, 0x01, ten decimal digits of CRC-32 & 0x7FFFFFFF, the lowest first,
0x02. Example: the CRC 42 is told by ``__CRC32#\\x012400000000\\x02``.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from queues.store.commitlog import CommitLog
from queues.store.digits import eight_digits
from queues.store.errors import RecordGone
from queues.store.record import CRC_PROPERTY_BYTES
from queues.store.scattered import crcs_of, records_at

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SEAL: Final = np.dtype(
    {
        "names": ["name", "is", "low", "high", "end"],
        "formats": ["<u8", "u1", ">u8", "<u2", "u1"],
        "offsets": [0, 8, 9, 17, 19],
        "itemsize": CRC_PROPERTY_BYTES,
    }
)
_NAME: Final = int.from_bytes(b"__CRC32#", "little")
_IS, _END = 1, 2
#: A byte is a digit if its upper half is 3, also after 6 was added.
_UPPER, _THREES, _SIXES = 0xF0F0F0F0F0F0F0F0, 0x3030303030303030, 0x0606060606060606
_DIGIT: Final = 15


def are_named(seals: npt.NDArray[np.void]) -> Bools:
    """Which of these bytes, of dtype `SEAL`, begin as a seal does."""
    found: Bools = (seals["name"] == _NAME) & (seals["is"] == _IS)
    return found


def are_seals(seals: npt.NDArray[np.void]) -> Bools:
    """Which of these bytes are seals, whatever they tell."""
    found: Bools = are_named(seals) & (seals["end"] == _END)
    return found & _are_digits(seals["low"].astype(np.uint64)) & _are_digits(seals["high"])


def _are_digits(words: npt.NDArray[Any]) -> Bools:
    """Which of these numbers consist of ASCII digits."""
    kind = words.dtype.type
    upper, threes, sixes = (kind(one & np.iinfo(kind).max) for one in (_UPPER, _THREES, _SIXES))
    found: Bools = (words & upper == threes) & (words + sixes & upper == threes)
    return found


def hold(seals: npt.NDArray[np.void], buffer: Any, starts: Int64s, ends: Int64s) -> Bools:
    """Which of the seals tell the CRC of the bytes of a buffer from a start to an end."""
    held: Bools = told_by(seals) == crcs_of(buffer, starts, ends)
    return held


def told_by(seals: npt.NDArray[np.void]) -> Int64s:
    """The CRCs, 31 bits, that seals tell."""
    ninth, tenth = seals["high"] & _DIGIT, seals["high"] >> 8 & _DIGIT
    high = ninth.astype(np.int64) * 10**8 + tenth.astype(np.int64) * 10**9
    return eight_digits(seals["low"].astype(np.uint64)) + high


def read_sealed(log: CommitLog, offsets: Int64s, sizes: Int64s) -> list[bytes | None]:
    """The bytes of the records at these log offsets; None for one that is damaged or gone."""
    bases = offsets - offsets % log.segment_bytes
    if (bases == bases[0]).all():
        return _read_segment(log, int(bases[0]), offsets - bases, sizes)
    found: list[bytes | None] = [None] * len(offsets)
    for base in np.unique(bases).tolist():
        here = np.flatnonzero(bases == base)
        some = _read_segment(log, base, offsets[here] - base, sizes[here])
        for number, raw in zip(here.tolist(), some, strict=True):
            found[number] = raw
    return found


def _read_segment(log: CommitLog, base: int, starts: Int64s, sizes: Int64s) -> list[bytes | None]:
    try:
        memory = log.memory(base).memory
    except RecordGone:
        return [None] * len(starts)
    ends = starts + sizes
    fit = (sizes > CRC_PROPERTY_BYTES) & (ends <= len(memory))
    seals = records_at(memory, SEAL, np.where(fit, ends - CRC_PROPERTY_BYTES, 0))
    sealed = fit & are_seals(seals)
    if not sealed.all():
        starts, ends = np.where(sealed, starts, 0), np.where(sealed, ends, CRC_PROPERTY_BYTES)
    whole = sealed & hold(seals, memory, starts, ends - CRC_PROPERTY_BYTES)
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    raws: list[bytes | None] = [memory[start:end] for start, end in pairs]
    for number in np.flatnonzero(~whole).tolist():
        raws[number] = None
    return raws
