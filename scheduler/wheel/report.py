"""The wheel's report: what `GET /timer-wheel` and the console show of it.

The holder's report travels in its loop's status page, so that any process can read it;
`resting_report` answers from the checkpoint when nobody holds the wheel.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from queues.store.errors import StoreError
from queues.store.names import TIMER_TOPIC
from scheduler.wheel.checkpoint import WheelCheckpoint, load_checkpoint
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.scan import QUEUE_ID
from scheduler.wheel.state import WheelState
from scheduler.wheel.timerlog import FOLDER_NAME

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(frozen=True, slots=True)
class WheelReport:
    """The wheel, as its holder or its checkpoint sees it. Times in ms."""

    #: Which engine keeps the timed messages.
    engine: str
    #: Width of a slot.
    precision_ms: int
    #: How far ahead a message lies in its own slot.
    window_ms: int
    #: Nothing before this time is unsettled.
    read_time_ms: int
    #: Slots before this time were read out of the wheel.
    read_ahead_ms: int
    #: The time of the last step.
    write_time_ms: int
    #: Messages read out and not loaded yet.
    dequeued: int
    #: Messages loaded and not handed over yet.
    loaded: int
    #: Messages that failed and are tried again.
    failing: int
    #: Messages of the timer topic that were not scanned yet, and the age of the first.
    enqueue_lag_messages: int
    enqueue_lag_ms: int
    #: How late the next message to be handed over is.
    behind_ms: int
    #: Files of the TimerLog, and where it begins and ends.
    log_files: int
    log_begin: int
    log_end: int
    #: When the last durable checkpoint was made; None before the first.
    checkpoint_ms: int | None
    #: True while the disk has no room for the TimerLog.
    disk_full: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return asdict(self)


def report_of(
    store: "Store", state: WheelState, *, durable: WheelCheckpoint | None, now_ms: int, full: bool
) -> WheelReport:
    """The holder's report."""
    messages, age_ms = _enqueue_lag(store, state.queue_offset, now_ms)
    next_ms = state.due.next_at_ms
    return WheelReport(
        engine="wheel",
        precision_ms=state.geometry.precision_ms,
        window_ms=state.geometry.window_ms,
        read_time_ms=state.settled_ms,
        read_ahead_ms=state.read_ms,
        write_time_ms=state.write_ms,
        dequeued=state.waiting_keys,
        loaded=state.due.size,
        failing=state.failing,
        enqueue_lag_messages=messages,
        enqueue_lag_ms=age_ms,
        behind_ms=0 if next_ms is None else max(0, now_ms - next_ms),
        log_files=state.log.file_count,
        log_begin=state.log.begin_position,
        log_end=state.log.end_position,
        checkpoint_ms=durable.written_ms if durable else None,
        disk_full=full,
    )


def resting_report(store: "Store", now_ms: int) -> WheelReport | None:
    """What the checkpoint tells; None when the wheel was never used."""
    checkpoint = load_checkpoint(store.disk, store.root)
    if checkpoint is None:
        return None
    geometry = WheelGeometry.of(store.sizes)
    names = [name for name in store.disk.list_names(store.root / FOLDER_NAME) if name.isdecimal()]
    messages, age_ms = _enqueue_lag(store, checkpoint.queue_offset, now_ms)
    return WheelReport(
        engine="wheel",
        precision_ms=geometry.precision_ms,
        window_ms=geometry.window_ms,
        read_time_ms=checkpoint.read_ms,
        read_ahead_ms=checkpoint.read_ms,
        write_time_ms=checkpoint.written_ms,
        dequeued=0,
        loaded=0,
        failing=0,
        enqueue_lag_messages=messages,
        enqueue_lag_ms=age_ms,
        behind_ms=0,
        log_files=len(names),
        log_begin=int(names[0]) if names else 0,
        log_end=checkpoint.log_position,
        checkpoint_ms=checkpoint.written_ms,
    )


def _enqueue_lag(store: "Store", queue_offset: int, now_ms: int) -> tuple[int, int]:
    """Messages behind `queue_offset`, and how long the first of them has waited."""
    behind = store.queue_bounds(TIMER_TOPIC, QUEUE_ID).max_offset - queue_offset
    if behind <= 0:
        return 0, 0
    unit = store.read_units(TIMER_TOPIC, QUEUE_ID, queue_offset, 1)
    if not len(unit):
        return behind, 0
    try:
        record = store.read_record(int(unit["log_offset"][0]))
    except StoreError:
        return behind, 0
    return behind, max(0, now_ms - record.store_ms)
