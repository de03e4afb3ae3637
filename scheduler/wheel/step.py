"""The wheel's step: the five stages in turn, what is due first.

`advance` hands over what is due, takes new messages in (about a millisecond's worth when something
is due soon), reads slots out ahead of their time, loads them, and lets the checkpoint follow.
"""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from queues.store.disk import Disk
from queues.store.errors import DiskFull, WrongFileSize
from queues.store.names import TIMER_TOPIC
from scheduler.step import Advanced
from scheduler.wheel.checkpoint import forget_checkpoint, load_checkpoint
from scheduler.wheel.checkpointing import Checkpointing
from scheduler.wheel.cleaning import Cleaning
from scheduler.wheel.dequeue import dequeue, next_read_ms
from scheduler.wheel.enqueue import enqueue
from scheduler.wheel.errors import ChainBroken, StepNotOpened, WheelSizeDiffers
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.handover import hand_over
from scheduler.wheel.limits import (
    CLEAN_SLACK_MS,
    ENQUEUE_MAX,
    ENQUEUE_MIN,
    ENQUEUE_PER_MS,
    FAR_AHEAD_MS,
    HAND_OVER_MAX,
    LISTED_MAX,
    LOAD_MIN,
    LOAD_PER_MS,
    LOADED_MAX,
    READ_MIN,
    READ_PER_MS,
    READ_UNITS_MAX,
    SCAN_MAX,
    SLACK_MS_MAX,
)
from scheduler.wheel.load import load, loadable
from scheduler.wheel.recovery import recover
from scheduler.wheel.relocate import relocate_stuck, spill_failing
from scheduler.wheel.report import report_of
from scheduler.wheel.roll import roll
from scheduler.wheel.scan import QUEUE_ID, scan
from scheduler.wheel.state import WheelState
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

if TYPE_CHECKING:
    from queues.store.store import Store

_FULL_RETRY_MS = 1_000


