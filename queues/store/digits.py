"""Numbers in bytes, many at once: at any place, and as decimal digits of a fixed width.

Example: ``digits_of([42, 7], 3)`` is the text ``042`` and ``007``, one number a row; and
``eight_digits`` of the bytes of ``00001234``, as a little-endian number, is 1,234.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_ZERO = ord("0")


def digits_of(values: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """The last `width` decimal digits of numbers that are not negative, as ASCII, one a row.

    Dividing by one constant again and again is several times faster than by a row of powers.
    """
    digits = np.empty((len(values), width), np.uint8)
    rest = values
    for place in range(width - 1, -1, -1):
        above = rest // 10
        digits[:, place] = rest - above * 10
        rest = above
    digits += np.uint8(_ZERO)
    return digits


def eight_digits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The value of eight digits, the first in the lowest byte; bytes of 0 count as zeros.

    One 64-bit number and three multiplications each.
    """
    value = words & np.uint64(0x0F0F0F0F0F0F0F0F)
    value = (value * np.uint64(2561)) >> np.uint64(8)
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
    return value.astype(np.int64)


def numbers_at(buffer: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A number of the buffer for each byte at which one could begin: index it with places."""
    kind = np.dtype(dtype)
    count = max(0, len(buffer) - kind.itemsize + 1)
    return np.ndarray((count,), kind, buffer=buffer, strides=(1,))
