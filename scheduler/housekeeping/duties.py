"""The duties of housekeeping on a store: flush, lease expiry, offsets, retention."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from queues.store import Store
from scheduler.housekeeping.checkpointer import Checkpointer
from scheduler.housekeeping.step import Duty
from scheduler.levels.offsets import DelayOffsets
from scheduler.limits import DELAY_OFFSETS_SAVE_MS

#: In `async` mode this much may be lost with the machine's power; a process's death loses nothing.
FLUSH_EVERY_MS = 500
#: As often as RocketMQ.
CHECKPOINT_EVERY_MS = 1_000
#: Leases end to the second, and group offsets are as old as this at most after a crash.
CONSUMING_EVERY_MS = 1_000
#: A consumer is forgotten after days: a minute more is nothing.
FORGET_EVERY_MS = 60_000
#: Retention, renewal, spare segment, checkpoint.
STORE_EVERY_MS = 1_000


class Consumers(Protocol):
    """What housekeeping asks of `queues.store.members`."""

    def forget_unseen(self, now_ms: int) -> int:
        """Forget who was not seen for long; how many."""


class Leases(Protocol):
    """What housekeeping asks of `queues.store.consuming`."""

    def expire(self, now_ms: int) -> object:
        """Make messages ready again whose lease ran out."""

    def save_offsets(self) -> object:
        """Write the groups' offsets down."""

    @property
    def members(self) -> Consumers:
        """The consumers of broadcasting groups."""


def store_duties(store: Store, consuming: Leases, offsets: DelayOffsets) -> Sequence[Duty]:
    """The duties, in the order in which they are done."""

    checkpoint = Checkpointer(store)

    def flush(_now_ms: int) -> None:
        checkpoint.flush()

    def note_flush(_now_ms: int) -> None:
        checkpoint.note()

    def expire(now_ms: int) -> None:
        consuming.expire(now_ms)

    def forget_consumers(now_ms: int) -> None:
        forgotten = consuming.members.forget_unseen(now_ms)
        if forgotten:
            store.count("consumers_forgotten", forgotten)

    def save_group_offsets(_now_ms: int) -> None:
        consuming.save_offsets()

    def save_delay_offsets(_now_ms: int) -> None:
        offsets.save()

    def keep_house(now_ms: int) -> Any:
        return asdict(store.housekeep(now_ms))

    return (
        Duty("flush", FLUSH_EVERY_MS, flush, on_close=True),
        Duty("note the flush", CHECKPOINT_EVERY_MS, note_flush, on_close=True),
        Duty("expire leases", CONSUMING_EVERY_MS, expire),
        Duty("forget consumers", FORGET_EVERY_MS, forget_consumers),
        Duty("save group offsets", CONSUMING_EVERY_MS, save_group_offsets, on_close=True),
        Duty("save delay offsets", DELAY_OFFSETS_SAVE_MS, save_delay_offsets, on_close=True),
        Duty("keep house", STORE_EVERY_MS, keep_house),
    )
