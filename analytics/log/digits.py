"""Decimal digits in the log's bytes, eight at a time: one 64-bit number and three multiplications.

Example: the bytes of ``00001234`` as a little-endian number become 1,234.
"""

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]


def eight_digits(words: UInt64s) -> Int64s:
    """The value of eight digits, the first in the lowest byte; bytes of 0 count as zeros."""
    value = words & np.uint64(0x0F0F0F0F0F0F0F0F)
    value = (value * np.uint64(2561)) >> np.uint64(8)
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
    return value.astype(np.int64)
