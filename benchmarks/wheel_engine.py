"""The timing wheel alone: how fast units go in and come out, and what a crowded second costs.

Prints one JSON object. Rates are a second of one core. `hand_over_alone_s` is what the store takes
for the same messages without a wheel, so the difference is the wheel's own cost.
"""

import argparse
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from queues.store import Outgoing, Store, StoreSettings
from queues.store.disk import Disk
from queues.store.names import TIMER_TOPIC
from scheduler.engine.limits import READ_UNITS_MAX
from scheduler.engine.scan import Waiting
from scheduler.wheel.enqueue import enqueue
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.state import WheelState
from scheduler.wheel.step import WheelStep
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

START_MS = 1_700_000_000_000
MIB = 1 << 20
ENQUEUE_MAX = 16_384


class Turning:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.wall_ms


def new_state(root: Path) -> WheelState:
    """An empty wheel of RocketMQ's size."""
    geometry = WheelGeometry(1000, 604_800, 16 * MIB)
    wheel, log = TimerWheel(Disk(), root, geometry), TimerLog(Disk(), root, geometry)
    return WheelState(
        geometry=geometry,
        wheel=wheel,
        log=log,
        settled_ms=START_MS,
        read_ms=START_MS,
        write_ms=START_MS,
    )


def batches(count: int, span_ms: int, batch: int) -> list[Waiting]:
    """Messages with random due times, ready to be enqueued."""
    chance = np.random.default_rng(7)
    offsets = np.arange(count, dtype=np.int64)
    due_ms = START_MS + 5_000 + chance.integers(1, span_ms + 1, count)
    sizes = np.full(count, 300, dtype=np.int32)
    return [
        Waiting(offsets[at:end], due_ms[at:end], offsets[at:end] * 300, sizes[at:end])
        for at in range(0, count, batch)
        for end in (min(count, at + batch),)
    ]


def rate(count: int, work: Callable[[], Any]) -> float:
    """Items a second."""
    begun = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - begun))


def enqueue_rate(count: int, span_ms: int, batch: int = ENQUEUE_MAX) -> float:
    """Units a second into TimerLog and wheel."""
    with tempfile.TemporaryDirectory() as folder:
        state = new_state(Path(folder))
        todo = batches(count, span_ms, batch)

        def work() -> None:
            for waiting in todo:
                enqueue(state, waiting)

        return rate(count, work)


def read_out(count: int, *, run_keys_max: int) -> dict[str, float]:
    """One slot with `count` messages, read to its end."""
    with tempfile.TemporaryDirectory() as folder:
        state = new_state(Path(folder))
        for waiting in batches(count, 999, ENQUEUE_MAX):
            enqueue(state, waiting)
        slot_ms = START_MS + 5_000
        tracemalloc.start()
        reading = SlotReading(slot_ms, state.wheel, state.log, run_keys_max=run_keys_max)
        found = 0

        def work() -> None:
            nonlocal found
            while not reading.finished:
                keys = reading.read(READ_UNITS_MAX)
                found += 0 if keys is None else len(keys)

        per_second = rate(count, work)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found == count
        return {"per_second": per_second, "peak_mib": round(peak / MIB, 1)}


def crowded_second(count: int) -> dict[str, float]:
    """`count` messages due within one second, from the moment when they are all due."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Turning()
        with Store.open(Path(folder), StoreSettings(), clock=clock) as store:
            send(store, clock, count)
            step = WheelStep(store)
            step.open()
            begun = time.perf_counter()
            while step.advance(clock.wall_ms).more:
                pass
            enqueued = time.perf_counter() - begun
            clock.wall_ms += 60_000
            begun, moved, more = time.perf_counter(), 0, True
            while more:
                advanced = step.advance(clock.wall_ms)
                moved, more = moved + advanced.moved, advanced.more
            taken = time.perf_counter() - begun
            step.close()
            assert moved == count
        return {
            "scan_and_enqueue_s": round(enqueued, 2),
            "hand_over_s": round(taken, 2),
            "hand_over_alone_s": round(hand_over_alone(count), 2),
        }


def send(store: Store, clock: Turning, count: int) -> None:
    """Send messages that are due at random milliseconds of one second."""
    chance = np.random.default_rng(7)
    for begin in range(0, count, 10_000):
        number = min(10_000, count - begin)
        ids = store.new_ids("crowd", clock.wall_ms, number)
        dues = (clock.wall_ms + 50_000 + chance.integers(1, 1001, number)).tolist()
        store.send(
            [
                Outgoing("crowd", 0, id_, b"x" * 100, clock.wall_ms, due_ms=due)
                for id_, due in zip(ids, dues, strict=True)
            ]
        )


def hand_over_alone(count: int) -> float:
    """Seconds that the store takes to hand the same messages over."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Turning()
        with Store.open(Path(folder), StoreSettings(), clock=clock) as store:
            send(store, clock, count)
            clock.wall_ms += 60_000
            begun = time.perf_counter()
            for at in range(0, count, 4_000):
                store.hand_over(TIMER_TOPIC, 0, np.arange(at, min(count, at + 4_000)))
            return time.perf_counter() - begun


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--huge", type=int, default=0, help="messages of one huge slot")
    parser.add_argument("--crowd", type=int, default=100_000)
    asked = parser.parse_args()
    hour_ms, week_ms = 3_600_000, 600_000_000
    result: dict[str, Any] = {
        "enqueue_per_second": {
            "one_hour": enqueue_rate(asked.units, hour_ms),
            "one_week": enqueue_rate(asked.units, week_ms),
            "small_batches": enqueue_rate(asked.units, hour_ms, 1_000),
        },
        "read_out": read_out(asked.units, run_keys_max=1_000_000),
        "crowded_second": crowded_second(asked.crowd),
    }
    if asked.huge:
        result["read_out_huge"] = read_out(asked.huge, run_keys_max=1_000_000)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
