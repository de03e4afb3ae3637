"""A small world for timed messages: a real store, a clock moved by hand, and a model to compare.

Either engine turns it: `engine="wheel"` or `"rocksdb"`.

The model is a dictionary of what was sent and when it is due; at rest, the topics hold exactly what
the model says: each message once, none before its time.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from queues.store.disk import Disk
from queues.store.messages import Outgoing
from queues.store.names import TIMER_TOPIC
from queues.store.record import decode_record
from queues.store.settings import Sizes, StoreSettings
from queues.store.store import Store
from queues.store.timerunits import BLANK_BYTES_MIN, TIMER_UNIT_BYTES
from scheduler.engine.scan import scan
from scheduler.engine.step import TimerStep
from scheduler.rocksdb.engine import RocksEngine
from scheduler.rocksdb.entries import TIMES_END, VALUE, time_key
from scheduler.rocksdb.state import TimelineState
from scheduler.wheel.state import WheelState
from scheduler.wheel.step import WheelStep
from tests.support.clock import ManualClock
from tests.support.faulty_disk import Fate, FaultyDisk, UnsyncedDisk
from tests.support.faulty_timeline import FaultyTimeline

TOPIC = "orders"


def small_sizes(*, precision_ms: int = 1000, window_slots: int = 30, log_units: int = 50) -> Sizes:
    """Sizes that make everything roll over soon."""
    return Sizes(
        segment_bytes=4 << 20,
        consume_queue_units=1000,
        index_slots=1000,
        index_entries=20_000,
        timer_log_bytes=log_units * TIMER_UNIT_BYTES + BLANK_BYTES_MIN,
        timer_precision_ms=precision_ms,
        timer_window_slots=window_slots,
    )


class WheelWorld:
    """One store, one engine, one model."""

    def __init__(
        self,
        sizes: Sizes | None = None,
        *,
        root: Path | None = None,
        disk: Disk | None = None,
        clock: ManualClock | None = None,
        engine: str = "wheel",
    ) -> None:
        self.engine = engine
        self._folder = tempfile.TemporaryDirectory() if root is None else None
        self.root = Path(self._folder.name) if self._folder else root or Path()
        self.clock = clock or ManualClock()
        self.disk = disk or UnsyncedDisk()
        self.settings = StoreSettings(sizes=sizes or small_sizes(), ballast_bytes=1 << 20)
        self.store = Store.open(self.root, self.settings, clock=self.clock, disk=self.disk)
        self.replace_step()
        #: Message id -> due time, of what was sent and not cancelled.
        self.due_ms: dict[str, int] = {}
        #: Message id -> (store time, position in the topic), of what was handed over.
        self.handed: dict[str, tuple[int, int]] = {}
        self._seen = 0

    # -- acting ---------------------------------------------------------------------------------

    def send(self, delays_ms: Sequence[int]) -> list[str]:
        """Send timed messages, due so long from now."""
        now_ms = self.clock.now_ms()
        ids = self.store.new_ids(TOPIC, now_ms, len(delays_ms))
        dues = [now_ms + max(1, delay) for delay in delays_ms]
        self.store.send(
            [
                Outgoing(
                    topic=TOPIC, queue_id=0, unique_id=id_, body=b"x", born_ms=now_ms, due_ms=due
                )
                for id_, due in zip(ids, dues, strict=True)
            ]
        )
        self.due_ms.update(zip(ids, dues, strict=True))
        return ids

    def cancel(self, message_id: str) -> str:
        """Cancel a message; the outcome."""
        decision = self.store.cancel(message_id, by="test")
        if decision.outcome == "cancelled":
            del self.due_ms[message_id]
        return decision.outcome

    def turn(self) -> bool:
        """One step of the wheel; whether there is more to do."""
        return self.step.advance(self.clock.now_ms()).more

    def turn_until_enqueued(self, fate: Fate) -> None:
        """Take one batch in, and die before any checkpoint."""
        waiting = scan(self.store, self.step.engine.books.queue_offset, 1_000).waiting
        self.step.engine.follow_clock(self.clock.now_ms())
        self.step.engine.enqueue(waiting)
        fate.dead = True

    def settle(self) -> int | None:
        """Step until nothing is left to do now; when there is something next."""
        for _ in range(10_000):
            advanced = self.step.advance(self.clock.now_ms())
            if not advanced.more:
                next_ms = advanced.next_due_ms
                assert next_ms is None or next_ms > self.clock.now_ms(), "the loop would not sleep"
                return next_ms
        raise AssertionError("the wheel never comes to rest")

    def run_until(self, until_ms: int) -> None:
        """Step and sleep as the loop does: until the next due time, half a second at most."""
        while True:
            next_ms = self.settle()
            now_ms = self.clock.now_ms()
            if now_ms >= until_ms:
                return
            target_ms = min(until_ms, now_ms + 500, next_ms or until_ms)
            self.clock.advance(max(1, target_ms - now_ms))

    def reopen(self) -> None:
        """Stop the engine cleanly and start a new one."""
        self.step.close()
        self.replace_step()

    def replace_step(self, disk: Disk | None = None) -> None:
        """Start a new holder on what the old one, which died, left behind."""
        bury(getattr(self, "step", None))
        self.step = new_step(self.store, self.engine, disk)
        self.step.open()

    # -- comparing ------------------------------------------------------------------------------

    def look(self) -> dict[str, tuple[int, int]]:
        """What was handed over so far; fails on a double or an early one."""
        bounds = self.store.queue_bounds(TOPIC, 0)
        units = self.store.read_units(TOPIC, 0, self._seen, bounds.max_offset - self._seen)
        for raw in self.store.read_records(units):
            assert raw is not None
            record = decode_record(raw)
            assert record.unique_id not in self.handed, "handed over twice"
            due_ms = self.due_ms.get(record.unique_id)
            assert due_ms is not None, "handed over although it was cancelled"
            assert record.store_ms >= due_ms, "handed over before its time"
            self.handed[record.unique_id] = (record.store_ms, record.queue_offset)
        self._seen = bounds.max_offset
        return self.handed

    def assert_sound(self) -> None:
        """Each slot that may hold anything unsettled leads to exactly its units of the log.

        Of a timeline: each message that waits and was scanned has its entry, or is listed.
        """
        state = self.step.engine.books
        if isinstance(state, TimelineState):
            assert_timeline_whole(self, state)
            return
        assert isinstance(state, WheelState)
        geometry, log = state.geometry, state.log
        units = [log.read(number, 1)[0] for number in range(log.begin_number, log.end_number)]
        positions = geometry.positions(log.begin_number, len(units)).tolist()
        chains: dict[int, list[int]] = {}
        for unit, position in zip(units, positions, strict=True):
            slot_ms = int(unit["written_ms"]) + int(unit["delay_ms"])
            chain = chains.setdefault(slot_ms, [])
            if slot_ms >= state.settled_ms:
                assert int(unit["previous"]) == (chain[-1] if chain else -1)
            chain.append(position)
        for slot_ms, chain in chains.items():
            if slot_ms >= state.settled_ms:
                assert state.wheel.slot(slot_ms) == (chain[0], chain[-1], len(chain))

    def check(self) -> None:
        """What is due is handed over, and nothing else."""
        handed = self.look()
        now_ms = self.clock.now_ms()
        wanted = {id_ for id_, due_ms in self.due_ms.items() if due_ms <= now_ms}
        assert wanted <= handed.keys(), f"{len(wanted - handed.keys())} passed over"

    def waiting(self) -> int:
        """How many messages of the timer topic wait."""
        return self.store.count_waiting(TIMER_TOPIC, 0)

    # -- leaving --------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave."""
        self.step.close()
        self.store.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        elif self._folder is not None:
            self._folder.cleanup()


