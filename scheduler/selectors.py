"""The schedule as operators look at it: levels, wheel and loops, read without holding anything."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from queues import wires
from queues.durations import format_duration
from queues.store import Store, StoreError
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.wires import LoopState
from scheduler.rocksdb.resting import resting_timeline
from scheduler.wheel.resting import resting_wheel

#: Settled units looked at, from the newest back, for the last one that was delivered.
_LOOK_BACK = 64
#: Waiting units looked at for the next due time; within a generation the first is the next.
_LOOK_AHEAD = 65_536


@dataclass(frozen=True, slots=True)
class LevelState:
    """One delay level."""

    level: int
    #: As the table writes it.
    delay: str
    delay_ms: int
    #: The first offset that waits, and the end of the queue.
    delay_offset: int
    max_offset: int
    #: Messages that wait.
    pending: int
    #: When the next one is due, ms; None: nothing waits.
    next_due_ms: int | None
    #: Store time of the newest hand-over, ms; None: none is known.
    last_delivered_ms: int | None
    #: How long the next one is due already.
    behind_ms: int
    #: The loop that runs the level, if it is held.
    loop: LoopState | None


def level_states() -> list[LevelState]:
    """Every level of the table, and what else was ever stored in one."""
    wiring = wires.wiring()
    store, table = wiring.get_store(), wiring.get_rules().levels
    now_ms = wiring.get_clock().now_ms()
    loops = [loop for loop in wiring.get_schedule().loops() if loop.name.startswith("levels")]
    delays = dict(enumerate(table.delays_ms, start=1))
    stored = {queue_id + 1 for queue_id in store.queue_ids(SCHEDULE_TOPIC)}
    return [
        _level_state(store, level, delays.get(level, 0), now_ms, loops)
        for level in sorted(delays.keys() | stored)
    ]


def loop_states() -> list[LoopState]:
    """Every loop."""
    return wires.wiring().get_schedule().loops()


def wheel_loop() -> LoopState:
    """The loop that turns the wheel."""
    return next(loop for loop in loop_states() if loop.name == "wheel")


def wheel_detail() -> Mapping[str, Any]:
    """What the wheel's holder reports, or what its checkpoint tells; empty if it was never used."""
    wiring = wires.wiring()
    detail = wheel_loop().detail
    if "engine" in detail:
        return detail
    store, now_ms = wiring.get_store(), wiring.get_clock().now_ms()
    resting = resting_wheel(store, now_ms) or resting_timeline(store, now_ms)
    return {} if resting is None else resting.as_dict()


def timer_engine() -> str:
    """Which engine is configured."""
    return wires.wiring().get_rules().timer_engine


def timed_waiting() -> int:
    """Timed messages that wait, wherever the wheel is with them."""
    return wires.wiring().get_store().count_waiting(TIMER_TOPIC, 0)


def _level_state(
    store: Store, level: int, delay_ms: int, now_ms: int, loops: list[LoopState]
) -> LevelState:
    queue_id = level - 1
    first = store.first_unsettled(SCHEDULE_TOPIC, queue_id)
    end = store.queue_bounds(SCHEDULE_TOPIC, queue_id).max_offset
    next_due_ms = _next_due_ms(store, queue_id, first, end)
    return LevelState(
        level=level,
        delay=format_duration(delay_ms),
        delay_ms=delay_ms,
        delay_offset=first,
        max_offset=end,
        pending=store.count_waiting(SCHEDULE_TOPIC, queue_id, first),
        next_due_ms=next_due_ms,
        last_delivered_ms=_last_delivered_ms(store, queue_id, first),
        behind_ms=0 if next_due_ms is None else max(0, now_ms - next_due_ms),
        loop=loops[queue_id % len(loops)] if loops else None,
    )


def _next_due_ms(store: Store, queue_id: int, first: int, end: int) -> int | None:
    found = store.schedule(SCHEDULE_TOPIC, queue_id, first, min(end, first + _LOOK_AHEAD))
    waiting = found.due_ms[found.settled == 0]
    return int(waiting.min()) if len(waiting) else None


def _last_delivered_ms(store: Store, queue_id: int, first: int) -> int | None:
    """Store time of the newest hand-over before the delay offset."""
    found = store.schedule(SCHEDULE_TOPIC, queue_id, max(0, first - _LOOK_BACK), first)
    for settled in np.sort(found.settled[found.settled > 0])[::-1].tolist():
        with contextlib.suppress(StoreError):
            record = store.read_record(settled)
            if record.properties.get("PD_FROM", "").startswith("H"):
                return record.store_ms
    return None
