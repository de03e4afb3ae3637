"""The shapes of levels, wheel and loops."""

from typing import Annotated

from msgspec import Meta, Struct

from queues.api.shapes.sending import Moment


class DelayLevel(Struct, kw_only=True):
    """A delay level and how far it is."""

    level: int
    delay: str
    delay_ms: int
    #: The first offset of the level's queue that still waits.
    delay_offset: int
    max_offset: int
    #: Messages that wait, behind `delay_offset` or not.
    pending: int
    next_due_at: str | None
    next_due_at_ms: int | None
    last_delivered_at: str | None
    last_delivered_at_ms: int | None
    behind_ms: int
    stuck: bool
    holder: str | None


class TimerStage(Struct, kw_only=True):
    """One of the five stages of timed messages."""

    #: `scan`, `enqueue`, `dequeue`, `load` or `hand_over`.
    stage: str
    #: Messages that wait for it; null: the engine does not count them.
    messages: int | None
    #: How long the first of them has waited, or has been due.
    lag_ms: int


class TimerWheelAnswer(Struct, kw_only=True):
    """The timer and how far it is."""

    #: `wheel` or `rocksdb`.
    engine: str
    precision_ms: int
    window_ms: int
    pending: int
    #: Nothing before this time is unsettled.
    read_time: str | None
    read_time_ms: int | None
    #: The time of the wheel's last step.
    write_time: str | None
    write_time_ms: int | None
    behind_ms: int
    stuck: bool
    holder: str | None
    #: Messages of the timer topic that are not in the wheel yet, and the age of the first.
    enqueue_lag_messages: int
    enqueue_lag_ms: int
    #: Read out of the wheel and not loaded; loaded and not handed over; failing.
    dequeued: int
    loaded: int
    failing: int
    #: The stages in their order; none while nobody turns the timer.
    stages: list[TimerStage]
    #: Of the wheel's TimerLog.
    log_files: int
    log_begin: int
    log_end: int
    #: Of RocksDB: about how many entries it has, and its bytes on the disk.
    timeline_entries: int
    timeline_bytes: int
    checkpoint_at: str | None
    checkpoint_at_ms: int | None


class LoopAnswer(Struct, kw_only=True):
    """A loop and who runs it."""

    loop: str
    holder: str | None
    since: str | None
    since_ms: int | None
    last_step_at: str | None
    last_step_at_ms: int | None
    behind_ms: int
    stuck: bool


class LoopList(Struct):
    """Every loop."""

    items: list[LoopAnswer]
    next_page_token: str = ""


class ForecastQuery(Struct, forbid_unknown_fields=True, kw_only=True, rename={"start": "from"}):
    """Which future."""

    start: Annotated[Moment | None, Meta(description="Default: now.")] = None
    to: Annotated[Moment | None, Meta(description="Default: a day after `from`.")] = None
    step: Annotated[
        str | None,
        Meta(description="A duration, 1s to 1d; by default one that makes at most 1440 buckets."),
    ] = None
    topic: str | None = None


class ForecastBucket(Struct):
    """How many messages come due from here to the next bucket."""

    start: str
    start_ms: int
    count: int


class ForecastAnswer(Struct, kw_only=True, rename={"from_": "from"}):
    """What will come due, levels and timed together; the last bucket ends at `to`."""

    from_: str
    from_ms: int
    to: str
    to_ms: int
    step_ms: int
    total: int
    buckets: list[ForecastBucket]
