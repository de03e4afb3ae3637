"""A small store for tests: its sizes, messages for it, and everything that it says, to compare."""

import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Outgoing, Sizes, Store, StoreSettings
from queues.store.disk import Disk
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk

SIZES = Sizes(
    segment_bytes=16_384, consume_queue_units=100, index_slots=64, index_entries=4_000,
    timer_log_bytes=5_200,
)  # fmt: skip
SETTINGS = StoreSettings(sizes=SIZES, ballast_bytes=65_536)
SYNC = StoreSettings(sizes=SIZES, ballast_bytes=65_536, sync_flush=True)

_numbers = itertools.count()


def open_store(
    root: Path,
    clock: ManualClock,
    *,
    settings: StoreSettings = SETTINGS,
    disk: Disk | None = None,
) -> Store:
    return Store.open(root, settings, clock=clock, disk=disk or UnsyncedDisk())


def outgoing(
    store: Store, *, topic: str = "orders", body_bytes: int = 0, **fields: Any
) -> Outgoing:
    """A message that no other is like."""
    now_ms, number = store.clock.now_ms(), next(_numbers)
    told: dict[str, Any] = {
        "topic": topic, "queue_id": number % 2, "unique_id": store.new_id(topic, now_ms),
        "body": b"message %d" % number + b"." * body_bytes, "born_ms": now_ms, "tag": "TagA",
        "keys": (f"key{number}",), "properties": {"user": "name"},
    }  # fmt: skip
    return Outgoing(**told | fields)


def fill(store: Store, segments: int, *, topic: str = "orders") -> None:
    """Write ready messages until so many more segments are full."""
    end = store.committed + segments * store.sizes.segment_bytes
    while store.committed < end:
        store.send([outgoing(store, topic=topic, body_bytes=3_000)])


def send_level(store: Store, level: int = 1, **fields: Any) -> str:
    """Send one level message; its id."""
    message = outgoing(store, level=level, **fields)
    store.send([message])
    return message.unique_id


def send_timed(store: Store, delay_ms: int, **fields: Any) -> str:
    """Send one message that is due after a delay; its id."""
    message = outgoing(store, due_ms=store.clock.now_ms() + delay_ms, **fields)
    store.send([message])
    return message.unique_id


def holding_queues(store: Store) -> list[tuple[str, int]]:
    return [
        (topic, queue_id)
        for topic in (SCHEDULE_TOPIC, TIMER_TOPIC)
        for queue_id in store.queue_ids(topic)
    ]


def hand_over_due(store: Store) -> int:
    """Do what the loops do: hand over everything that waits and is due."""
    handed = 0
    for topic, queue_id in holding_queues(store):
        table = store.schedule(topic, queue_id, 0, 1 << 40)
        due = (table.settled == 0) & (table.due_ms <= store.clock.now_ms())
        offsets = table.start + np.flatnonzero(due)
        handed += store.hand_over(topic, queue_id, offsets).handed
    return handed


def delivered_ids(store: Store, topic: str = "orders") -> list[str]:
    """The id of every record in the queues of a topic, hand-over by hand-over."""
    ids = []
    for queue_id in store.queue_ids(topic):
        bounds = store.queue_bounds(topic, queue_id)
        units = store.read_units(topic, queue_id, bounds.min_offset, bounds.max_offset)
        ids += [
            store.read_record(offset).unique_id or "" for offset in units["log_offset"].tolist()
        ]
    return sorted(ids)


def at_four(clock: ManualClock) -> None:
    """Let time pass until the hour, in local time, at which old segments go."""
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).astimezone()
    clock.advance((4 - now.hour) % 24 * 3_600_000)


def told_of(store: Store, ids: list[str]) -> dict[str, Any]:
    """Everything derived that the store says, settled words included."""
    told: dict[str, Any] = {}
    for topic in store.topics():
        for queue_id in store.queue_ids(topic):
            bounds = store.queue_bounds(topic, queue_id)
            if bounds.max_offset == 0:
                continue
            units = store.read_units(topic, queue_id, bounds.min_offset, bounds.max_offset)
            told[f"{topic} {queue_id}"] = (bounds, units.tolist())
            if (topic, queue_id) in holding_queues(store):
                table = store.schedule(topic, queue_id, 0, bounds.max_offset)
                names = [store.topic_name(number) for number in table.topic_number.tolist()]
                told[f"schedule {topic} {queue_id}"] = (
                    table.settled.tolist(), table.due_ms.tolist(), names,
                )  # fmt: skip
    told["views"] = [store.find(message_id) for message_id in ids]
    told["parked"] = sorted(view.id for view in store.parked())
    told["end"] = store.committed
    return told


def lived(store: Store, clock: ManualClock) -> list[str]:
    """Give a store messages in every state; their ids."""
    ids = [send_level(store, 1 + number % 3) for number in range(9)]
    ids += [send_timed(store, 500 + 300 * number) for number in range(40)]
    store.send([outgoing(store)])
    store.cancel(ids[12], by="tester", reason="paid")
    store.restore(ids[12], by="tester")
    store.cancel(ids[13], by="tester")
    store.move(ids[2], clock.now_ms() + 90_000, by="tester")
    clock.advance(2_000)
    hand_over_due(store)
    store.park(TIMER_TOPIC, 0, 30, reason="the topic was deleted")
    store.park(TIMER_TOPIC, 0, 31, reason="the topic was deleted")
    store.release(ids[9 + 31], by="tester")
    ids.append(send_level(store, 18))
    store.cancel(ids[-1], by="tester")
    store.restore(ids[-1], by="tester")
    return ids
