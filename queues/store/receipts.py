"""Receipts: what a consumer shows to settle a message that was leased to it.

A receipt is URL-safe base64 of the following bytes, opaque to its holder. It needs no table to be
checked, so that every process takes it, after a restart too.

=====  =========  =============================================================================
byte   field      meaning
=====  =========  =============================================================================
0      code       16 bytes: the authentication code
16     version    2 bytes, native as all below: 1
18     bout       2 bytes: attempt and turn
20     queue_id   4 bytes
24     epoch      8 bytes: the ledger's; another one after a reset
32     until_ms   8 bytes: the end of the lease
40     topic      UTF-8, padded with NUL to a multiple of 3
-8     offset     the last 8 bytes
=====  =========  =============================================================================

The code is cut from a SHAKE-256 of a key of the group's own and of all that the receipt says but
the last four bits of the offset: 256 bytes, of which those bits choose 16. So sixteen neighbours,
as a batch has them, cost one hash; each code is still a pseudo-random function of the whole.
"""

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, compress, repeat
from typing import NamedTuple, TypeVar, cast

VERSION = 1
_CODE_BYTES, _OFFSET_BYTES = 16, 8
#: What neighbours that were leased together have in common, with the topic after it.
_COMMON = struct.Struct("=HHIqq")
_BLOCK = struct.Struct("=q")
#: A receipt without its topic.
_BARE_BYTES = _CODE_BYTES + _COMMON.size + _OFFSET_BYTES
#: Offsets that share a hash: 16.
_BLOCK_BITS = 4
_IN_BLOCK = 15
#: Blocks whose codes a process remembers, 1 KB each.
_BLOCKS_KEPT = 1024
_PADDING = b"\0"
#: URL-safe characters to base64's own; those two themselves become something that it refuses.
_FROM_URL_SAFE = bytes.maketrans(b"-_+/", b"+/**")


@dataclass(frozen=True, slots=True)
class Shown:
    """Genuine receipts of one queue, one column a field."""

    topic: str
    queue_id: int
    #: Where each stands in the request.
    positions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    #: Attempt and turn; see `ledgerentries`.
    bouts: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    untils_ms: list[int] = field(default_factory=list)


class Receipts:
    """Makes and checks receipts under one secret, column by column: there are many of them."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hashlib.blake2b(secret, person=b"postdate-receipt").digest()

    def seal(
        self,
        group: str,
        topic: str,
        queue_id: int,
        *,
        epoch: int,
        offsets: Sequence[int],
        bouts: Sequence[int],
        until_ms: int,
    ) -> list[str]:
        """The receipts of messages of one queue that were leased together."""
        key, name = _group_key(self._secret, group), topic.encode()
        padded = name + _PADDING * (-len(name) % 3)
        row = _row_of(_COMMON.size + len(padded))
        rows = [b""] * len(offsets)
        for bout, places in _alike(bouts):
            common = _COMMON.pack(VERSION, bout, queue_id, epoch, until_ms) + padded
            mine = [offsets[place] for place in places]
            made = map(row.pack, _codes(key, common, mine), repeat(common), mine)
            for place, one in zip(places, made, strict=True):
                rows[place] = one
        text = base64.urlsafe_b64encode(b"".join(rows)).decode()
        size = row.size // 3 * 4
        return [text[at : at + size] for at in range(0, len(text), size)]

    def open(self, group: str, receipts: Sequence[str]) -> list[Shown]:
        """The genuine ones among receipts that `group` shows, by queue; others are left out."""
        key, same = _group_key(self._secret, group), hmac.compare_digest
        genuine: list[_Alike] = []
        for positions, rows in _decoded(receipts):
            shown, commons, named = zip(*rows, strict=True)
            for common, places in _alike(commons):
                given = [shown[place] for place in places]
                offsets = [named[place] for place in places]
                numbers = [positions[place] for place in places]
                codes = _codes(key, common, offsets)
                if not same(b"".join(given), b"".join(codes)):
                    known = list(map(same, given, codes))
                    numbers = list(compress(numbers, known))
                    offsets = list(compress(offsets, known))
                if offsets:
                    genuine.append(_Alike(common, numbers, offsets))
        return _by_queue(genuine)


class _Alike(NamedTuple):
    """Genuine receipts that differ in nothing but the offset."""

    common: bytes
    #: Where each stands in the request.
    positions: list[int]
    offsets: list[int]


_Value = TypeVar("_Value", int, bytes)


def _alike(values: Sequence[_Value]) -> Iterator[tuple[_Value, Sequence[int]]]:
    """Each distinct value, with its places."""
    if values.count(values[0]) == len(values):
        yield values[0], range(len(values))
        return
    places: dict[_Value, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    yield from places.items()


def _codes(key: bytes, common: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The authentication codes of receipts that differ in nothing but the offset."""
    first, last = offsets[0], offsets[-1]
    if last - first == len(offsets) - 1 and list(offsets) == list(range(first, last + 1)):
        numbers = range(first >> _BLOCK_BITS, (last >> _BLOCK_BITS) + 1)
        codes = list(chain.from_iterable(_block(key, common, number) for number in numbers))
        begin = first & _IN_BLOCK
        return codes[begin : begin + len(offsets)]
    return _codes_apart(key, common, offsets)


