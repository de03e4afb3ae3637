"""The books: what the stages of one holder share in memory, whichever engine keeps the messages.

| Between | Bounded list |
|---|---|
| scan → enqueue | one batch of `Waiting` messages |
| enqueue → dequeue | the engine |
| dequeue → load | `runs`: sorted keys of slots, `WAITING_KEYS_MAX` |
| load → hand over | `due`: the due list, `LISTED_MAX` |

Two hands: every slot before `read_ms` was read out to its end; no slot before `settled_ms` holds
anything unsettled. Only `settled_ms` is persisted, so a new holder reads again what was not
settled.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from queues.store.timerunits import Longs, slots_of
from scheduler.engine.duelist import DueList, Items, items_of
from scheduler.engine.keys import offsets_in_slot
from scheduler.engine.scan import Waiting
from scheduler.lateness import LatenessMeter


class Counts(Protocol):
    """How many messages of each slot were read out and not settled yet."""

    #: All of them.
    total: int

    def add(self, slots_ms: Longs) -> None:
        """Messages were read out."""

    def settle(self, slots_ms: Longs) -> None:
        """Messages were handed over, found settled, parked or placed elsewhere."""

    def oldest_ms(self) -> int | None:
        """The oldest slot with an outstanding message; None when there is none."""


@dataclass(slots=True)
class Run:
    """Sorted keys of one slot, given out from the front."""

    #: The slot, ms.
    slot_ms: int
    #: Its keys, ascending.
    keys: Longs
    #: How many were loaded.
    begin: int = 0

    @property
    def next_due_ms(self) -> int:
        """When the first of them is due; the slot's start for a late one."""
        return self.slot_ms + int(offsets_in_slot(self.keys[self.begin]))


@dataclass(slots=True, kw_only=True)
class Books:
    """One holder's view of the timed messages."""

    #: Width of a slot, ms.
    precision_ms: int
    #: Read out and not settled, by slot.
    outstanding: Counts
    #: The oldest slot that may hold something unsettled, ms.
    settled_ms: int = 0
    #: The slot being read, ms.
    read_ms: int = 0
    #: The next queue offset of the timer topic to scan.
    queue_offset: int = 0
    #: The time of the last step, floored to the slot width (RocketMQ's write time), ms.
    write_ms: int = 0
    #: Keys read out and not loaded.
    runs: deque[Run] = field(default_factory=deque)
    #: Keys of the last slots of a window, to be placed again.
    rolls: deque[Run] = field(default_factory=deque)
    #: How many keys `runs` and `rolls` hold.
    waiting_keys: int = 0
    #: Loaded messages.
    due: DueList = field(default_factory=DueList)
    #: Messages of `due` that failed before.
    failing: int = 0
    #: What waits behind the scan, up to an offset, and is due until a time (ms), is listed already;
    #: see `express`. 0: nothing is.
    ahead_end: int = 0
    ahead_until_ms: int = 0
    #: Queue offsets of what was listed when the clock was set back, in a slot behind its own, for
    #: which it came late. It is enqueued again, or it would wait for that later slot.
    displaced: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    #: How late the latest hand-overs were.
    meter: LatenessMeter = field(default_factory=LatenessMeter)

    def clear_lists(self) -> None:
        """Forget what was read out."""
        displaced = self.due.find(self._is_displaced)["queue_offset"].astype(np.int64)
        self.displaced = np.union1d(self.displaced, displaced)
        self.runs.clear()
        self.rolls.clear()
        self.waiting_keys = self.failing = 0
        self.ahead_end = self.ahead_until_ms = 0
        self.due = DueList()

    def _is_displaced(self, items: Items) -> npt.NDArray[np.bool_]:
        own: npt.NDArray[np.bool_] = slots_of(items["at_ms"], self.precision_ms) < items["slot_ms"]
        return own | (items["tries"] > 0)

    def list_arrivals(self, waiting: Waiting, slots_ms: Longs) -> None:
        """List messages whose slot was read already, but for those that went ahead of the scan."""
        fresh = waiting.queue_offsets >= self.ahead_end
        fresh |= waiting.due_ms > self.ahead_until_ms
        if fresh.any():
            offsets, slots_ms = waiting.queue_offsets[fresh], slots_ms[fresh]
            self.due.add(items_of(waiting.due_ms[fresh], offsets, slots_ms))
            self.outstanding.add(slots_ms)

    def next_hand_over_ms(self) -> int | None:
        """When the first of what was read out is due."""
        listed_ms = self.due.next_at_ms
        if not self.runs:
            return listed_ms
        read_ms = self.runs[0].next_due_ms
        return read_ms if listed_ms is None else min(listed_ms, read_ms)
