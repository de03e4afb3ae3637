"""Scattered stretches of a buffer, many at once: read, written, checked.

A stretch is moved as one item of as many bytes, a tenth of the time that its bytes would take one
by one: a buffer is looked at as if an item began at each of its bytes, and indexed with places.

Example: ``rows_at(b"..abc.xyz", np.array([6, 2]), 3)`` is the matrix of ``xyz`` and ``abc``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from queues.store.crc import crc32
from queues.store.grouping import members_by_number
from queues.store.record import CRC_MASK

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

#: Stretches of one length are taken together where there are so many of each, on an average.
_ALIKE_MIN = 8
#: Bytes that are copied at once: they stay in a processor's cache.
_AT_ONCE_BYTES = 1 << 16


def numbers_at(buffer: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A number of the buffer for each byte at which one could begin: index it with places."""
    kind = np.dtype(dtype)
    count = max(0, len(buffer) - kind.itemsize + 1)
    return np.ndarray((count,), kind, buffer=buffer, strides=(1,))


def records_at(buffer: Any, dtype: npt.DTypeLike, at: Int64s) -> npt.NDArray[np.void]:
    """Copies of the records of several fields at these places."""
    kind = np.dtype(dtype)
    return numbers_at(buffer, np.dtype((np.void, kind.itemsize)))[at].view(kind)


def chosen_of(records: npt.NDArray[np.void], chosen: Any) -> npt.NDArray[np.void]:
    """``records[chosen]`` of records of several fields."""
    whole = records.view(np.dtype((np.void, records.dtype.itemsize)))
    found: npt.NDArray[np.void] = whole[chosen].view(records.dtype)
    return found


def rows_at(buffer: Any, at: Int64s, width: int) -> Octets:
    """Copies of the stretches of `width` bytes at these places, one a row."""
    found = numbers_at(buffer, np.dtype((np.void, width)))[at]
    return found.view(np.uint8).reshape(-1, width)


def put_rows(buffer: Any, at: Int64s, rows: npt.NDArray[Any]) -> None:
    """Write rows of octets, or records of some bytes, to these places; they must not overlap."""
    if not len(rows):
        return
    items = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    kind = np.dtype((np.void, items.shape[1]))
    numbers_at(buffer, kind)[at] = items.view(kind)[:, 0]


def crcs_of(buffer: Any, starts: Int64s, ends: Int64s) -> Int64s:
    """The CRCs, 31 bits as RocketMQ tells them, of the stretches from `starts` to before `ends`.

    What would lie behind the buffer's end counts as not there, as in a slice.
    """
    widths = ends - starts
    groups = members_by_number(widths)
    if len(groups) * _ALIKE_MIN > len(starts) or not _within(len(buffer), starts, ends):
        view = memoryview(buffer)
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        stretches = (view[start:end] for start, end in pairs)
        return np.fromiter(map(crc32, stretches), np.int64, len(starts)) & CRC_MASK
    crcs = np.zeros(len(starts), np.int64)
    for members in groups:
        width = int(widths[members[0]])
        alike = numbers_at(buffer, np.dtype((np.void, width)))
        step = 1 + _AT_ONCE_BYTES // width
        for first in range(0, len(members), step):
            some = members[first : first + step]
            crcs[some] = list(map(crc32, alike[starts[some]].tolist()))
    return crcs & CRC_MASK


def _within(size: int, starts: Int64s, ends: Int64s) -> bool:
    """Whether all stretches lie within the buffer, and none is empty."""
    if not len(starts):
        return False
    return bool(starts.min() >= 0 and ends.max() <= size and (ends > starts).all())
