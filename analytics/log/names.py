"""Numbers for names: topics as they stand in the log's bytes, many at a time.

A name is known by a 64-bit hash of all its bytes under keys drawn when the process starts; names
that were met before cost a look into a slot, whatever their length.
"""

import secrets
from typing import Final

import numpy as np
import numpy.typing as npt

from analytics.log.walk import Int64s, Memory
from queues.store.names import (
    DEAD_LETTER_PREFIX,
    JOURNAL_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    is_system_topic,
)

#: What a topic is for.
USER, RETRY, DEAD, LEVELS, TIMER, JOURNAL, SYSTEM = range(7)
_EXACT: Final = {SCHEDULE_TOPIC: LEVELS, TIMER_TOPIC: TIMER, JOURNAL_TOPIC: JOURNAL}

_WORD_BYTES: Final = 8
#: One for each word of the longest topic, and one more.
_KEYS: Final = 1 + 256 // _WORD_BYTES
#: A hash's highest bits are its slot.
_SLOTS: Final = 1 << 12
_SLOT_SHIFT: Final = np.uint64(52)
_MASKS: Final = np.array([(1 << 8 * kept) - 1 for kept in range(_WORD_BYTES + 1)], np.uint64)


def purpose_of(topic: str) -> int:
    """What a topic is for."""
    if topic in _EXACT:
        return _EXACT[topic]
    if topic.startswith(RETRY_PREFIX):
        return RETRY
    if topic.startswith(DEAD_LETTER_PREFIX):
        return DEAD
    return SYSTEM if is_system_topic(topic) else USER


class Names:
    """The names that were met, numbered in that order."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._purposes: list[int] = []
        self._numbers: dict[bytes, int] = {}
        #: Numbers by hash; those of names met lately also in slots.
        self._hashed: dict[int, int] = {}
        # A free slot holds a hash that belongs to another slot.
        self._slot_hashes = np.full(_SLOTS, np.uint64(1) << np.uint64(63), np.uint64)
        self._slot_hashes[_SLOTS // 2] = 0
        self._slot_numbers = np.zeros(_SLOTS, np.int64)
        self._keys = [np.uint64(secrets.randbits(64) | 1) for _ in range(_KEYS)]

    @property
    def purposes(self) -> npt.NDArray[np.int64]:
        """What each name is for, by its number."""
        return np.array(self._purposes, np.int64)

    def number(self, text: str) -> int:
        """The number of one name."""
        return self._number(text.encode())

    def _number(self, raw: bytes) -> int:
        found = self._numbers.get(raw)
        if found is None:
            found = self._numbers[raw] = len(self.texts)
            text = raw.decode("utf-8", "replace")
            self.texts.append(text)
            self._purposes.append(purpose_of(text))
        return found

    def numbers(self, memory: Memory, at: Int64s, lengths: Int64s) -> Int64s:
        """The numbers of names that stand at these places."""
        hashes = self._hash(memory, at, lengths)
        slots = (hashes >> _SLOT_SHIFT).astype(np.int64)
        numbers = self._slot_numbers[slots]
        others = np.flatnonzero(self._slot_hashes[slots] != hashes)
        if len(others):
            numbers[others] = self._searched(memory, at[others], lengths[others], hashes[others])
        return numbers

    def _searched(
        self, memory: Memory, at: Int64s, lengths: Int64s, hashes: npt.NDArray[np.uint64]
    ) -> Int64s:
        """The numbers of names without a slot: new ones, and those that others displaced."""
        met, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        found = np.zeros(len(met), np.int64)
        for place, (hashed, first) in enumerate(zip(met.tolist(), firsts.tolist(), strict=True)):
            number = self._hashed.get(hashed)
            if number is None:
                start = int(at[first])
                raw = memory.view[start : start + int(lengths[first])].tobytes()
                number = self._hashed[hashed] = self._number(raw)
                slot = hashed >> int(_SLOT_SHIFT)
                self._slot_hashes[slot], self._slot_numbers[slot] = hashed, number
            found[place] = number
        return found[inverse]

    def _hash(self, memory: Memory, at: Int64s, lengths: Int64s) -> npt.NDArray[np.uint64]:
        """The sum of what each word of a name becomes under its own key; no word adds nothing."""
        words = memory.numbers("<u8")
        hashes = lengths.astype(np.uint64) * self._keys[0]
        for start in range(0, int(lengths.max(initial=0)), _WORD_BYTES):
            # At least a record's seal follows every name, so a word never leaves the segment.
            word = words[at + start] & _MASKS[np.clip(lengths - start, 0, _WORD_BYTES)]
            word *= self._keys[1 + start // _WORD_BYTES % (_KEYS - 1)]
            word ^= word >> np.uint64(32)
            hashes += word * self._keys[0]
        return hashes