def _codes_apart(key: bytes, common: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The same of offsets that do not follow each other."""
    numbers = {offset >> _BLOCK_BITS for offset in offsets}
    blocks = {number: _block(key, common, number) for number in numbers}
    return [blocks[offset >> _BLOCK_BITS][offset & _IN_BLOCK] for offset in offsets]


@lru_cache(maxsize=_BLOCKS_KEPT)
def _block(key: bytes, common: bytes, number: int) -> list[bytes]:
    """The authentication codes of a block of neighbours; most are shown where they were made."""
    stream = hashlib.shake_256(key + common + _BLOCK.pack(number))
    codes = stream.digest(_CODE_BYTES << _BLOCK_BITS)
    return [codes[at : at + _CODE_BYTES] for at in range(0, len(codes), _CODE_BYTES)]


def _by_queue(genuine: Iterable[_Alike]) -> list[Shown]:
    """Put together what is of one queue."""
    queues: dict[tuple[str, int], Shown] = {}
    for common, positions, offsets in genuine:
        version, bout, queue_id, epoch, until_ms = _COMMON.unpack_from(common)
        if version != VERSION:
            continue
        topic = common[_COMMON.size :].rstrip(_PADDING).decode()
        shown = queues.setdefault((topic, queue_id), Shown(topic, queue_id))
        shown.positions.extend(positions)
        shown.offsets.extend(offsets)
        shown.bouts.extend([bout] * len(offsets))
        shown.epochs.extend([epoch] * len(offsets))
        shown.untils_ms.extend([until_ms] * len(offsets))
    return list(queues.values())


def _decoded(
    receipts: Sequence[str],
) -> Iterator[tuple[Sequence[int], Iterator[tuple[bytes, bytes, int]]]]:
    """Positions and parts of what may be receipts; those of one length together."""
    if not receipts:
        return
    if len(set(map(len, receipts))) == 1:
        rows = _rows(receipts)
        if rows is not None:
            yield range(len(receipts)), rows
            return
    for position, receipt in enumerate(receipts):
        rows = _rows([receipt])
        if rows is not None:
            yield (position,), rows


def _rows(receipts: Sequence[str]) -> Iterator[tuple[bytes, bytes, int]] | None:
    """The parts of receipts of one length; None if one of them cannot be a receipt."""
    size = len(receipts[0])
    if size % 4 or size // 4 * 3 <= _BARE_BYTES:
        return None
    try:
        text = "".join(receipts).encode("ascii").translate(_FROM_URL_SAFE)
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    if len(data) * 4 != len(text) * 3:
        return None  # There is padding in it: it is shorter than it says.
    row = _row_of(size // 4 * 3 - _CODE_BYTES - _OFFSET_BYTES)
    return cast("Iterator[tuple[bytes, bytes, int]]", row.iter_unpack(data))


@lru_cache(maxsize=128)
def _row_of(common_bytes: int) -> struct.Struct:
    """The parts of a receipt: code, what is common to neighbours, offset."""
    return struct.Struct(f"={_CODE_BYTES}s{common_bytes}sq")


@lru_cache(maxsize=1024)
def _group_key(secret: bytes, group: str) -> bytes:
    return hashlib.blake2b(group.encode(), key=secret, digest_size=32).digest()
