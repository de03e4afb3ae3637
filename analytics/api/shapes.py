"""The shapes of reports."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class ReportRequest(Struct, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}):
    """A report that is to be made; by default of the last 24 hours, over all topics."""

    report: str = "lateness"
    #: RFC 3339 with a zone, or ms since the epoch.
    from_: str | int | None = None
    to: str | int | None = None
    topic: str | None = None
    #: In which hours are told, such as `Europe/Berlin`.
    time_zone: str | None = None


class Quantiles(Struct, kw_only=True):
    """Of lateness, ms: upper edges of buckets that are at most 3.2 % wide; null: nothing known."""

    p50: int | None
    p90: int | None
    p95: int | None
    p99: int | None
    p999: int | None
    max: int | None


class Totals(Struct, kw_only=True):
    """The figures of a whole period; level and timed messages."""

    delivered: int
    #: Handed over before they were due: always 0.
    early: int
    #: Later than the objective, which `slo_ms` tells.
    late_over_slo: int
    late_share: float | None
    cancelled: int
    retried: int
    dead: int
    lateness_ms: Quantiles
    #: Those of `delivered` whose lateness the log tells.
    lateness_known: int
    #: Messages without a delay; they have no lateness.
    immediate: int
    sent: int
    rescheduled: int
    parked: int
    restored: int
    redelivered: int
    redriven: int


class ReportRowAnswer(Struct, kw_only=True, omit_defaults=True):
    """The lateness of one topic, kind, level and hour."""

    topic: str
    kind: str
    level: int | UnsetType = UNSET
    hour: str
    hour_ms: int
    delivered: int
    early: int
    late_over_slo: int
    lateness_ms: Quantiles


class ReportRange(Struct, kw_only=True, rename={"from_": "from"}):
    """Quarter-hours (UTC) from (inclusive) to (exclusive)."""

    from_: str
    from_ms: int
    to: str
    to_ms: int


class ReportSummary(Struct, kw_only=True):
    """A finished report, without what it says."""

    id: str
    report: Literal["lateness"]
    topic: str | None
    time_zone: str
    range: ReportRange
    created_at: str
    created_at_ms: int
    finished_at: str | None
    finished_at_ms: int | None
    operation_id: str
    by: str


class ReportAnswer(ReportSummary, kw_only=True):
    """A finished report."""

    totals: Totals
    rows: list[ReportRowAnswer]
    #: There may be more than are kept.
    rows_total: int
    #: What counts as late, rounded up to a bucket's edge, and as it is set.
    slo_ms: int
    slo_asked_ms: int
    #: The period of the same length before.
    previous: dict[str, Any]
    by_hour: list[dict[str, Any]]
    by_topic: list[dict[str, Any]]
    by_level: list[dict[str, Any]]
    distribution: list[dict[str, Any]]
    throughput: list[dict[str, Any]]
    asked_delays: list[dict[str, Any]]
    #: From due to the first receive; `recorded` is false where no trace says it.
    pickup: dict[str, Any]
    #: From due to the acknowledgement.
    end_to_end: dict[str, Any]
    retries: list[dict[str, Any]]
    retry_lateness: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    redriven: list[dict[str, Any]]
    cancelled: list[dict[str, Any]]
    rescheduled: list[dict[str, Any]]
    parked: list[dict[str, Any]]
    hot_slots: list[dict[str, Any]]
    #: What of the log was read, and what of it could not be.
    log: dict[str, Any]
    #: Stretches of the log that retention removed before a report read them.
    gaps: list[dict[str, Any]]
    #: Whether receives and acks leave traces now.
    tracing: bool
    spark: dict[str, Any]


class ReportList(Struct):
    """A page of finished reports, newest first."""

    items: list[ReportSummary]
    next_page_token: str


class ReportQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """In which form the report is to come."""

    format: Literal["json", "csv", "html"] = "json"
