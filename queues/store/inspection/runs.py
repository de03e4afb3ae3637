"""Runs of whole records, checked many at a time: the quick way over a log.

A run is followed by the records' lengths; then heads, lengths, own offsets and CRCs of all of it
are compared at once. It takes only what is beyond doubt: V1 records with IPv4 hosts, none with NUL
in its properties. It ends before the first record of which it is not sure, and ``check_record`` has
the word on that one.
"""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from queues.store.inspection.facts import facts_of
from queues.store.record import (
    BODY_AT,
    CRC_PROPERTY_BYTES,
    FIXED_BYTES,
    MAGIC_V1,
    SYS_FLAG_BORN_HOST_V6,
    SYS_FLAG_STORE_HOST_V6,
)
from queues.store.scattered import crcs_of, records_at
from queues.store.seals import SEAL, are_named, are_seals, hold

#: Records in a run: their heads are some hundred kilobytes.
RUN_RECORDS: Final = 4096
#: The body, topic and properties of a run together, at most.
RUN_BYTES: Final = 8 * 1024 * 1024

_SIZE_AND_MAGIC: Final = struct.Struct(">II")
_HEAD: Final = np.dtype(
    {
        "names": ["body_crc", "queue_id", "queue_offset", "log_offset", "sys_flag", "body_length"],
        "formats": [">u4", ">i4", ">i8", ">i8", ">i4", ">u4"],
        "offsets": [8, 12, 20, 28, 36, 84],
        "itemsize": BODY_AT,
    }
)
_V6: Final = SYS_FLAG_BORN_HOST_V6 | SYS_FLAG_STORE_HOST_V6

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Run:
    """Whole records that follow each other, one place in each list a record."""

    #: The bytes of their segment.
    view: memoryview
    #: Log offset of the segment.
    base: int
    #: Where they begin in ``view``.
    ats: list[int]
    sizes: list[int]
    queue_ids: list[int]
    queue_offsets: list[int]
    sys_flags: list[int]
    #: As stored.
    topics: list[bytes]
    #: As stored.
    properties: list[bytes]

    @property
    def end(self) -> int:
        """Where the last record ends in ``view``."""
        return self.ats[-1] + self.sizes[-1]


def single_run(view: memoryview, base: int, at: int, size: int) -> Run:
    """Return a run of the one record at ``at``, which ``check_record`` found whole."""
    facts = facts_of(view, at, size)
    return Run(
        view,
        base,
        [at],
        [size],
        [facts.queue_id],
        [facts.queue_offset],
        [facts.sys_flag],
        [facts.topic],
        [facts.properties],
    )


def check_run(view: memoryview, base: int, at: int, limit: int, *, sealed: bool) -> Run | None:
    """Return the whole records from ``at`` on, as far as they are beyond doubt; None if none is."""
    ats, sizes = _follow(view, at, limit)
    if not ats:
        return None
    octets = np.frombuffer(view, np.uint8)
    starts, lengths = np.array(ats, np.int64), np.array(sizes, np.int64)
    heads = records_at(view, _HEAD, starts)
    topic_at = starts + BODY_AT + heads["body_length"]
    ends = starts + lengths
    sure = (heads["log_offset"] == base + starts) & (heads["sys_flag"] & _V6 == 0)
    sure &= topic_at + 3 <= ends
    property_at = np.where(sure, topic_at + 3 + octets[np.where(sure, topic_at, 0)], 0)
    sure &= property_at <= ends
    length_at = np.where(sure, property_at, 2)
    told = octets[length_at - 2].astype(np.int64) * 256 + octets[length_at - 1]
    sure &= property_at + told == ends
    count = _leading(sure)
    if count:
        whole = _crcs_hold(view, starts[:count], topic_at, heads, ends, sealed=sealed)
        count = _leading(whole)
    if not count:
        return None
    topics, properties = [], []
    columns = (topic_at[:count].tolist(), property_at[:count].tolist(), ends[:count].tolist())
    for topic, start, end in zip(*columns, strict=True):
        text = view[start:end].tobytes()
        if b"\0" in text:
            break
        topics.append(view[topic + 1 : start - 2].tobytes())
        properties.append(text)
    count = len(topics)
    if not count:
        return None
    return Run(
        view,
        base,
        ats[:count],
        sizes[:count],
        heads["queue_id"][:count].tolist(),
        heads["queue_offset"][:count].tolist(),
        heads["sys_flag"][:count].tolist(),
        topics,
        properties,
    )


def _follow(view: memoryview, at: int, limit: int) -> tuple[list[int], list[int]]:
    """Return places and lengths of what looks like V1 records, by their lengths alone."""
    ats: list[int] = []
    sizes: list[int] = []
    stop = min(limit, at + RUN_BYTES)
    while len(ats) < RUN_RECORDS and at + FIXED_BYTES <= stop:
        size, magic = _SIZE_AND_MAGIC.unpack_from(view, at)
        if magic != MAGIC_V1 or not FIXED_BYTES <= size <= limit - at:
            break
        ats.append(at)
        sizes.append(size)
        at += size
    return ats, sizes


def _crcs_hold(
    view: memoryview,
    starts: Int64s,
    topic_at: Int64s,
    heads: npt.NDArray[np.void],
    ends: Int64s,
    *,
    sealed: bool,
) -> Bools:
    count = len(starts)
    crcs = crcs_of(view, starts + BODY_AT, topic_at[:count])
    holds: Bools = crcs == heads["body_crc"][:count]
    seals = records_at(view, SEAL, ends[:count] - CRC_PROPERTY_BYTES)
    has_seal = are_named(seals)
    if has_seal.any():
        covered = ends[:count] - CRC_PROPERTY_BYTES
        holds &= ~has_seal | are_seals(seals) & hold(seals, view, starts, covered)
    return holds & has_seal if sealed else holds


def _leading(flags: Bools) -> int:
    """Return how many hold before the first that does not."""
    return len(flags) if flags.all() else int(np.argmin(flags))
