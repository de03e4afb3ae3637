"""Walking a piece of the log: its whole records, tens of thousands at a time.

The places of records are found by following their sizes (`following`), and each tells magic and its
own log offset. What follows each other without a gap is the chain that the writer wrote; where the
chain breaks, `check_record` has the word, and what is no record is stepped over and counted. With
``verify="crc"`` the records are checked by their CRCs as well (`sums`); with ``"structure"`` magic,
own offset, lengths and the seal's place must be right, but flipped bits inside a record are not
noticed.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from analytics.log.extent import Piece, SegmentRemoved
from analytics.log.following import follow, look
from analytics.log.sums import hold_in_sums
from queues.store.batch import LEADING_BYTES
from queues.store.disk import Disk
from queues.store.inspection.log import find_next
from queues.store.record import (
    BODY_AT,
    CRC_PROPERTY_BYTES,
    MAGIC_V1,
    RecordState,
    check_record,
)
from queues.store.scattered import chosen_of, numbers_at, records_at
from queues.store.seals import SEAL, are_seals

Verify = Literal["crc", "structure"]
Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Records that are looked at together: enough to spread numpy's own costs.
BLOCK_RECORDS: Final = 8_192
#: Bytes in which records are followed at once: more, the longer nothing was broken.
SPAN_BYTES_MIN: Final = 1 << 16
SPAN_BYTES_MAX: Final = 32 << 20
#: Damaged places that are told one by one.
_TOLD_MAX: Final = 20

HEAD: Final = np.dtype(
    {
        "names": [
            "size", "magic", "queue_id", "queue_offset", "log_offset", "sys_flag", "born_ms",
            "store_ms", "reconsume", "body_length",
        ],
        "formats": [">u4", ">u4", ">i4", ">i8", ">i8", ">i4", ">i8", ">i8", ">i4", ">u4"],
        "offsets": [0, 4, 12, 20, 28, 36, 40, 56, 72, 84],
        "itemsize": BODY_AT,
    }
)  # fmt: skip
#: What is taken of the properties that begin every record of ours (see `leading`).
LEADING: Final = np.dtype(
    {
        "names": ["name", "due_5", "due_8", "letter", "kind"],
        "formats": ["<u8", "<u8", "<u8", "u1", "<u4"],
        "offsets": [0, 7, 12, 29, 59],
        "itemsize": 63,
    }
)
_HOSTS_V6: Final = 0x30


class Memory:
    """A mapped segment whose bytes can be taken as numbers at any place."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        self.octets: Octets = np.frombuffer(buffer, np.uint8)

    def numbers(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A number for each place at which one could begin: index it with places."""
        return numbers_at(self.view, dtype)

    def records(self, dtype: npt.DTypeLike, at: Int64s) -> npt.NDArray[np.void]:
        """Copies of the records of several fields at these places."""
        return records_at(self.view, dtype, at)


@dataclass(slots=True)
class Block:
    """Whole records in log order, one place in each column a record."""

    memory: Memory
    #: Log offset of the segment.
    base: int
    #: Where they begin in the segment, and where they end.
    ats: Int64s
    ends: Int64s
    #: All fixed fields; of records with IPv6 hosts only those before the born host hold.
    heads: npt.NDArray[np.void]
    #: Whether their parts lie where those of a V1 record with IPv4 hosts do.
    plain: Bools
    #: Of plain ones: where the length byte of the topic lies, and where the properties begin.
    topic_at: Int64s
    property_at: Int64s
    _roomy: Bools | None = None
    _leading: npt.NDArray[np.void] | None = None

    @property
    def roomy(self) -> Bools:
        """Which plain ones have room for the properties that begin every record of ours."""
        if self._roomy is None:
            self._roomy = self.plain & (self.property_at + LEADING_BYTES < self.ends)
        return self._roomy

    @property
    def leading(self) -> npt.NDArray[np.void]:
        """What begins the properties of the roomy ones; looked up once."""
        if self._leading is None:
            places = np.where(self.roomy, self.property_at, 0)
            self._leading = self.memory.records(LEADING, places)
        return self._leading

    def take(self, chosen: Any) -> "Block":
        """Some of the records."""
        return Block(
            self.memory, self.base, self.ats[chosen], self.ends[chosen],
            chosen_of(self.heads, chosen), self.plain[chosen],
            self.topic_at[chosen], self.property_at[chosen],
            None if self._roomy is None else self._roomy[chosen],
            None if self._leading is None else chosen_of(self._leading, chosen),
        )  # fmt: skip


@dataclass(slots=True)
class Seen:
    """What a walk came by."""

    records: int = 0
    #: Stretches without a whole record.
    damaged: int = 0
    #: The first of them: log offset and what is wrong.
    damages: list[tuple[int, str]] = field(default_factory=list)
    #: Log offset behind the last whole record, and its place and size.
    end: int = 0
    last_offset: int = -1
    last_size: int = 0
    last_store_ms: int = 0
    #: When the first whole record was stored; 0: there was none.
    first_store_ms: int = 0

    def damage(self, offset: int, reason: str) -> None:
        """Take down what is no whole record."""
        self.damaged += 1
        if len(self.damages) < _TOLD_MAX:
            self.damages.append((offset, reason))

    def note(self, block: Block) -> None:
        """Take down whole records."""
        if not self.records:
            self.first_store_ms = int(block.heads["store_ms"][0])
        self.records += len(block.ats)
        self.last_offset = block.base + int(block.ats[-1])
        self.last_size = int(block.heads["size"][-1])
        self.last_store_ms = int(block.heads["store_ms"][-1])
        self.end = self.last_offset + self.last_size


#: Which of a block's records the caller wants.
Wanted = Callable[[Block], Bools]


def walk(
    piece: Piece, seen: Seen, verify: Verify = "crc", wanted: Wanted | None = None
) -> Iterator[Block]:
    """Give the whole records that begin in the piece; raises `SegmentRemoved` if it is gone.

    With `wanted`, others are only counted, without a look at their seals; of a broker's log all are
    given.
    """
    try:
        mapped = Disk().map(piece.path, write=False)
    except FileNotFoundError:
        raise SegmentRemoved(piece.start) from None
    yield from _Walk(piece, Memory(mapped.memory), seen, verify, wanted).blocks()


class _Walk:
    """One walk over one piece."""

    def __init__(
        self, piece: Piece, memory: Memory, seen: Seen, verify: Verify, wanted: Wanted | None
    ) -> None:
        self._piece, self._memory, self._seen, self._verify = piece, memory, seen, verify
        self._wanted = wanted
        self._base = piece.base
        self._end = min(piece.end - piece.base, len(memory.octets))
        self._heads = memory.numbers(HEAD)

    def blocks(self) -> Iterator[Block]:
        at, span = self._piece.start - self._base, SPAN_BYTES_MIN
        while at < self._end:
            stop = min(self._end, at + span)
            places = follow(self._memory.octets, self._heads, at, stop, self._base)
            begun, is_broken = at, False
            for first in range(0, len(places), BLOCK_RECORDS):
                ats, heads, is_broken = self._looking(places[first : first + BLOCK_RECORDS])
                if len(ats):
                    yield from self._chain(ats, heads)
                    at = int(ats[-1]) + int(heads["size"][-1])
                if is_broken:
                    break
            if at == begun or (is_broken and at < self._end):
                at = yield from self._single(at)
            # Behind a broken place no more is followed than is likely to hold.
            span = min(2 * span, SPAN_BYTES_MAX) if at >= stop else SPAN_BYTES_MIN

    def _looking(self, places: Int64s) -> tuple[Int64s, npt.NDArray[np.void], bool]:
        """The places and heads up to the first that is no record; whether there was one."""
        heads = self._memory.records(HEAD, places)
        looks = look(places, heads, self._base) & (places + heads["size"] <= self._end)
        if looks.all():
            return places, heads, False
        count = int(np.argmin(looks))
        return places[:count], heads[:count], True

    def _chain(self, ats: Int64s, heads: npt.NDArray[np.void]) -> Iterator[Block]:
        """Give those of a chain that are whole and wanted."""
        block = self._block(ats, heads)
        wanted = self._wanted(block) if self._wanted and self._piece.ours else None
        sound = self._sound(block, wanted)
        if not sound.all():
            for number in np.flatnonzero(~sound).tolist():
                at, end = int(ats[number]), int(block.ends[number])
                sealed = self._piece.ours
                found = check_record(self._memory.view, at, end, self._base + at, sealed=sealed)
                sound[number] = found.state is RecordState.WHOLE
                if not sound[number]:
                    self._seen.damage(self._base + at, found.reason or "no record")
            block = block.take(sound)
            wanted = None if wanted is None else wanted[sound]
        if len(block.ats):
            self._seen.note(block)
            yield block if wanted is None else block.take(wanted)

    def _block(self, ats: Int64s, heads: npt.NDArray[np.void]) -> Block:
        """The places of the parts, as far as the lengths add up."""
        octets, last = self._memory.octets, len(self._memory.octets) - 1
        plain = (heads["magic"] == MAGIC_V1) & (heads["sys_flag"] & _HOSTS_V6 == 0)
        ends = ats + heads["size"]
        topic_at = ats + BODY_AT + heads["body_length"]
        plain &= topic_at + 3 <= ends
        property_at = topic_at + 3 + octets[np.minimum(topic_at, last)]
        plain &= property_at <= ends
        told = self._memory.numbers(">u2")[np.minimum(property_at, last) - 2]
        plain &= property_at + told == ends
        return Block(self._memory, self._base, ats, ends, heads, plain, topic_at, property_at)

    def _sound(self, block: Block, wanted: Bools | None) -> Bools:
        """Which records are beyond doubt: plain, and of those that are wanted the seal is right."""
        memory = self._memory
        sound = block.plain.copy()
        rows = np.flatnonzero(sound if wanted is None else sound & wanted)
        starts, covered = block.ats[rows], block.ends[rows] - CRC_PROPERTY_BYTES
        seals = memory.records(SEAL, covered)
        sound[rows] = sealed = are_seals(seals)
        if self._verify == "structure" and self._piece.ours:
            return sound
        if not sealed.all():
            rows, starts, covered = rows[sealed], starts[sealed], covered[sealed]
            seals = chosen_of(seals, sealed)
        sound[rows] = hold_in_sums(seals, memory.view, starts, covered)
        return sound

    def _single(self, at: int) -> Generator[Block, None, int]:
        """What is not part of a chain; return where the walk goes on."""
        piece, memory = self._piece, self._memory
        found = check_record(memory.view, at, self._end, self._base + at, sealed=piece.ours)
        if found.state is RecordState.WHOLE:
            yield from self._chain(np.array([at]), self._memory.records(HEAD, np.array([at])))
            return at + found.size
        if found.state is RecordState.FILLER and at + found.size == self._end:
            return self._end
        following = find_next(memory.buffer, at + 1, self._end, self._base)
        if following is None and piece.is_tail:
            return self._end  # The end of a log that is being written, or was when it was killed.
        self._seen.damage(self._base + at, found.reason or "nothing was written here")
        return self._end if following is None else following
