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
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.batch import LEADING_BYTES

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
_LEADING_FACTS: Final = struct.Struct(">q")


class Traced(NamedTuple):
    """One message of a trace."""

    topic: str
    due_ms: int
    #: The store time of the record that was handed out.
    delivered_ms: int
    #: ``I``, ``L`` or ``T``.
    kind: str
    level: int
    #: From 1.
    attempt: int


class Trace(NamedTuple):
    """A trace, read back."""

    event: TraceEvent
    group: str
    topics: list[str]
    #: Of dtype `ROW`.
    rows: npt.NDArray[np.void]


class TraceUnreadable(ValueError):
    """These bytes are no trace."""


def traced_of(record: bytes | memoryview, topic: str, attempt: int) -> Traced | None:
    """What a trace says of a record that was handed out; None for one that is not of ours.

    `record` may end behind the leading properties.
    """
    body_end = 88 + int.from_bytes(record[84:88], "big")
    return traced_of_parts(record[:88], record[body_end:], topic, attempt)


def traced_of_parts(
    head: bytes | memoryview, behind: bytes | memoryview, topic: str, attempt: int
) -> Traced | None:
    """As `traced_of`, given the first 88 bytes and what follows the body."""
    at = 3 + behind[0]
    leading = bytes(behind[at : at + LEADING_BYTES])
    if leading[:7] != b"PD_DUE\x01":
        return None
    (delivered_ms,) = _LEADING_FACTS.unpack(head[56:64])
    level = int(leading[60:63])
    return Traced(topic, int(leading[7:20]), delivered_ms, chr(leading[59]), level, attempt)


def encode_trace(event: TraceEvent, group: str, messages: Sequence[Traced]) -> bytes:
    """The body of a trace."""
    topics: dict[str, int] = {}
    rows = [
        _ROW(
            one.due_ms, one.delivered_ms, topics.setdefault(one.topic, len(topics)),
            ord(one.kind), min(one.level, 255), min(one.attempt, _ATTEMPT_MAX), 0,
        )
        for one in messages
    ]  # fmt: skip
    names = b"".join(_named(topic) for topic in topics)
    count = _COUNT.pack(len(topics))
    return b"".join((MAGIC, bytes((_EVENTS[event],)), _named(group), count, names, *rows))


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
