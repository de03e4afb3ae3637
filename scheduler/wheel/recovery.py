"""Recovery: what a new holder does before its first step.

1. The checkpoint says up to where TimerLog and wheel are on the device. Without one there is
   nothing to recover: the caller rebuilds.
2. The units behind it are read until the first that is not whole; the log ends there.
3. Their slots are set from them: a chain's first unit points at -1, or at the unit that was the
   newest at the checkpoint. Counts (and the first unit) of chains that are older than the
   checkpoint are counted again in the log, so they are exact.
4. Slots that lead behind the log's end (the machine kept the wheel's page and lost the log's) are
   counted again in the log too, or emptied.
5. Scanning begins at the checkpoint: what has its unit already gets another, and goes once.
6. The read time is the checkpoint's, however long ago that was: no slot is given up. Where the
   clock was set back after it, units behind it lie in earlier slots: then the earliest of these.

Every half-done state of a writer is mended so: the TimerLog is written first, then the wheel, and
the checkpoint last; what was written twice is dropped when it is read out, since it settles once.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queues.store.names import TIMER_TOPIC
from queues.store.timerunits import SLOT, Longs, whole_units
from scheduler.engine.scan import QUEUE_ID
from scheduler.wheel.chain import chain
from scheduler.wheel.checkpoint import WheelCheckpoint
from scheduler.wheel.errors import ChainBroken
from scheduler.wheel.limits import REPLAY_UNITS
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(slots=True)
class Replayed:
    """The slots that the units behind the checkpoint touched."""

    slots_ms: Longs
    first: Longs
    last: Longs
    count: Longs
    #: For each slot: what its first replayed unit points at.
    before: Longs


def recover(
    store: "Store", wheel: TimerWheel, log: TimerLog, checkpoint: WheelCheckpoint
) -> tuple[int, int]:
    """Mend wheel and log; the queue offset to scan from and the slot to read from, ms.

    Raises `ChainBroken` for a rebuild.
    """
    read_ms = checkpoint.read_ms
    start = _start_number(log, checkpoint)
    units = _replay(log, start)
    log.cut(start + len(units))
    if len(units):
        replayed = _touched(log, start, units)
        _mend(wheel, log, start, replayed)
        read_ms = min(read_ms, int(replayed.slots_ms[0]))
    _mend_beyond(wheel, log)
    bounds = store.queue_bounds(TIMER_TOPIC, QUEUE_ID)
    # Not behind the replayed units: what was passed over beside them as settled may wait again, for
    # the log may have lost what settled it.
    return max(bounds.min_offset, min(checkpoint.queue_offset, bounds.max_offset)), read_ms


def _start_number(log: TimerLog, checkpoint: WheelCheckpoint) -> int:
    geometry = log.geometry
    start = geometry.unit_number(checkpoint.log_position)
    files = log.file_numbers()
    contiguous = not files or files == list(range(files[0], files[-1] + 1))
    reached = bool(files) and (files[-1] + 1) * geometry.units_per_file >= start
    missing = start > log.begin_number and not reached
    if not geometry.is_unit_position(checkpoint.log_position) or not contiguous or missing:
        raise ChainBroken(position=checkpoint.log_position)
    if start < log.begin_number:
        raise ChainBroken(position=checkpoint.log_position)
    log.begin_at(start)
    return start


def _replay(log: TimerLog, start: int) -> npt.NDArray[Any]:
    """The whole units from `start` on."""
    parts = []
    number = start
    while len(units := log.read(number, REPLAY_UNITS)):
        good = whole_units(units) & (units["previous"] < log.geometry.position(number + len(units)))
        kept = len(units) if good.all() else int(np.argmin(good))
        parts.append(units[:kept])
        number += kept
        if kept < len(units):
            break
    return np.concatenate(parts) if parts else log.read(start, 0)


def _touched(log: TimerLog, start: int, units: npt.NDArray[Any]) -> Replayed:
    slots_ms = (units["written_ms"] + units["delay_ms"]).astype(np.int64)
    positions = log.geometry.positions(start, len(units))
    chained = chain(slots_ms, positions, lambda slots: np.zeros(len(slots), dtype=SLOT))
    previous = units["previous"].astype(np.int64)
    before = previous[np.searchsorted(positions, chained.first)]
    return Replayed(chained.slots_ms, chained.first, chained.last, chained.count, before)


def _mend(wheel: TimerWheel, log: TimerLog, start: int, replayed: Replayed) -> None:
    """Set the touched slots, counting again what was in them at the checkpoint."""
    older = replayed.before >= 0
    if older.any():
        found = wheel.slots(replayed.slots_ms[older])
        if (found["first"] < 0).any() or (found["first"] > replayed.before[older]).any():
            raise ChainBroken(position=int(replayed.first[older][0]))
        first, _, count = _recount(log, replayed.slots_ms[older], int(found["first"].min()), start)
        replayed.first[older] = np.where(count > 0, first, replayed.first[older])
        replayed.count[older] += count
    wheel.put(replayed.slots_ms, replayed.first, replayed.last, replayed.count)


def _mend_beyond(wheel: TimerWheel, log: TimerLog) -> None:
    """Set the slots that lead behind the log's end by what the log holds of them."""
    slots_ms, firsts = wheel.leading_beyond(log.end_position)
    inside = firsts[firsts < log.end_position]
    begin = int(inside.min()) if len(inside) else log.end_position
    if len(slots_ms):
        first, last, count = _recount(log, slots_ms, begin, log.end_number)
        wheel.put(slots_ms, np.where(count > 0, first, -1), last, count)


def _recount(log: TimerLog, slots_ms: Longs, first: int, stop: int) -> tuple[Longs, Longs, Longs]:
    """First and last position and number of the units of ascending slots, up to unit `stop`."""
    firsts = np.full(len(slots_ms), np.iinfo(np.int64).max, dtype=np.int64)
    lasts = np.full(len(slots_ms), -1, dtype=np.int64)
    counts = np.zeros(len(slots_ms), dtype=np.int64)
    number = max(log.geometry.unit_number(first), log.begin_number)
    while number < stop:
        units = log.read(number, min(REPLAY_UNITS, stop - number))
        if not len(units):
            raise ChainBroken(position=log.geometry.position(number))
        found_ms = (units["written_ms"] + units["delay_ms"]).astype(np.int64)
        at = np.minimum(np.searchsorted(slots_ms, found_ms), len(slots_ms) - 1)
        mine = np.flatnonzero(slots_ms[at] == found_ms)
        positions = log.geometry.positions(number, len(units))
        np.minimum.at(firsts, at[mine], positions[mine])
        np.maximum.at(lasts, at[mine], positions[mine])
        counts += np.bincount(at[mine], minlength=len(slots_ms))
        number += len(units)
    return firsts, lasts, counts
