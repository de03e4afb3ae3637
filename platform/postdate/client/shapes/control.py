"""Operations, reports and the audit log."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field


class Progress(Struct, frozen=True):
    """How far an operation is."""

    done: int = 0
    #: None: nobody knows yet.
    total: int | None = None


class Operation(Struct, frozen=True, kw_only=True):
    """Long work that goes on by itself."""

    id: str
    kind: str
    #: `queued`, `running`, `succeeded`, `failed`, `aborted`.
    state: str
    done: bool = False
    error: Any = None
    progress: Progress = Progress()
    result: Any = None
    created_at: datetime | None = None
    created_at_ms: int | None = None


class OperationPage(Struct, frozen=True, kw_only=True):
    """A page of operations, newest first."""

    items: list[Operation]
    next_page_token: str = ""


class ReportRange(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Quarter-hours (UTC) from (inclusive) to (exclusive)."""

    from_: datetime
    from_ms: int
    to: datetime
    to_ms: int


class Quantiles(Struct, frozen=True, kw_only=True):
    """Of lateness, ms; None: nothing known."""

    p50: int | None = None
    p90: int | None = None
    p95: int | None = None
    p99: int | None = None
    p999: int | None = None
    max: int | None = None


class Totals(Struct, frozen=True, kw_only=True):
    """The figures of a whole period; level and timed messages."""

    delivered: int
    #: Handed over before they were due: always 0.
    early: int
    #: Later than the objective.
    late_over_slo: int
    lateness_ms: Quantiles
    cancelled: int = 0
    retried: int = 0
    dead: int = 0
    late_share: float | None = None
    lateness_known: int = 0
    immediate: int = 0
    sent: int = 0
    rescheduled: int = 0
    parked: int = 0
    restored: int = 0
    redelivered: int = 0
    redriven: int = 0


class ReportRow(Struct, frozen=True, kw_only=True):
    """The lateness of one topic, kind, level and hour."""

    topic: str
    kind: str
    hour: str
    hour_ms: int
    delivered: int
    early: int
    late_over_slo: int
    lateness_ms: Quantiles
    level: int | None = None


class ReportSummary(Struct, frozen=True, kw_only=True):
    """A finished report, without what it says."""

    id: str
    report: str
    topic: str | None = None
    time_zone: str | None = None
    range: ReportRange
    created_at: datetime
    created_at_ms: int
    finished_at: datetime | None = None
    finished_at_ms: int | None = None
    operation_id: str | None = None
    by: str | None = None


class ReportPage(Struct, frozen=True, kw_only=True):
    """A page of finished reports, newest first."""

    items: list[ReportSummary]
    next_page_token: str = ""


class Report(ReportSummary, frozen=True, kw_only=True):
    """A finished lateness report; `export` gives all of its tables."""

    totals: Totals
    rows: list[ReportRow] = field(default_factory=list)
    #: There may be more than are kept.
    rows_total: int = 0
    #: What counts as late, ms.
    slo_ms: int | None = None
    previous: dict[str, Any] = field(default_factory=dict)
    by_hour: list[dict[str, Any]] = field(default_factory=list)
    by_topic: list[dict[str, Any]] = field(default_factory=list)
    by_level: list[dict[str, Any]] = field(default_factory=list)
    #: Stretches of the log that retention removed before a report read them.
    gaps: list[dict[str, Any]] = field(default_factory=list)
    #: Whether receives and acks leave traces.
    tracing: bool | None = None


class AuditEntry(Struct, frozen=True, kw_only=True):
    """Who changed what, and what it was before and after."""

    at: datetime
    at_ms: int
    by: str
    action: str
    subject: str
    detail: dict[str, Any] = field(default_factory=dict)
    before: Any = None
    after: Any = None


class AuditPage(Struct, frozen=True, kw_only=True):
    """A page of the audit log, newest first."""

    items: list[AuditEntry]
    next_page_token: str = ""
