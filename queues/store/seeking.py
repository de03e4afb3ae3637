"""Seeking: the place in a queue that a time means.

Store times rise along a queue, but for a step back of the clock; then any of the places where the
time is passed may be found, as with RocketMQ.

Example: messages stored at 10, 20 and 30 ms; 20 finds offset 1, 21 finds 2, 31 finds the end, 3.
"""

from queues.store.handout import QueueReader
from queues.store.record import STORE_MS_AT, SYS_FLAG_AT, SYS_FLAG_BORN_HOST_V6

#: How much further the store time lies behind an IPv6 host.
_V6_MORE_BYTES = 12


def first_at(reader: QueueReader, topic: str, queue_id: int, at_ms: int) -> int:
    """The first offset whose message was stored at or after a wall time; the end if none was."""
    bounds = reader.queue_bounds(topic, queue_id)
    low, high = bounds.min_offset, bounds.max_offset
    while low < high:
        middle = (low + high) // 2
        readable, found_ms = middle, None
        while found_ms is None and readable < high:
            found_ms = store_ms_of(reader, topic, queue_id, readable)
            readable += found_ms is None
        if found_ms is None or found_ms >= at_ms:
            high = middle  # Without one that can be read behind it, the middle is as good.
        else:
            low = readable + 1
    return low


def store_ms_of(reader: QueueReader, topic: str, queue_id: int, offset: int) -> int | None:
    """When the message at an offset was stored, wall time in ms; None if it cannot be read."""
    records = reader.read_records(reader.read_units(topic, queue_id, offset, 1))
    if not records or records[0] is None:
        return None
    record = records[0]
    born_v6 = int.from_bytes(record[SYS_FLAG_AT : SYS_FLAG_AT + 4], "big") & SYS_FLAG_BORN_HOST_V6
    at = STORE_MS_AT + (_V6_MORE_BYTES if born_v6 else 0)
    return int.from_bytes(record[at : at + 8], "big")
