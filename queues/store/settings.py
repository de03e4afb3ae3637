"""What a store is told when it is opened; its sizes are fixed in `postdate/format.json`."""

from dataclasses import dataclass, field

from queues.store.levels import LevelTable

MIB = 1024 * 1024
DAY_MS = 86_400_000
DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that are fixed when a store is made."""

    #: Bytes of one CommitLog segment (RocketMQ: 1 GiB).
    segment_bytes: int = 256 * MIB
    #: Units in one ConsumeQueue file, 20 bytes each.
    consume_queue_units: int = 300_000
    #: Hash slots of one index file, 4 bytes each (RocketMQ: 5,000,000).
    index_slots: int = 500_000
    #: Entries of one index file, 20 bytes each (RocketMQ: 20,000,000).
    index_entries: int = 2_000_000
    #: Bytes of one TimerLog file (RocketMQ: 100 MiB).
    timer_log_bytes: int = 16 * MIB
    #: Width of a timer slot in ms.
    timer_precision_ms: int = 1000
    #: Slots in the wheel's window; the file has twice as many.
    timer_window_slots: int = 604_800


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a process opens a store."""

    sizes: Sizes = field(default_factory=Sizes)
    #: True: an answer waits for the flush that covers its record. False: it survives process death.
    sync_flush: bool = False
    levels: LevelTable = field(default_factory=lambda: LevelTable.parse(DEFAULT_LEVELS))
    #: How long a ready message and a segment are kept at least, ms.
    retention_ms: int = 3 * DAY_MS
    #: How long a dead letter is kept, ms, counted from its death.
    dead_letter_retention_ms: int = 30 * DAY_MS
    #: Below this many free bytes old segments go at any hour; None: two segments.
    min_free_bytes: int | None = None
    #: Hours of the day (local time) at which segments past their age go (RocketMQ's `deleteWhen`).
    delete_hours: tuple[int, ...] = (4,)
    #: Bytes of the ballast file that is given up for hand-overs and cancels on a full disk.
    ballast_bytes: int = 64 * MIB
