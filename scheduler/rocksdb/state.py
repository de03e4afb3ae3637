"""The state of the RocksDB engine: the books of the stages, and how far the timeline was read."""

from dataclasses import dataclass, field

from queues.store.timerunits import slot_of
from scheduler.engine.books import Books
from scheduler.rocksdb.entries import time_key
from scheduler.rocksdb.outstanding import OutstandingSlots


@dataclass(slots=True, kw_only=True)
class TimelineState(Books):
    """One holder's view of the timeline."""

    outstanding: OutstandingSlots = field(default_factory=OutstandingSlots)
    #: Entries with times up to this were read, ms; of this very time perhaps not all.
    read_to_ms: int = 0
    #: Where reading goes on.
    next_key: bytes = b""
    #: The time of the first entry from there on, ms; None: it was not looked for.
    next_ms: int | None = None
    #: `settled_ms` at its lowest since the durable checkpoint was noted, and since the last was.
    floor_ms: int = 0
    next_floor_ms: int = 0
    #: The first record of the journal that was not looked at for a cancel.
    journal_offset: int = 0

    def slot_of(self, time_ms: int) -> int:
        """The slot that holds what is due at `time_ms`."""
        return slot_of(time_ms, self.precision_ms)

    def begin_at(self, slot_ms: int) -> None:
        """Nothing before a slot is unsettled; reading begins there."""
        self.settled_ms = self.floor_ms = self.next_floor_ms = slot_ms
        self.rewind(slot_ms)

    def lower_floor(self) -> int:
        """Take note of where the settled hand is; the floor for what is written now."""
        self.floor_ms = min(self.floor_ms, self.settled_ms)
        self.next_floor_ms = min(self.next_floor_ms, self.settled_ms)
        return self.floor_ms

    def rewind(self, to_ms: int) -> None:
        """Forget what was read out and begin again at a slot, `settled_ms` if that is older."""
        self.settled_ms = self.read_ms = self.read_to_ms = min(self.settled_ms, to_ms)
        self.next_key, self.next_ms = time_key(self.settled_ms + 1), None
        self.clear_lists()
        self.outstanding = OutstandingSlots()

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow; see `TimerEngine.move_hand`."""
        oldest_ms = self.outstanding.oldest_ms()
        hand_ms = min(self.read_ms, self.slot_of(now_ms))
        self.settled_ms = hand_ms if oldest_ms is None else min(oldest_ms, hand_ms)
