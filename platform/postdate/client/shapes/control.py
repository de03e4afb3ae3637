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


class ReportSummary(Struct, frozen=True, kw_only=True):
    """A finished run of a report."""

    id: str
    report: str | None = None
    topic: str | None = None
    created_at: datetime | None = None
    created_at_ms: int | None = None


class ReportPage(Struct, frozen=True, kw_only=True):
    """A page of finished runs."""

    items: list[ReportSummary]
    next_page_token: str = ""


class Report(Struct, frozen=True, kw_only=True):
    """A lateness report: totals, and rows by topic, kind, level and hour."""

    id: str | None = None
    report: str | None = None
    range: Any = None
    totals: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)


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
