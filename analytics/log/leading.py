"""What records of ours tell of themselves at fixed places: letter, due time, kind, level.

====  ==================  ========================================================
byte  of the properties   value
====  ==================  ========================================================
7     ``PD_DUE``          13 digits
29    ``PD_FROM``         a letter, then at 30 the log offset that it continues
59    ``PD_KIND``         ``I``, ``L`` or ``T``, then at 60 the level, 3 digits
75    ``PD_VERSION``      6 digits
91    ``UNIQ_KEY``        32 hexadecimal digits
====  ==================  ========================================================
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analytics.log.names import Names
from analytics.log.walk import Block, Bools, Int64s
from queues.store.batch import ID_AT, ID_BYTES, LEADING_BYTES, VERSION_AT
from queues.store.digits import eight_digits

_NAME: Final = np.uint64(int.from_bytes(b"PD_DUE\x01", "little"))
_NAME_MASK: Final = np.uint64((1 << 56) - 1)
#: Of a kind and its level, the kind.
_LETTER: Final = np.uint32(255)
#: Moves the first five of eight digits to the end; what comes before them counts as zeros.
_THREE_DIGITS: Final = np.uint64(24)
_ZERO: Final = ord("0")

#: Properties that name a topic: of a holding record, and of what a group tries again.
_REAL, _ORIGIN = b"REAL_TOPIC\x01", b"RETRY_TOPIC\x01"
#: Distances from a record's end at which the name was found; more kinds of tails are rare.
_PLACES_MAX: Final = 48


@dataclass(slots=True)
class Leading:
    """The leading properties of records of ours, one place in each column a record."""

    #: ASCII codes.
    letter: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    level: Int64s
    #: Due time, ms.
    due_ms: Int64s


def is_ours(block: Block) -> Bools:
    """Which records begin their properties as those of this store do."""
    found: Bools = block.roomy & (block.leading["name"] & _NAME_MASK == _NAME)
    return found


def may_deliver(block: Block) -> Bools:
    """Which records are hand-overs or immediate messages, as two letters tell, or not of ours."""
    letters, kinds = block.leading["letter"], block.leading["kind"] & _LETTER
    found: Bools = (letters == ord("H")) | ((letters == ord("N")) & (kinds == ord("I")))
    return found | ~is_ours(block)


def leading_of(block: Block) -> Leading:
    """The leading properties of records that are all of ours."""
    rows = block.leading
    first_five = eight_digits(rows["due_5"] << _THREE_DIGITS)
    kind = rows["kind"]  # Its letter in the lowest byte, then the level's digits.
    hundreds, tens, ones = ((kind >> shift) & 15 for shift in (8, 16, 24))
    return Leading(
        letter=rows["letter"],
        kind=kind.astype(np.uint8),
        level=(100 * hundreds + 10 * tens + ones).astype(np.int64),
        due_ms=first_five * 10**8 + eight_digits(rows["due_8"]),
    )


def versions_of(block: Block) -> Int64s:
    """How often each record's message had been moved, from 1."""
    digits = block.memory.numbers("V6")[block.property_at + VERSION_AT].view(np.uint8)
    return (digits.reshape(-1, 6).astype(np.int64) - _ZERO) @ (10 ** np.arange(5, -1, -1))


def ids_of(block: Block) -> npt.NDArray[np.bytes_]:
    """The messages' ids."""
    return block.memory.numbers(f"V{ID_BYTES}")[block.property_at + ID_AT].view(f"S{ID_BYTES}")


def topics_of(block: Block, names: Names) -> Int64s:
    """The numbers of the topics that plain records lie in."""
    lengths = block.memory.octets[block.topic_at].astype(np.int64)
    return names.numbers(block.memory, block.topic_at + 1, lengths)


def real_topics_of(block: Block, names: Names) -> Int64s:
    """The numbers of the topics that holding records are for; -1 for one that does not say."""
    return _named_topics(block, names, _REAL)


def origins_of(block: Block, names: Names) -> Int64s:
    """The numbers of the topics that retries were sent to first; -1 for one that does not say."""
    return _named_topics(block, names, _ORIGIN)


def _named_topics(block: Block, names: Names, named: bytes) -> Int64s:
    """The numbers of the topics that a property names.

    The name stands at one of few distances from a record's end, since what follows it is alike:
    each distance is learnt from one record and tried on all others at once.
    """
    found = np.full(len(block.ats), -1, np.int64)
    named_end = np.uint64(int.from_bytes(named[-8:], "little"))
    left = np.arange(len(block.ats))
    ends, longs, octets = block.ends, block.memory.numbers("<u8"), block.memory.octets
    for _ in range(_PLACES_MAX):
        if not len(left):
            return found
        place = _find_named(block, int(left[0]), named)
        if place is None:
            left = left[1:]
            continue
        distance, length = place
        at = ends[left] - distance
        alike = at - len(named) >= block.property_at[left] + LEADING_BYTES
        at = np.where(alike, at, ends[left] - 8)
        alike &= longs[at - 8] == named_end
        # The name ends there, and not before: names hold no separators.
        alike &= octets[at + length] == 2  # noqa: PLR2004 (the separator)
        alike[0] = True
        numbers = names.numbers(block.memory, at[alike], np.full(int(alike.sum()), length))
        met, places = np.unique(numbers, return_inverse=True)
        clean = np.array(["\x02" not in names.texts[one] for one in met.tolist()])[places]
        found[left[alike]] = np.where(clean, numbers, -1)
        alike[alike] = clean
        left = left[~alike]
    for number in left.tolist():
        place = _find_named(block, number, named)
        if place is not None:
            start = int(ends[number]) - place[0]
            raw = block.memory.view[start : start + place[1]].tobytes()
            found[number] = names.number(raw.decode("utf-8", "replace"))
    return found


def _find_named(block: Block, number: int, named: bytes) -> tuple[int, int] | None:
    """The name's distance from the record's end, and its length."""
    end = int(block.ats[number] + block.heads["size"][number])
    start = int(block.property_at[number])
    text = block.memory.view[start:end].tobytes()
    at = text.rfind(b"\x02" + named)
    if at < 0:
        return None
    at += 1 + len(named)
    return end - start - at, text.index(b"\x02", at) - at
