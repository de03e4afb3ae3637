"""Numbers for names: topics as they stand in the log's bytes, many at a time.

A name is known by a 64-bit hash of all its bytes under keys drawn when the process starts; names
that were met before cost one search in a sorted array, whatever their length.
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
        self._hashes = np.zeros(0, np.uint64)
        self._known = np.zeros(0, np.int64)
        self._keys = [np.uint64(secrets.randbits(64) | 1) for _ in range(3)]

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
        while True:
            places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            missing = (
                np.flatnonzero(self._hashes[places] != hashes)
                if len(self._hashes)
                else np.arange(len(hashes))
            )
            if not len(missing):
                return self._known[places] if len(hashes) else np.zeros(0, np.int64)
            _, firsts = np.unique(hashes[missing], return_index=True)
            for place in missing[firsts].tolist():
                start = int(at[place])
                raw = memory.view[start : start + int(lengths[place])].tobytes()
                self._learn(hashes[place], self._number(raw))

    def _learn(self, hashed: np.uint64, number: int) -> None:
        place = int(np.searchsorted(self._hashes, hashed))
        self._hashes = np.insert(self._hashes, place, hashed)
        self._known = np.insert(self._known, place, number)

    def _hash(self, memory: Memory, at: Int64s, lengths: Int64s) -> npt.NDArray[np.uint64]:
        first, second, third = self._keys
        words = memory.numbers("<u8")
        hashes = lengths.astype(np.uint64) * first
        longest = int(lengths.max(initial=0))
        for start in range(0, longest, _WORD_BYTES):
            # At least a record's seal follows every name, so a word never leaves the segment.
            word = words[at + start] & _MASKS[np.clip(lengths - start, 0, _WORD_BYTES)]
            mixed = (hashes ^ word) * second
            mixed ^= mixed >> np.uint64(32)
            hashes = np.where(lengths > start, mixed * third, hashes)
        return hashes
