"""Decimal digits of many numbers at once, for fields of fixed width.

Example: ``digits_of([42, 7], 3)`` is the text ``042`` and ``007``, one number a row.
"""

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
