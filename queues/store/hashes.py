"""Java's string hash and what RocketMQ derives from it: tag codes and index key hashes.

``hash(s) = s[0]*31^(n-1) + s[1]*31^(n-2) + ... + s[n-1]`` over the UTF-16 units of the text, in
signed 32-bit arithmetic. ConsumeQueue units carry the hash of the tag widened to 64 bits; the index
files by the absolute value of the hash of ``topic#key``, where the one value without a positive
counterpart (-2^31) counts as 0.

Example: ``tags_code("TagA") == 2598919``; ``index_hash("Topic", "key") == 1904065301``.
"""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

_INT32_MIN = -(2**31)

#: Tags are few and come back with every message.
_TAGS_REMEMBERED = 4096

#: The smallest power tables: enough for a hold of the append lock.
_POWERS_MIN = 65_535


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode`` of the text, a signed 32-bit number."""
    if text.isascii():
        units: bytes | memoryview = text.encode("ascii")
    else:
        units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


@lru_cache(maxsize=_TAGS_REMEMBERED)
def tags_code(tag: str | None) -> int:
    """Return the code that a ConsumeQueue unit carries for the tag; 0 for no tag."""
    return java_hash(tag) if tag else 0


def index_hash(topic: str, key: str) -> int:
    """Return the key hash of an index entry for one key of a topic."""
    value = java_hash(f"{topic}#{key}")
    return 0 if value == _INT32_MIN else abs(value)


def java_hashes(texts: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return ``java_hash`` of every text, computed together."""
    units, lengths = _units_of(texts)
    hashes = np.zeros(len(lengths), dtype=np.uint32)
    if units.size == 0:
        return hashes.view(np.int32)
    powers, inverses = _powers(units.size)
    units *= inverses[: units.size]
    ends = np.cumsum(lengths)
    # reduceat gives an empty range its first element, so empty texts are left at their zero.
    filled = lengths > 0
    ends = ends[filled]
    hashes[filled] = np.add.reduceat(units, ends - lengths[filled], dtype=np.uint32)
    hashes[filled] *= powers[ends - 1]
    return hashes.view(np.int32)


def index_hashes(topics_and_keys: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the index key hash of every ``topic#key`` text, computed together."""
    hashes = java_hashes(topics_and_keys)
    hashes[hashes == _INT32_MIN] = 0
    return np.abs(hashes, out=hashes)


def _units_of(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the UTF-16 units of all texts in one row, and each text's count of units."""
    joined = "".join(texts)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    if joined.isascii():
        return np.frombuffer(joined.encode("ascii"), dtype=np.uint8).astype(np.uint32), lengths
    units = np.frombuffer(joined.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    if units.size != len(joined):  # A character outside the basic plane takes two units.
        lengths += np.fromiter(map(_astral_count, texts), dtype=np.int64, count=len(texts))
    return units.astype(np.uint32), lengths


def _astral_count(text: str) -> int:
    return 0 if text.isascii() else sum(character > "\uffff" for character in text)


def _powers(count: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return at least ``count`` powers of 31 and of its inverse, modulo 2^32.

    With the unit at place i of the row weighted by 31^-i, the sum over a text that ends before
    place e only lacks the factor 31^(e-1): one multiplication a unit, whatever the lengths.
    """
    bits = max(count, _POWERS_MIN).bit_length()
    return _power_table(31, bits), _power_table(pow(31, -1, 1 << 32), bits)


@cache
def _power_table(base: int, bits: int) -> npt.NDArray[np.uint32]:
    table = np.full(1 << bits, base, dtype=np.uint32)
    table[0] = 1
    return np.multiply.accumulate(table, dtype=np.uint32)