def new_step(store: Store, engine: str, disk: Disk | None = None) -> TimerStep:
    """A step that syncs in the turn itself; the fate of a faulty disk is its timeline's too."""
    if engine == "wheel":
        return WheelStep(store, disk=disk, sync_beside=False)
    fate = disk.fate if isinstance(disk, FaultyDisk) else Fate()
    rocks = RocksEngine(
        store,
        disk=disk,
        sync_beside=False,
        open_timeline=lambda path: FaultyTimeline(path, fate),
    )
    return TimerStep(store, rocks)


def bury(step: TimerStep | None) -> None:
    """Let go of a dead holder's database, as the kernel does when its process is gone."""
    if step is not None and isinstance(step.engine, RocksEngine):
        step.engine._let_go()


def assert_timeline_whole(world: WheelWorld, state: TimelineState) -> None:
    """See `WheelWorld.assert_sound`."""
    engine = world.step.engine
    assert isinstance(engine, RocksEngine)
    entries = engine.timeline.read(time_key(state.settled_ms + 1), TIMES_END, 1_000_000)
    values = np.frombuffer(b"".join(value for _, value in entries), VALUE)
    held = set(values["queue_offset"].tolist())
    found = world.store.schedule(TIMER_TOPIC, 0, 0, state.queue_offset)
    waiting = set((np.flatnonzero(found.settled == 0) + found.start).tolist())
    assert waiting <= held


def due_order(world: WheelWorld) -> list[int]:
    """The due times of what was handed over, in the order of the topic."""
    places = sorted(world.handed.items(), key=lambda item: item[1][1])
    return [world.due_ms[id_] for id_, _ in places]


def ascending(numbers: Sequence[int]) -> bool:
    """Whether no number is smaller than the one before."""
    return bool((np.diff(np.array(numbers, dtype=np.int64)) >= 0).all())
