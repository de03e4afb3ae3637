"""A small world for the timing wheel: a real store, a clock moved by hand, and a model to compare.

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
from scheduler.wheel.step import WheelStep
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk

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
    """One store, one wheel, one model."""

    def __init__(
        self,
        sizes: Sizes | None = None,
        *,
        root: Path | None = None,
        disk: Disk | None = None,
        clock: ManualClock | None = None,
    ) -> None:
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
        """Stop the wheel cleanly and start a new one."""
        self.step.close()
        self.replace_step()

    def replace_step(self, disk: Disk | None = None) -> None:
        """Start a new wheel on what the old one, which died, left behind."""
        self.step = WheelStep(self.store, disk=disk, sync_beside=False)
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
        """Each slot that may hold anything unsettled leads to exactly its units of the log."""
        state = self.step._state
        assert state is not None
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


def due_order(world: WheelWorld) -> list[int]:
    """The due times of what was handed over, in the order of the topic."""
    places = sorted(world.handed.items(), key=lambda item: item[1][1])
    return [world.due_ms[id_] for id_, _ in places]


def ascending(numbers: Sequence[int]) -> bool:
    """Whether no number is smaller than the one before."""
    return bool((np.diff(np.array(numbers, dtype=np.int64)) >= 0).all())
