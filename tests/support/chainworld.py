"""A group with retries on a small store: what several processes of it do, one after the other."""

import contextlib
from pathlib import Path

import numpy as np

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Store
from queues.store.consuming import Consuming, Delivery, Subscription
from queues.store.disk import Disk
from queues.store.levels import LevelTable
from queues.store.record import decode_record
from queues.store.retryrules import RetryRule
from tests.support.clock import ManualClock
from tests.support.faulty_disk import Died, Fate, FaultyDisk
from tests.support.storeworld import SETTINGS, open_store, outgoing

GROUP, LEASE_MS = "billing", 60_000
SOURCES = [Subscription("orders"), Subscription(f"%RETRY%{GROUP}")]
RULE = RetryRule(LevelTable.parse("1s 5s 10s 30s 1m"), retries_max=2)


class Process:
    """One process: its store and its consuming."""

    def __init__(self, root: Path, clock: ManualClock, disk: Disk | None = None) -> None:
        self.clock = clock
        self.store: Store = open_store(root, clock, settings=SETTINGS, disk=disk)
        self.consuming = Consuming(self.store, b"a secret of the tests")
        self.consuming.rule_of = lambda _: RULE
        self.store.keep_leased(self.consuming.leased_from)

    def send(self, count: int) -> list[str]:
        messages = [outgoing(self.store) for _ in range(count)]
        self.store.send(messages)
        return [message.unique_id for message in messages]

    def receive(self, count: int = 100) -> list[Delivery]:
        return self.consuming.receive(
            GROUP, SOURCES, max_messages=count, lease_ms=LEASE_MS, now_ms=self.clock.now_ms()
        ).deliveries

    def hand_over(self) -> None:
        """Do what the loops do."""
        for topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
            for queue_id in self.store.queue_ids(topic):
                end = self.store.queue_bounds(topic, queue_id).max_offset
                found = self.store.schedule(topic, queue_id, 0, end)
                due = (found.settled == 0) & (found.due_ms <= self.clock.now_ms())
                self.store.hand_over(topic, queue_id, np.flatnonzero(due) + found.start)

    def keep_house(self) -> None:
        """Do what housekeeping does."""
        self.consuming.expire(self.clock.now_ms())
        self.consuming.save_offsets()

    def dead(self) -> list[str]:
        """The ids of the dead letters that were not driven again."""
        lookup = self.store.chains.lookup
        letters = [lookup.letter_at(GROUP, unit) for unit in lookup.letters(GROUP).units.tolist()]
        return sorted(one.id for one in letters if one is not None and one.redriven_ms is None)

    def close(self) -> None:
        self.consuming.close()
        self.store.close()


def id_of(delivery: Delivery) -> str:
    return decode_record(delivery.record).unique_id or ""


class DyingProcess(Process):
    """A process that dies at one of the writes of what it does."""

    def __init__(self, root: Path, clock: ManualClock) -> None:
        self.fate = Fate()
        self.survived = False
        self.disk = FaultyDisk(self.fate)
        super().__init__(root, clock, self.disk)

    @contextlib.contextmanager
    def dying_at(self, write: int, *, torn: float = 0.0):  # type: ignore[no-untyped-def]
        """Die at the write of this number, from 0, of what is done inside."""
        self.fate.die_at, self.fate.torn = self.fate.writes + write, torn
        with contextlib.suppress(Died):
            yield
            self.survived = True
            self.fate.die_at = None
            self.close()
        self.disk.bury()
