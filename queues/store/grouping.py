"""Grouping: which of many numbers are the same, and where."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]


def members_by_number(values: Int64s) -> list[Places]:
    """Where each value occurs, ascending; the values in order.

    Example: ``[7, 3, 7]`` gives ``[[1], [0, 2]]``.
    """
    if not len(values):
        return []
    if (values == values[0]).all():
        return [np.arange(len(values))]
    order = stable_order(values)
    ordered = values[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return [order[first:stop] for first, stop in pairwise([0, *cuts.tolist(), len(order)])]


def stable_order(values: Int64s) -> Places:
    """The stable sorting order, by two radix sorts of 16 bits when the values span 32 bits."""
    distance = values - values.min()
    span = int(distance.max())
    if span >= 1 << 32:
        return np.argsort(values, kind="stable")
    order = np.argsort(distance.astype(np.uint16), kind="stable")
    if span >= 1 << 16:
        upper = (distance >> 16).astype(np.uint16)[order]
        order = order[np.argsort(upper, kind="stable")]
    return order


def are_different(values: npt.NDArray[np.signedinteger]) -> bool:
    """Whether no value occurs twice."""
    ordered = np.sort(values)
    return bool((ordered[1:] != ordered[:-1]).all())
