"""Log-linear buckets: how durations in milliseconds are counted without keeping each of them.

Durations below 64 ms have a bucket each. From there on every doubling has 32 buckets, so a bucket
is at most 3.2 % wide. Negative durations share the bucket -1, unknown ones (a broker's record does
not tell) the bucket -2, which is part of no quantile.

Example: 100 ms lies in bucket 82, which holds 100 and 101 ms; its upper edge is 101.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

NEGATIVE: Final = -1
UNKNOWN: Final = -2
#: Durations below this have a bucket each.
EXACT_BELOW_MS: Final = 64
#: Buckets of one doubling.
PER_DOUBLING: Final = 32
#: ``log2`` of the first duration that shares a bucket, less the bits that tell buckets apart.
_SHIFT: Final = 5


def buckets_of(values_ms: Int64s) -> Int64s:
    """The bucket of each duration."""
    # Exact up to 2^53: a double's exponent is the place of the highest bit.
    exponents = np.frexp(np.maximum(values_ms, 1).astype(np.float64))[1].astype(np.int64) - 1
    shifts = np.maximum(exponents - _SHIFT, 0)
    found = PER_DOUBLING * shifts + (values_ms >> shifts)
    return np.where(values_ms < 0, NEGATIVE, found)


def bucket_of(value_ms: int) -> int:
    """The bucket of one duration."""
    if value_ms < 0:
        return NEGATIVE
    shift = max(0, value_ms.bit_length() - 1 - _SHIFT)
    return PER_DOUBLING * shift + (value_ms >> shift)


def upper_edge(bucket: int) -> int:
    """The longest duration that a bucket holds, ms; that of the negative ones is -1."""
    if bucket < EXACT_BELOW_MS:
        return max(bucket, -1)
    shift = bucket // PER_DOUBLING - 1
    return ((bucket - PER_DOUBLING * shift + 1) << shift) - 1
