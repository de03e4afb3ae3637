"""Numbers as decimal digits of a fixed width, many at once.

Example: ``digits_of([42, 7], 3)`` is the text ``042`` and ``007``, one number a row; and
``eight_digits`` of the bytes of ``00001234``, as a little-endian number, is 1,234.
"""

import numpy as np
import numpy.typing as npt

#: The text of every number of four digits.
_FOURS = np.array([b"%04d" % number for number in range(10_000)], "S4").view(np.uint32)


def digits_of(values: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """The last `width` decimal digits of numbers that are not negative, as ASCII, one a row.

    Four at a time, out of a table.
    """
    groups = -(-width // 4)
    fours = np.empty((len(values), groups), np.uint32)
    rest = values
    for group in range(groups - 1, 0, -1):
        above = rest // 10_000
        fours[:, group] = _FOURS.take(rest - above * 10_000)
        rest = above
    fours[:, 0] = _FOURS.take(rest % 10_000)
    return fours.view(np.uint8)[:, groups * 4 - width :]


def eight_digits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The value of eight digits, the first in the lowest byte; bytes of 0 count as zeros.

    One 64-bit number and three multiplications each.
    """
    value = words & np.uint64(0x0F0F0F0F0F0F0F0F)
    value = (value * np.uint64(2561)) >> np.uint64(8)
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
    return value.astype(np.int64)
