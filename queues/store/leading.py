"""The leading properties of many records at once, cut out of the mapped log without decoding them.

Every record that Postdate writes begins its properties with the same 124 bytes (see `batch`), whose
fields have fixed places. So what a record continues, when it is due and its id are columns of a
matrix of bytes.
"""

import contextlib
import mmap

import numpy as np
import numpy.typing as npt

from queues.store.batch import FROM_AT, FROM_LETTER_AT, ID_AT, ID_BYTES, LEADING_BYTES
from queues.store.commitlog import CommitLog
from queues.store.errors import RecordGone

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

_SIZE_AT, _BODY_AT = 0, 84
_DUE_DIGITS = slice(7, 20)
_FROM_DIGITS = slice(FROM_AT, FROM_AT + 20)


class Leading:
    """The leading bytes of some records, one row a record."""

    def __init__(self, octets: Octets) -> None:
        self._octets = octets

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Which of them are there: a removed or blank record leaves a row of zeros."""
        there: npt.NDArray[np.bool_] = self._octets[:, FROM_LETTER_AT] != 0
        return there

    @property
    def letters(self) -> Octets:
        """What each continues: the letter of ``PD_FROM``."""
        return self._octets[:, FROM_LETTER_AT]

    @property
    def ids(self) -> Octets:
        """Their ids, 32 bytes each."""
        return self._octets[:, ID_AT : ID_AT + ID_BYTES]

    @property
    def due_ms(self) -> Int64s:
        """When each is due."""
        return _number(self._octets[:, _DUE_DIGITS])

    @property
    def from_offsets(self) -> Int64s:
        """The log offset of what each continues."""
        return _number(self._octets[:, _FROM_DIGITS])


def read_leading(log: CommitLog, log_offsets: Int64s) -> Leading:
    """The leading properties of the records at these log offsets."""
    octets = np.zeros((len(log_offsets), LEADING_BYTES), np.uint8)
    bases = log_offsets - log_offsets % log.segment_bytes
    for base in np.unique(bases).tolist():
        mine = np.flatnonzero(bases == base)
        with contextlib.suppress(RecordGone):
            _cut_out(log.memory(base).memory, log_offsets[mine] - base, octets, mine)
    return Leading(octets)


def _cut_out(memory: mmap.mmap, inside: Int64s, octets: Octets, rows: Int64s) -> None:
    """Copy the leading bytes of the records at these places of one segment into their rows."""
    size = len(memory)
    fits = inside + _BODY_AT + 5 <= size
    inside, rows = inside[fits], rows[fits]
    record_bytes = _words(memory, inside + _SIZE_AT)
    body_bytes = _words(memory, inside + _BODY_AT)
    topic_at = inside + _BODY_AT + 4 + np.maximum(body_bytes, 0)
    fits = (body_bytes >= 0) & (topic_at < size)
    inside, rows, topic_at = inside[fits], rows[fits], topic_at[fits]
    record_bytes = record_bytes[fits]
    property_at = topic_at + 3 + np.frombuffer(memory, np.uint8)[topic_at]
    fits = property_at + LEADING_BYTES <= np.minimum(inside + record_bytes, size)
    stretch = np.dtype((np.void, LEADING_BYTES))
    places: npt.NDArray[np.void] = np.ndarray(
        (size - LEADING_BYTES + 1,),
        stretch,
        buffer=memory,
        strides=(1,),
    )
    found = places[property_at[fits]]
    octets[rows[fits]] = found.view(np.uint8).reshape(-1, LEADING_BYTES)


def _words(memory: mmap.mmap, at: Int64s) -> Int64s:
    """The big-endian 4-byte numbers at these places."""
    size = len(memory)
    numbers: npt.NDArray[np.int32] = np.ndarray(
        (size - 3,),
        np.dtype(">i4"),
        buffer=memory,
        strides=(1,),
    )
    return numbers[at].astype(np.int64)


def _number(digits: Octets) -> Int64s:
    """The numbers that columns of decimal digits spell (19 digits at the most count)."""
    powers = 10 ** np.arange(min(digits.shape[1], 19) - 1, -1, -1, dtype=np.int64)
    told: Int64s = (digits[:, -len(powers) :].astype(np.int64) - 48) @ powers
    return told
