"""Waiting messages by the million: put into a running platform's store, and found again delivered.

The store is opened by this process beside the platform's own, as any program on the machine may:
what is measured is the loops' work, and filling through REST would take longer than the
measurement.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queues.store import Outgoing, Store, StoreSettings
from queues.store.record import STORE_MS_AT

BODY = bytes(100)
BATCH = 1000
QUEUES = 8
DUE_PROPERTY = b"PD_DUE\x01"
DUE_DIGITS = 13
READ_UNITS = 10_000


@dataclass(frozen=True, slots=True)
class Delivered:
    """Every record of a topic: two arrays of the same length, in no particular order."""

    due_ms: npt.NDArray[np.int64]
    delivered_ms: npt.NDArray[np.int64]

    @property
    def lateness_ms(self) -> npt.NDArray[np.int64]:
        return self.delivered_ms - self.due_ms


def opened(data_dir: Path) -> Store:
    """The store of a platform that runs, or has been stopped."""
    return Store.open(data_dir / "store", StoreSettings())


def now_ms() -> int:
    """The wall clock that the store decides by."""
    return time.time_ns() // 1_000_000


def messages(
    store: Store, topic: str, count: int, *, level: int = 0, due_ms: Callable[[], int] | None = None
) -> list[Outgoing]:
    """New messages, spread over the queues of a topic."""
    born_ms = now_ms()
    return [
        Outgoing(
            topic=topic,
            queue_id=number % QUEUES,
            unique_id=unique_id,
            body=BODY,
            born_ms=born_ms,
            level=level,
            due_ms=due_ms() if due_ms else None,
        )
        for number, unique_id in enumerate(store.new_ids(topic, born_ms, count))
    ]


def send_timed(store: Store, topic: str, count: int, *, from_ms: int, span_ms: int) -> None:
    """Timed messages at random milliseconds of a span."""
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        due_ms = lambda: from_ms + random.randrange(span_ms)  # noqa: E731 -- one line says it
        store.send(messages(store, topic, size, due_ms=due_ms))


def send_level_paced(
    store: Store, topic: str, *, level: int, per_second: int, seconds: float
) -> None:
    """Level messages at an even pace, in as small batches as the pace allows."""
    began = time.perf_counter()
    sent = 0
    while (elapsed := time.perf_counter() - began) < seconds:
        owed = min(int(elapsed * per_second) - sent, BATCH)
        if owed > 0:
            store.send(messages(store, topic, owed, level=level))
            sent += owed
        time.sleep(0.001)


def delivered(store: Store, topic: str) -> Delivered:
    """What has been handed over to a topic, read from the records themselves."""
    pairs = [
        (_due_ms(record), int.from_bytes(record[STORE_MS_AT : STORE_MS_AT + 8], "big"))
        for record in _records(store, topic)
    ]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return Delivered(table[:, 0], table[:, 1])


def delivered_count(store: Store, topic: str) -> int:
    """How many have been handed over to a topic."""
    bounds = [store.queue_bounds(topic, queue_id) for queue_id in store.queue_ids(topic)]
    return sum(each.max_offset - each.min_offset for each in bounds)


def await_delivered(store: Store, topic: str, count: int, *, within_s: float) -> int:
    """Wait until so many are handed over, or time is up; how many are."""
    give_up = time.monotonic() + within_s
    while (done := delivered_count(store, topic)) < count and time.monotonic() < give_up:
        time.sleep(0.25)
    return done


def _records(store: Store, topic: str) -> Iterator[bytes]:
    for queue_id in store.queue_ids(topic):
        bounds = store.queue_bounds(topic, queue_id)
        for start in range(bounds.min_offset, bounds.max_offset, READ_UNITS):
            units = store.read_units(topic, queue_id, start, READ_UNITS)
            yield from (record for record in store.read_records(units) if record is not None)


def _due_ms(record: bytes) -> int:
    at = record.index(DUE_PROPERTY) + len(DUE_PROPERTY)
    return int(record[at : at + DUE_DIGITS])
