"""The extent of a log: which of its bytes may be read, and in which pieces.

Of our store that is from the first segment up to ``flushed``, the open segment included; of a
broker's it is every byte of its segments, and the walk finds where the records end. Nothing is
locked and nothing is changed. A piece lies in one segment and begins where a record begins, so
pieces are read side by side and none is read twice.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from queues.store.control import Control, Word
from queues.store.disk import Disk
from queues.store.inspection.layout import Segment, find_layout
from queues.store.inspection.log import find_next
from queues.store.record import BODY_AT, FILLER_BYTES, MAGIC_V1, STORE_MS_AT

#: A segment is not cut into pieces smaller than this.
PIECE_BYTES_MIN: Final = 32 << 20


class SegmentRemoved(Exception):
    """A segment of the range was removed (retention) before it was read."""

    def __init__(self, offset: int) -> None:
        super().__init__(
            f"The log's segment at offset {offset} was removed before it was read; "
            "nothing is returned rather than less than was asked for."
        )
        self.offset = offset

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.offset,)


class Piece(NamedTuple):
    """A stretch of one segment; what begins in it belongs to it."""

    path: Path
    #: Log offset of the segment.
    base: int
    #: Log offsets; a record begins at `start`.
    start: int
    end: int
    #: Whether this store wrote it, and not a broker.
    ours: bool
    #: Whether nothing of the log is known to follow, so that its end may be unfinished.
    is_tail: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """What can be read of a log now."""

    root: Path
    #: Whether this store wrote it, and not a broker.
    ours: bool
    #: The store's number; 0 for a broker's.
    store_id: int
    #: The log offset of the first byte, and of the one behind the last.
    start: int
    end: int
    segments: tuple[Segment, ...]

    @property
    def segment_ends(self) -> list[int]:
        """Log offsets at which a segment ends that another one follows."""
        return [segment.base + segment.size for segment in self.segments[:-1]]

    def segments_of(self, start: int, end: int) -> list[Segment]:
        """The segments that hold [start, end); raises `SegmentRemoved` if one is missing."""
        found = [one for one in self.segments if one.base < end and one.base + one.size > start]
        position = start
        for segment in found:
            if segment.base > position:
                raise SegmentRemoved(position)
            position = segment.base + segment.size
        if position < end:
            raise SegmentRemoved(position)
        return found


def find_extent(root: Path) -> Extent:
    """What can be read now; raises `NotAStore` for another directory."""
    disk = Disk()
    layout = find_layout(disk, root)
    segments = tuple(one for one in layout.segments if one.size)
    while not layout.ours and len(segments) > 1 and _is_blank(disk, segments[-1]):
        segments = segments[:-1]  # A broker prepares segments ahead.
    start = segments[0].base if segments else 0
    end = segments[-1].base + segments[-1].size if segments else start
    store_id = 0
    if layout.ours:
        words = Control.read(disk, root / "postdate" / "control").words
        store_id, end = words[Word.STORE_ID], max(start, min(words[Word.FLUSHED], end))
    return Extent(root, layout.ours, store_id, start, end, segments)


def _is_blank(disk: Disk, segment: Segment) -> bool:
    try:
        file = disk.open(segment.path, write=False)
    except FileNotFoundError:
        return True
    try:
        return not any(file.pread(FILLER_BYTES, 0))
    finally:
        file.close()


def pieces_of(extent: Extent, start: int, end: int, *, count: int = 1) -> list[Piece]:
    """Cut [start, end), whose `start` is a record's, into pieces: `count` or more if that is wise.

    Raises `SegmentRemoved` when the log no longer has all of it.
    """
    if start >= end:
        return []
    wanted = max(PIECE_BYTES_MIN, (end - start) // max(1, count) + 1)
    pieces: list[Piece] = []
    for segment in extent.segments_of(start, end):
        first, stop = max(start, segment.base), min(end, segment.base + segment.size)
        pieces += _cut(extent, segment, first, stop, wanted)
    return pieces


def _cut(extent: Extent, segment: Segment, start: int, end: int, wanted: int) -> list[Piece]:
    """Cut at records, found by their own offsets."""
    bounds = [start]
    if end - start > wanted:
        try:
            mapped = Disk().map(segment.path, write=False)
        except FileNotFoundError:
            raise SegmentRemoved(start) from None
        try:
            for offset in range(start + wanted, end - PIECE_BYTES_MIN // 2, wanted):
                at = find_next(
                    mapped.memory, offset - segment.base, end - segment.base, segment.base
                )
                if at is not None and segment.base + at > bounds[-1]:
                    bounds.append(segment.base + at)
        finally:
            mapped.close()
    stops = [*bounds[1:], end]
    return [
        Piece(segment.path, segment.base, first, stop, extent.ours, stop == extent.end)
        for first, stop in zip(bounds, stops, strict=True)
    ]


def first_store_ms(segment: Segment) -> int | None:
    """When a segment's first record was stored; None if none begins there or its hosts are IPv6."""
    try:
        file = Disk().open(segment.path, write=False)
    except FileNotFoundError:
        return None
    try:
        head = file.pread(BODY_AT, 0)
    finally:
        file.close()
    if int.from_bytes(head[4:8], "big") != MAGIC_V1 or int.from_bytes(head[36:40], "big") & 0x30:
        return None
    return int.from_bytes(head[STORE_MS_AT : STORE_MS_AT + 8], "big")
