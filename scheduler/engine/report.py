"""The timer's report: what `GET /timer-wheel`, `/metrics` and the console show of it.

The holder's report travels in its loop's status page, so that any process can read it;
`resting_report` answers from the durable checkpoint when nobody holds the timer.
"""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from queues.store.errors import StoreError
from queues.store.names import TIMER_TOPIC
from scheduler.engine.books import Books
from scheduler.engine.protocol import TimerEngine
from scheduler.engine.scan import QUEUE_ID

if TYPE_CHECKING:
    from queues.store.store import Store


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the five stages and what waits in front of it."""

    #: `scan`, `enqueue`, `dequeue`, `load` or `hand_over`.
    stage: str
    #: Messages that wait for it; None: the engine does not count them.
    messages: int | None
    #: How far it is behind, ms: how long the first of them has waited, or has been due.
    lag_ms: int


@dataclass(frozen=True, slots=True)
class TimerReport:
    """The timer, as its holder or its checkpoint sees it. Times in ms."""

    #: Which engine keeps the timed messages.
    engine: str
    #: Width of a slot.
    precision_ms: int
    #: Nothing before this time is unsettled.
    read_time_ms: int
    #: Slots before this time were read out.
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
    #: When the last durable checkpoint was made; None before the first.
    checkpoint_ms: int | None
    #: True while the disk has no room for the engine's files.
    disk_full: bool = False
    #: The stages, in their order.
    stages: list[Stage] = field(default_factory=list)
    #: What the engine adds: its files.
    files: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values, the engine's own on one level with the rest."""
        told = asdict(self)
        files: dict[str, Any] = told.pop("files")
        return told | files


def report_of(store: "Store", engine: TimerEngine, *, now_ms: int, full: bool) -> TimerReport:
    """The holder's report."""
    books = engine.books
    messages, age_ms = enqueue_lag(store, books.queue_offset, now_ms)
    next_ms = books.due.next_at_ms
    return TimerReport(
        engine=engine.name,
        precision_ms=books.precision_ms,
        read_time_ms=books.settled_ms,
        read_ahead_ms=books.read_ms,
        write_time_ms=books.write_ms,
        dequeued=books.waiting_keys,
        loaded=books.due.size,
        failing=books.failing,
        enqueue_lag_messages=messages,
        enqueue_lag_ms=age_ms,
        behind_ms=_late_by(next_ms, now_ms),
        checkpoint_ms=engine.durable_ms,
        disk_full=full,
        stages=_stages(books, engine, (messages, age_ms), now_ms, full=full),
        files=engine.files(),
    )


def _stages(
    books: Books, engine: TimerEngine, behind: tuple[int, int], now_ms: int, *, full: bool
) -> list[Stage]:
    """What waits in front of each stage.

    A batch that was scanned is enqueued in the same turn, so what waits for that are messages whose
    batch was refused.
    """
    unread, unread_ms = engine.unread(now_ms)
    next_read_ms = books.runs[0].next_due_ms if books.runs else None
    return [
        Stage("scan", *behind),
        Stage("enqueue", *(behind if full else (0, 0))),
        Stage("dequeue", unread, unread_ms),
        Stage("load", books.waiting_keys, _late_by(next_read_ms, now_ms)),
        Stage("hand_over", books.due.size, _late_by(books.due.next_at_ms, now_ms)),
    ]


def resting_report(
    store: "Store", engine: str, *, read_ms: int, queue_offset: int, written_ms: int,
    now_ms: int, files: dict[str, Any],
) -> TimerReport:  # fmt: skip
    """What a durable checkpoint tells while nobody holds the timer."""
    messages, age_ms = enqueue_lag(store, queue_offset, now_ms)
    return TimerReport(
        engine=engine,
        precision_ms=store.sizes.timer_precision_ms,
        read_time_ms=read_ms,
        read_ahead_ms=read_ms,
        write_time_ms=written_ms,
        dequeued=0,
        loaded=0,
        failing=0,
        enqueue_lag_messages=messages,
        enqueue_lag_ms=age_ms,
        behind_ms=0,
        checkpoint_ms=written_ms,
        files=files,
    )


def _late_by(due_ms: int | None, now_ms: int) -> int:
    return 0 if due_ms is None else max(0, now_ms - due_ms)


def enqueue_lag(store: "Store", queue_offset: int, now_ms: int) -> tuple[int, int]:
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
