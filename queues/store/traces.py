"""Traces: what was received and what was acknowledged, one journal record a call.

A trace is a record of the journal's queue 1 (changes of messages have queue 0 for themselves). It
is first in its chain (`PD_FROM` ``N`` and zeros) and settles nothing. Its body is a packed array,
little-endian:

=====  ======================================================================
bytes  field
=====  ======================================================================
4      ``PDT1``
1      event: 1 received, 2 acknowledged
1 + n  the group's name
2      number of topics
1 + n  each topic's name
24     each message: due time and hand-over in ms (8 + 8), topic's number (2),
       kind (1, ASCII ``I``, ``L`` or ``T``), level (1), attempt (2), zeros (2)
=====  ======================================================================

When it happened is the record's STORETIMESTAMP. Example: three messages of ``orders`` that group
``billing`` received are 4 + 1 + 8 + 2 + 7 + 72 = 94 bytes.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.batch import LEADING_BYTES
from queues.store.leading import Leading

TraceEvent = Literal["received", "acked"]

TRACE_QUEUE_ID: Final = 1
MAGIC: Final = b"PDT1"
ROW: Final = np.dtype(
    [
        ("due_ms", "<i8"),
        ("delivered_ms", "<i8"),
        ("topic", "<u2"),
        ("kind", "u1"),
        ("level", "u1"),
        ("attempt", "<u2"),
        ("zeros", "<u2"),
    ]
)
_EVENTS: Final[dict[TraceEvent, int]] = {"received": 1, "acked": 2}
_EVENT_OF: Final = {code: event for event, code in _EVENTS.items()}
_ATTEMPT_MAX: Final = 65_535
_ROW: Final = struct.Struct("<qqHBBHH").pack
_COUNT: Final = struct.Struct("<H")
#: A topic of 255 bytes, and the leading properties.
BEHIND_BODY: Final = 3 + 255 + LEADING_BYTES


class Trace(NamedTuple):
    """A trace, read back."""

    event: TraceEvent
    group: str
    topics: list[str]
    #: Of dtype `ROW`.
    rows: npt.NDArray[np.void]


class TraceUnreadable(ValueError):
    """These bytes are no trace."""


def pack_row(*, due_ms: int, delivered_ms: int, kind: int, level: int, attempt: int) -> bytes:
    """One message of a trace's first topic."""
    return _ROW(due_ms, delivered_ms, 0, kind, min(level, 255), min(attempt, _ATTEMPT_MAX), 0)


def row_of(record: bytes, attempt: int) -> bytes | None:
    """What a trace says of a record that was handed out; None for one that is not of ours."""
    body_end = 88 + int.from_bytes(record[84:88], "big")
    return row_of_parts(record, record[body_end : body_end + BEHIND_BODY], attempt)


def row_of_parts(head: bytes, behind: bytes, attempt: int) -> bytes | None:
    """As `row_of`, given at least the first 64 bytes and `BEHIND_BODY` of what follows the body.

    Example: a timed message's first attempt, due at 5 and handed over at 7 ms: ``5, 7, T, 0, 1``.
    """
    at = 3 + behind[0]
    if behind[at : at + 7] != b"PD_DUE\x01":
        return None
    due_ms, level = int(behind[at + 7 : at + 20]), int(behind[at + 60 : at + 63])
    delivered_ms = int.from_bytes(head[56:64], "big")
    return pack_row(
        due_ms=due_ms, delivered_ms=delivered_ms, kind=behind[at + 59], level=level, attempt=attempt
    )


def rows_of(leading: Leading, attempts: Sequence[int]) -> bytes:
    """The same of many records, joined; those that are gone, or not of ours, are left out."""
    rows = np.zeros(len(attempts), ROW)
    rows["due_ms"], rows["delivered_ms"] = leading.due_ms, leading.stored_ms
    rows["kind"], rows["level"] = leading.kinds, np.minimum(leading.levels, 255)
    told = np.fromiter(attempts, np.int64, len(attempts))
    rows["attempt"] = np.minimum(told, _ATTEMPT_MAX)
    ours = leading.ours
    return (rows if ours.all() else rows[ours]).tobytes()


def encode_trace(event: TraceEvent, group: str, rows_of: Mapping[str, Sequence[bytes]]) -> bytes:
    """The body of a trace: packed rows by topic, any number of them together."""
    parts = [MAGIC, bytes((_EVENTS[event],)), _named(group), _COUNT.pack(len(rows_of))]
    parts += map(_named, rows_of)
    for number, rows in enumerate(rows_of.values()):
        if number:
            numbered = np.frombuffer(b"".join(rows), ROW).copy()
            numbered["topic"] = number
            parts.append(numbered.tobytes())
        else:
            parts += rows
    return b"".join(parts)


def decode_trace(body: bytes) -> Trace:
    """Read a trace's body back; raises `TraceUnreadable`."""
    try:
        if body[:4] != MAGIC:
            raise TraceUnreadable("it does not begin as a trace does")
        event = _EVENT_OF[body[4]]
        group, at = _name_at(body, 5)
        (count,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        topics = []
        for _ in range(count):
            topic, at = _name_at(body, at)
            topics.append(topic)
        rows = np.frombuffer(body, ROW, offset=at)
    except (KeyError, IndexError, struct.error, ValueError) as error:
        raise TraceUnreadable(str(error)) from error
    if len(rows) and int(rows["topic"].max()) >= count:
        raise TraceUnreadable("it names a topic that it does not have")
    return Trace(event, group, topics, rows)


def _named(name: str) -> bytes:
    raw = name.encode()
    return len(raw).to_bytes(1, "big") + raw


def _name_at(body: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + body[at]
    if end > len(body):
        raise TraceUnreadable("it ends in a name")
    return body[at + 1 : end].decode(), end
