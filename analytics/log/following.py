"""Following records by their sizes: where each of a stretch begins, many chains side by side.

A record tells its size, so the next one's place is known only when it was read. To follow a stretch
of a log without a step of Python for each record, it is cut into lanes: in each lane the first
place that looks like a record is searched for, and from there all lanes go on by one record at a
time, together. Where a lane ends exactly at the next one's first record the two are one chain,
which is what the writer wrote; at the first that does not, what is given ends.

Example: 32 MiB are 512 lanes; with records of 400 bytes all are followed in 170 steps.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from queues.store.record import BODY_AT, FIXED_BYTES, MAGIC_V1

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Heads: TypeAlias = npt.NDArray[Any]

#: A stretch has so many lanes at most, of so many bytes each at least.
LANES_MAX: Final = 512
LANE_BYTES: Final = 1 << 16
#: The first record of a lane is searched for in so many bytes.
_SEARCH_BYTES: Final = 1 << 10
#: With fewer records a lane, following them all one by one is no slower.
_LANES_MIN: Final = 16
#: What all magics begin with, and where they lie in a record.
_MAGIC: Final = (MAGIC_V1 >> 8).to_bytes(3, "big")
_MAGIC_AT: Final = 4
#: Further than any segment reaches.
_AWAY: Final = 1 << 62


def follow(octets: Octets, heads: Heads, start: int, stop: int, base: int) -> Int64s:
    """Places that follow each other by their sizes, from `start` on and before `stop`.

    `heads` has the head of each place (see `walk.HEAD`); `base` is the segment's log offset. What
    lies at the places is for the caller to judge (`look`): behind one that is no record, the
    places mean nothing.
    """
    stop = min(stop, len(heads), len(octets) - BODY_AT)
    if start >= stop:
        return np.zeros(0, np.int64)
    sizes = heads["size"]
    if stop - start < _LANES_MIN * LANE_BYTES:
        return _one_by_one(sizes, start, stop)
    return _side_by_side(sizes, _lanes(octets, heads["log_offset"], start, stop, base), stop)


def look(places: Int64s, heads: Heads, base: int) -> npt.NDArray[np.bool_]:
    """Whether these heads, of these places, look like a record's: magic, a size, its own place."""
    found: npt.NDArray[np.bool_] = heads["log_offset"] == places + base
    found &= heads["magic"] >> 8 == MAGIC_V1 >> 8
    found &= heads["size"] >= FIXED_BYTES
    return found


def _one_by_one(sizes: npt.NDArray[np.uint32], start: int, stop: int) -> Int64s:
    found: list[int] = []
    at = start
    while at < stop:
        found.append(at)
        size = int(sizes[at])
        if size < FIXED_BYTES:
            break
        at += size
    return np.array(found, np.int64)


def _lanes(
    octets: Octets, offsets: npt.NDArray[np.int64], start: int, stop: int, base: int
) -> Int64s:
    """The first record of each lane; a lane in which none was found is part of the one before."""
    lane_bytes = max(LANE_BYTES, -(-(stop - start) // LANES_MAX))
    places = [start]
    for first in range(start + lane_bytes, stop - _SEARCH_BYTES, lane_bytes):
        searched = octets.data[first : first + _SEARCH_BYTES].tobytes()
        at = searched.find(_MAGIC)
        while at >= 0:
            place = first + at - _MAGIC_AT
            if int(offsets[place]) == place + base:
                places.append(place)
                break
            at = searched.find(_MAGIC, at + 1)
    return np.array(places)


def _side_by_side(sizes: npt.NDArray[np.uint32], starts: Int64s, stop: int) -> Int64s:
    """All places of the lanes, up to the first lane that does not end where the next one begins."""
    limits = np.append(starts[1:], stop)
    at, steps = starts, []
    while True:
        inside = at < limits
        if not inside.any():
            break
        steps.append(at)
        size = sizes[np.where(inside, at, 0)].astype(np.int64)
        size[size < FIXED_BYTES] = _AWAY
        at = np.where(inside, at + size, at)
    apart = np.flatnonzero(at[:-1] != limits[:-1])
    count = int(apart[0]) + 1 if len(apart) else len(starts)
    table = np.array(steps)[:, :count].T
    within = table < limits[:count, None]
    # A lane that is done stands still at its limit or behind it.
    return np.ascontiguousarray(table)[within]
