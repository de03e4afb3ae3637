"""Levels, wheel and loops."""

from datetime import datetime

from msgspec import Struct


class DelayLevel(Struct, frozen=True, kw_only=True):
    """A delay level and how far it is."""

    level: int
    delay: str
    delay_ms: int
    delay_offset: int
    max_offset: int
    pending: int
    behind_ms: int
    stuck: bool
    holder: str | None = None
    next_due_at: datetime | None = None
    next_due_at_ms: int | None = None
    last_delivered_at: datetime | None = None
    last_delivered_at_ms: int | None = None


class TimerWheel(Struct, frozen=True, kw_only=True):
    """The timer and how far it is; `docs/internals/wheel.md` explains the fields."""

    engine: str
    precision_ms: int
    window_ms: int
    pending: int
    behind_ms: int
    stuck: bool
    holder: str | None = None
    read_time: datetime | None = None
    read_time_ms: int | None = None
    write_time: datetime | None = None
    write_time_ms: int | None = None
    enqueue_lag_messages: int | None = None
    enqueue_lag_ms: int | None = None
    dequeued: int | None = None
    loaded: int | None = None
    failing: int | None = None
    log_files: int | None = None
    log_begin: int | None = None
    log_end: int | None = None
    checkpoint_at: datetime | None = None
    checkpoint_at_ms: int | None = None


class Loop(Struct, frozen=True, kw_only=True):
    """A loop and who runs it."""

    loop: str
    behind_ms: int
    stuck: bool
    holder: str | None = None
    since: datetime | None = None
    since_ms: int | None = None
    last_step_at: datetime | None = None
    last_step_at_ms: int | None = None


class LoopPage(Struct, frozen=True, kw_only=True):
    """Every loop."""

    items: list[Loop]
    next_page_token: str = ""


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str = ""


class Readiness(Struct, frozen=True):
    """Whether everything is in order, check by check."""

    ready: bool
    checks: list[Check]