class WheelStep:
    """The `wheel` group's work."""

    def __init__(
        self, store: "Store", *, disk: Disk | None = None, sync_beside: bool = True
    ) -> None:
        """`sync_beside`: checkpoints are synced on a thread of their own, not in the step."""
        self._store = store
        self._disk = disk or store.disk
        self._sync_beside = sync_beside
        self._geometry = WheelGeometry.of(store.sizes)
        self._executor: ThreadPoolExecutor | None = None
        self._state: WheelState | None = None
        self._rebuild = False
        self._behind = 0
        self._full_until_ms = 0
        self._now_ms = 0

    # -- coming and going -----------------------------------------------------------------------

    def open(self) -> None:
        """Recover wheel and TimerLog; where that cannot be, the first step rebuilds them."""
        store, disk = self._store, self._disk
        checkpoint = load_checkpoint(disk, store.root)
        had_wheel = TimerWheel.exists(disk, store.root)
        wheel, log = self._files()
        self._executor = ThreadPoolExecutor(1, "wheel-sync") if self._sync_beside else None
        self._checkpointing = Checkpointing(
            store, disk, self._executor, counter=checkpoint.counter if checkpoint else 0
        )
        self._cleaning = Cleaning()
        self._rebuild = True
        self._full_until_ms = 0
        self._state = WheelState(self._geometry, wheel, log, 0, 0, 0)
        if checkpoint is None or not had_wheel:
            return
        try:
            self._state.queue_offset = recover(store, wheel, log, checkpoint)
        except ChainBroken:
            return
        self._state.settled_ms = self._state.read_ms = checkpoint.read_ms
        wheel.mark_unread_from(checkpoint.read_ms)
        self._rebuild = False

    def _files(self) -> tuple[TimerWheel, TimerLog]:
        disk, root = self._disk, self._store.root
        try:
            wheel = TimerWheel(disk, root, self._geometry)
        except WrongFileSize as error:
            raise WheelSizeDiffers(**error.fields) from error
        return wheel, TimerLog(disk, root, self._geometry)

    def close(self) -> None:
        """Make what was done durable and let the files go."""
        state, self._state = self._state, None
        if state is None:
            return
        try:
            # Without room for a last checkpoint the next holder replays a little more.
            with contextlib.suppress(DiskFull):
                self._checkpointing.wait()
                if not self._rebuild and state.write_ms:
                    state.move_hand(state.write_ms)
                    self._checkpointing.now(state, state.write_ms)
        finally:
            if self._executor is not None:
                self._executor.shutdown()
            state.log.close()
            state.wheel.close()

    # -- one step -------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> Advanced:
        """One bounded turn of all stages."""
        state, self._now_ms = self._opened(), now_ms
        if self._rebuild:
            self._start_anew(state, now_ms)
        try:
            return self._turn(state, now_ms)
        except ChainBroken:
            self._rebuild = True
            return Advanced(0, more=True, next_due_ms=now_ms)

    def _opened(self) -> WheelState:
        if self._state is None:
            raise StepNotOpened
        return self._state

    def _turn(self, state: WheelState, now_ms: int) -> Advanced:
        self._follow_clock(state, now_ms)
        moved = hand_over(state, self._store, now_ms, HAND_OVER_MAX)
        self._take_in(state, now_ms)
        slack_ms = self._slack_ms(state, now_ms)
        units_max = READ_MIN + slack_ms * READ_PER_MS
        reading = dequeue(state, now_ms, min(units_max, READ_UNITS_MAX))
        load(state, self._store, now_ms, min(LOAD_MIN + slack_ms * LOAD_PER_MS, LOADED_MAX))
        self._place_again(state, now_ms)
        state.move_hand(now_ms)
        self._checkpointing.step(state, now_ms)
        if self._checkpointing.durable is not None and slack_ms > CLEAN_SLACK_MS:
            self._cleaning.step(state, self._checkpointing.durable.read_ms)
        next_due_ms = self._next_due_ms(state)
        more = (
            reading
            or loadable(state, now_ms)
            or (now_ms >= self._full_until_ms and self._can_take_in(state))
            or (next_due_ms is not None and next_due_ms <= now_ms)
        )
        return Advanced(moved, more, next_due_ms)

    def _follow_clock(self, state: WheelState, now_ms: int) -> None:
        """Bring the hands back when the clock was set back, so that near slots are read again."""
        precision_ms = self._geometry.precision_ms
        state.write_ms = now_ms // precision_ms * precision_ms
        lowest_ms = state.wheel.oldest_possible_ms
        clock_ms = max(self._geometry.slot_of(now_ms), lowest_ms)
        if state.read_ms - clock_ms > FAR_AHEAD_MS + 2 * precision_ms:
            state.rewind(clock_ms)
        state.settled_ms = min(state.settled_ms, state.clock_slot_ms(now_ms))

    def _slack_ms(self, state: WheelState, now_ms: int) -> int:
        """How long until something is due, at most `SLACK_MS_MAX`."""
        at_ms = _next_hand_over_ms(state)
        return SLACK_MS_MAX if at_ms is None else max(0, min(at_ms - now_ms, SLACK_MS_MAX))

    def _take_in(self, state: WheelState, now_ms: int) -> None:
        """Scan and enqueue, as much as fits before the next message is due."""
        if now_ms < self._full_until_ms or state.due.size >= LISTED_MAX:
            return
        slack_ms = self._slack_ms(state, now_ms)
        count_max = min(ENQUEUE_MAX, ENQUEUE_MIN + slack_ms * ENQUEUE_PER_MS)
        stepped_over = 0
        while stepped_over < SCAN_MAX:
            scanned = scan(self._store, state.queue_offset, count_max)
            try:
                enqueue(state, scanned.waiting)
            except DiskFull:
                self._full_until_ms = now_ms + _FULL_RETRY_MS
                return
            stepped_over += max(count_max, scanned.next_offset - state.queue_offset)
            state.queue_offset, self._behind = scanned.next_offset, scanned.behind
            if len(scanned.waiting) or not scanned.behind:
                return

    def _can_take_in(self, state: WheelState) -> bool:
        """Whether messages wait to be enqueued, or to be placed again, and there is room."""
        return bool(state.rolls) or (self._behind > 0 and state.due.size < LISTED_MAX)

    def _place_again(self, state: WheelState, now_ms: int) -> None:
        if now_ms < self._full_until_ms:
            return
        try:
            roll(state, self._store, ENQUEUE_MAX)
            relocate_stuck(state, self._store)
            spill_failing(state, self._store, now_ms)
        except DiskFull:
            self._full_until_ms = now_ms + _FULL_RETRY_MS

    def _next_due_ms(self, state: WheelState) -> int | None:
        times = (_next_hand_over_ms(state), next_read_ms(state))
        return min((time for time in times if time is not None), default=None)

    # -- rebuilding -----------------------------------------------------------------------------

    def _start_anew(self, state: WheelState, now_ms: int) -> None:
        """Empty wheel and log; scanning from the first waiting message fills them again."""
        self._checkpointing.wait()
        forget_checkpoint(self._disk, self._store.root)
        state.wheel.clear()
        state.log.clear()
        clock_ms = self._geometry.slot_of(now_ms)
        state.settled_ms = state.read_ms = clock_ms
        state.rewind(clock_ms)
        state.queue_offset = self._store.first_unsettled(TIMER_TOPIC, QUEUE_ID)
        self._checkpointing.durable = None
        self._rebuild = False

    # -- telling --------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What the console shows; see `report.WheelReport`."""
        state = self._state
        if state is None or self._rebuild:
            return {"rebuilding": self._rebuild}
        durable, lateness = self._checkpointing.durable, state.meter.read()
        full = state.write_ms < self._full_until_ms
        report = report_of(
            self._store, state, durable=durable, now_ms=self._now_ms, full=full
        ).as_dict()
        return report | {
            "lateness_p50_ms": lateness.p50_ms if lateness else None,
            "lateness_p99_ms": lateness.p99_ms if lateness else None,
        }


def _next_hand_over_ms(state: WheelState) -> int | None:
    """When the first of what was read out is due."""
    listed_ms = state.due.next_at_ms
    if not state.runs:
        return listed_ms
    read_ms = state.runs[0].next_due_ms
    return read_ms if listed_ms is None else min(listed_ms, read_ms)
