"""Delivering records: from holding records to the records that their topics get, one by one.

Head, body, tag, keys and the user's properties are copied; topic, queue and ``PD_FROM`` are new,
and what described the waiting is left out. Many at once go the way of `bulkdelivery`.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from queues.store.batch import CRC_BYTES, CRC_ROOM, LEADING_BYTES, Batch, Row
from queues.store.held import tag_and_keys
from queues.store.queuetable import Queue

_LENGTH = struct.Struct(">H").pack


class Due(NamedTuple):
    """A holding record that is to be delivered."""

    raw: bytes
    #: Where it lies.
    log_offset: int
    #: Where what describes its waiting begins in `raw`.
    own_end: int
    #: The queue that it is for.
    real: Queue
    due_ms: int
    #: Its unit in the holding queue.
    unit: int


class Shape(NamedTuple):
    """What holding records have in common that can be copied together."""

    size: int
    body_bytes: int
    own_end: int
    real: Queue


def deliver(dues: Iterable[Due], holding: Queue) -> Batch:
    """The delivering records of `dues`, units of the queue `holding`, in their order."""
    batch = Batch()
    for due in dues:
        record, row, keys = delivered_row(due, holding)
        batch.records.append(record)
        batch.rows.append(row)
        batch.add_keys(due.real.topic, keys)
    return batch


def delivered_row(due: Due, holding: Queue) -> tuple[bytes, Row, tuple[str, ...]]:
    """The delivering record of one unit of `holding`, its row, and the message's keys."""
    body_bytes = int.from_bytes(due.raw[84:88], "big")
    record = deliver_one(due, Shape(len(due.raw), body_bytes, due.own_end, due.real))
    own_at = 91 + body_bytes + len(holding.topic) + LEADING_BYTES
    tag, keys = tag_and_keys(due.raw[own_at : due.own_end])
    property_at = 91 + body_bytes + len(due.real.topic)
    row = (len(record), property_at, due.real, tag, due.due_ms, 0, 0, holding, due.unit, 0)
    return record, row, keys


def deliver_one(due: Due, shape: Shape) -> bytes:
    """The delivering record of one holding record."""
    raw = due.raw
    body_end, property_at, middle, size = new_parts(shape, raw)
    return b"".join(
        (
            size, raw[4:12], shape.real.queue_id.to_bytes(4, "big"), raw[16:body_end], middle,
            raw[property_at : property_at + 29], b"H%020d" % due.log_offset,
            raw[property_at + 50 : shape.own_end], CRC_ROOM,
        )
    )  # fmt: skip


def new_parts(shape: Shape, raw: bytes) -> tuple[int, int, bytes, bytes]:
    """Where the body ends and the properties begin in `raw`; the new topic section and size."""
    body_end = 88 + shape.body_bytes
    property_at = body_end + 3 + raw[body_end]
    name = shape.real.topic.encode()
    length = shape.own_end - property_at + CRC_BYTES
    middle = len(name).to_bytes(1, "big") + name + _LENGTH(length)
    return body_end, property_at, middle, (body_end + len(middle) + length).to_bytes(4, "big")
