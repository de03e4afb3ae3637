"""A store with a life in it, made by the real engine on a clock that the test moves."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from queues.store import Outgoing, Sizes, Store, StoreSettings
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from tests.support.clock import ManualClock

#: Noon on a day in UTC: a quarter-hour begins.
NOON_MS = 1_790_078_400_000
MINUTE_MS = 60_000
SMALL = StoreSettings(
    sizes=Sizes(
        segment_bytes=1 << 20,
        consume_queue_units=4096,
        index_slots=1024,
        index_entries=20_000,
        timer_log_bytes=1 << 20,
        timer_window_slots=3600,
    ),
    ballast_bytes=1 << 16,
)


@dataclass
class LivedStore:
    """An open store and its clock."""

    store: Store
    clock: ManualClock

    @classmethod
    def make(cls, root: Path, settings: StoreSettings = SMALL) -> "LivedStore":
        clock = ManualClock(NOON_MS)
        return cls(Store.open(root, settings, clock=clock), clock)

    def send(self, topic: str, *, level: int = 0, delay_ms: int = 0, body: bytes = b"x" * 50,
             keys: tuple[str, ...] = (), tag: str | None = None) -> str:  # fmt: skip
        now_ms = self.clock.now_ms()
        message_id = self.store.new_id(topic, now_ms)
        due_ms = now_ms + delay_ms if delay_ms else None
        self.store.send(
            [Outgoing(topic, 0, message_id, body, now_ms, tag, keys, level=level, due_ms=due_ms)]
        )
        return message_id

    def hand_over_due(self) -> int:
        """Hand over what is due by the clock, as the loops do."""
        handed = 0
        for topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
            for queue_id in self.store.queue_ids(topic):
                end = self.store.queue_bounds(topic, queue_id).max_offset
                found = self.store.schedule(topic, queue_id, 0, end)
                due = (found.settled == 0) & (found.due_ms <= self.clock.now_ms())
                offsets = np.flatnonzero(due) + found.start
                handed += self.store.hand_over(topic, queue_id, offsets).handed
        return handed

    def after(self, step_ms: int) -> "LivedStore":
        """The same, later, with what is due handed over."""
        self.clock.advance(step_ms)
        self.hand_over_due()
        return self

    def flush(self) -> None:
        self.store.flush()

    def close(self) -> None:
        self.store.flush()
        self.store.close()
