"""Scan, the first stage: what is new in the timer topic and still waits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import Longs
from scheduler.engine.limits import GATHER_GAP

if TYPE_CHECKING:
    from queues.store.store import Store

QUEUE_ID = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages of the timer topic that were not settled when they were looked at."""

    #: Where they lie in the timer topic.
    queue_offsets: Longs
    #: When they are due, ms.
    due_ms: Longs
    #: Their records' addresses.
    log_offsets: Longs
    #: Their records' sizes.
    sizes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.queue_offsets)

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Waiting":
        """Those of them that are chosen."""
        return Waiting(
            self.queue_offsets[chosen],
            self.due_ms[chosen],
            self.log_offsets[chosen],
            self.sizes[chosen],
        )


_NONE = np.zeros(0, dtype=np.int64)
_NOTHING = Waiting(_NONE, _NONE, _NONE, np.zeros(0, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class Scanned:
    """A stretch of the timer topic."""

    #: What waits in it.
    waiting: Waiting
    #: Where the next scan begins.
    next_offset: int
    #: Messages behind that.
    behind: int


def scan(store: "Store", queue_offset: int, count_max: int) -> Scanned:
    """Look at up to `count_max` messages from `queue_offset` on."""
    bounds = store.queue_bounds(TIMER_TOPIC, QUEUE_ID)
    begin = max(queue_offset, bounds.min_offset)
    end = max(begin, min(begin + count_max, bounds.max_offset))
    if begin == end:
        return Scanned(_NOTHING, end, 0)
    found = store.schedule(TIMER_TOPIC, QUEUE_ID, begin, end)
    kept = found.settled == 0
    offsets = np.flatnonzero(kept) + found.start
    waiting = _with_units(store, offsets, found.due_ms[kept])
    return Scanned(waiting, end, max(0, bounds.max_offset - end))


def messages(store: "Store", queue_offsets: Longs) -> Waiting:
    """What waits of these ascending queue offsets."""
    settled, due_ms = store.schedule_at(TIMER_TOPIC, QUEUE_ID, queue_offsets)
    return _with_units(store, queue_offsets[settled == 0], due_ms[settled == 0])


def _with_units(store: "Store", queue_offsets: Longs, due_ms: Longs) -> Waiting:
    units = units_of(store, queue_offsets)
    return Waiting(
        queue_offsets, due_ms, units["log_offset"].astype(np.int64), units["size"].astype(np.int32)
    )


def units_of(store: "Store", queue_offsets: Longs) -> npt.NDArray[Any]:
    """The ConsumeQueue units of ascending queue offsets that are in the queue."""
    parts = []
    for part in _stretches(queue_offsets):
        wanted = queue_offsets[part]
        begin = int(wanted[0])
        found = store.read_units(TIMER_TOPIC, QUEUE_ID, begin, int(wanted[-1]) - begin + 1)
        parts.append(found.take(wanted - begin))
    return np.concatenate(parts) if parts else store.read_units(TIMER_TOPIC, QUEUE_ID, 0, 0)


def _stretches(ascending: Longs) -> list[slice]:
    """Cut ascending offsets where more than `GATHER_GAP` lie between two."""
    if not len(ascending):
        return []
    cuts = (np.flatnonzero(np.diff(ascending) > GATHER_GAP) + 1).tolist()
    return [slice(*ends) for ends in zip([0, *cuts], [*cuts, len(ascending)], strict=True)]
