"""The leading properties of many records at once, cut out of the mapped log without decoding them.

Every record that Postdate writes begins its properties with the same 124 bytes (see `batch`), whose
fields have fixed places. So what a record continues, when it is due and its id are columns of a
matrix of bytes.
"""

import contextlib
import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from queues.store.batch import FROM_AT, FROM_LETTER_AT, ID_AT, ID_BYTES, LEADING_BYTES
from queues.store.commitlog import CommitLog
from queues.store.errors import RecordGone
from queues.store.scattered import numbers_at

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

_SIZE_AT, _STORED_AT, _BODY_AT = 0, 56, 84
#: What begins the properties of every record of ours.
_FIRST_NAME = b"PD_DUE\x01"
_DUE_DIGITS = slice(7, 20)
_KIND_AT, _LEVEL_DIGITS = 59, slice(60, 63)
_FROM_DIGITS = slice(FROM_AT, FROM_AT + 20)


class Leading:
    """The leading bytes of some records, one row a record."""

    def __init__(self, octets: Octets, stored_ms: Int64s) -> None:
        self._octets = octets
        #: When each was stored; 0 for what is not there.
        self.stored_ms = stored_ms

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Which of them are there: a removed or blank record leaves a row of zeros."""
        there: npt.NDArray[np.bool_] = self._octets[:, FROM_LETTER_AT] != 0
        return there

    @property
    def ours(self) -> npt.NDArray[np.bool_]:
        """Which of them Postdate wrote."""
        names = np.ascontiguousarray(self._octets[:, : len(_FIRST_NAME)])
        ours: npt.NDArray[np.bool_] = names.view(f"S{len(_FIRST_NAME)}")[:, 0] == _FIRST_NAME
        return ours

    @property
    def kinds(self) -> Octets:
        """What kind of message each is: ASCII ``I``, ``L`` or ``T``."""
        return self._octets[:, _KIND_AT]

    @property
    def levels(self) -> Int64s:
        """The delay level of each; 0 for none."""
        return _number(self._octets[:, _LEVEL_DIGITS])

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
    stored_ms = np.zeros(len(log_offsets), np.int64)
    bases = log_offsets - log_offsets % log.segment_bytes
    for base in np.unique(bases).tolist():
        mine = np.flatnonzero(bases == base)
        with contextlib.suppress(RecordGone):
            _cut_out(log.memory(base).memory, log_offsets[mine] - base, octets, stored_ms, mine)
    return Leading(octets, stored_ms)


def leading_of(records: Sequence[bytes]) -> Leading:
    """The leading properties of records at hand."""
    sizes = np.fromiter(map(len, records), np.int64, len(records))
    octets = np.zeros((len(records), LEADING_BYTES), np.uint8)
    stored_ms = np.zeros(len(records), np.int64)
    joined = b"".join((*records, bytes(LEADING_BYTES)))
    _cut_out(joined, np.cumsum(sizes) - sizes, octets, stored_ms, np.arange(len(records)))
    return Leading(octets, stored_ms)


def _cut_out(
    memory: mmap.mmap | bytes, inside: Int64s, octets: Octets, stored_ms: Int64s, rows: Int64s
) -> None:
    """Copy what is wanted of the records at these places of one segment into their rows."""
    size = len(memory)
    inside, rows = _chosen(inside + _BODY_AT + 5 <= size, inside, rows)
    record_bytes = _words(memory, inside + _SIZE_AT)
    body_bytes = _words(memory, inside + _BODY_AT)
    stored_ms[rows] = _words(memory, inside + _STORED_AT, 8)
    topic_at = inside + _BODY_AT + 4 + np.maximum(body_bytes, 0)
    inside, rows, topic_at, record_bytes = _chosen(
        (body_bytes >= 0) & (topic_at < size), inside, rows, topic_at, record_bytes
    )
    property_at = topic_at + 3 + np.frombuffer(memory, np.uint8)[topic_at]
    ends = np.minimum(inside + record_bytes, size)
    property_at, rows = _chosen(property_at + LEADING_BYTES <= ends, property_at, rows)
    found = numbers_at(memory, np.dtype((np.void, LEADING_BYTES)))[property_at]
    # All of them, as mostly: they are in order.
    places = slice(None) if len(rows) == len(octets) else rows
    octets[places] = found.view(np.uint8).reshape(-1, LEADING_BYTES)


def _chosen(fits: npt.NDArray[np.bool_], *columns: Int64s) -> tuple[Int64s, ...]:
    """Those that fit of each column; mostly all do."""
    return columns if fits.all() else tuple(column[fits] for column in columns)


def _words(memory: mmap.mmap | bytes, at: Int64s, width: int = 4) -> Int64s:
    """The big-endian numbers of 4 or 8 bytes at these places."""
    found: Int64s = numbers_at(memory, f">i{width}")[at].astype(np.int64)
    return found


def _number(digits: Octets) -> Int64s:
    """The numbers that columns of decimal digits spell (19 digits at the most count)."""
    powers = 10 ** np.arange(min(digits.shape[1], 19) - 1, -1, -1, dtype=np.int64)
    told: Int64s = (digits[:, -len(powers) :].astype(np.int64) - 48) @ powers
    return told
