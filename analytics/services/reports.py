"""Asking for reports: a run and the operation that carries it out, in one transaction."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction

from analytics.models import ReportRow, ReportRun, ReportSchedule
from analytics.periods import DAY_MS, whole_quarters
from queues import wires
from queues.codes import Code
from queues.moments import MOMENT_MS_MAX
from queues.naming import check_topic_name
from queues.problems import Problem
from queues.selectors.operations import get_operation
from queues.services.audit import now
from queues.services.operations import begin

LATENESS = "lateness"
KIND = "report.lateness"
#: A report covers a year and a month at the most: so many quarter-hours are summed up at once.
PERIOD_MS_MAX = 400 * DAY_MS
#: A report ends before the last day of the year 9999, so that every zone can tell its hours.
END_MS_MAX = (MOMENT_MS_MAX + 1) - DAY_MS
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that was asked for."""

    run_id: str
    operation_id: str
    #: False: the same was asked for before and is not finished; this is that run.
    is_new: bool


def request_report(
    *, report: str, from_ms: int | None, to_ms: int | None, topic: str | None, by: str,
    now_ms: int, zone: str = "UTC", schedule: ReportSchedule | None = None,
) -> Begun:  # fmt: skip
    """Have a report made; by default of the last 24 hours.

    The same report over the same period that is not finished yet is not begun again.
    """
    _check(report, topic, zone)
    begin_ms, end_ms = checked_period(from_ms, to_ms, now_ms)
    with transaction.atomic():
        wanted = ReportRun.objects.filter(
            report=report, from_ms=begin_ms, to_ms=end_ms, topic=topic or "", time_zone=zone,
            state__in=(ReportRun.State.QUEUED, ReportRun.State.RUNNING),
        )  # fmt: skip
        for run in wanted:
            if get_operation(run.operation_id).state in ("queued", "running"):
                return Begun(run.id, run.operation_id, is_new=False)
        run_id = f"{now_ms:012x}{wires.wiring().get_store().disk.random_bytes(10).hex()}"
        request: dict[str, Any] = {"report_id": run_id, "from_ms": begin_ms, "to_ms": end_ms}
        if topic:
            request["topic"] = topic
        operation = begin(KIND, request, by=by, now_ms=now_ms, total=100)
        ReportRun.objects.create(
            id=run_id, report=report, operation_id=operation.id, schedule=schedule,
            from_ms=begin_ms, to_ms=end_ms, topic=topic or "", time_zone=zone, by=by,
            created_at=now(),
        )  # fmt: skip
    return Begun(run_id, operation.id, is_new=True)


def _check(report: str, topic: str | None, zone: str) -> None:
    if report != LATENESS:
        raise Problem(Code.FIELD_INVALID, "The reports are: lateness.", pointer="/report")
    if topic:
        check_topic(topic)
    check_zone(zone)


def check_topic(topic: str) -> None:
    """Raise `name_invalid` or `name_reserved` for what no user's topic is called, at its field."""
    try:
        check_topic_name(topic)
    except Problem as problem:
        raise Problem(problem.code, problem.detail, pointer="/topic") from None


def check_zone(zone: str) -> None:
    """Raise `field_invalid` for a time zone that nobody knows, at its field."""
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:  # An unknown zone is a kind of KeyError.
        detail = f"{zone!r} is no time zone."
        raise Problem(Code.FIELD_INVALID, detail, pointer="/time_zone") from error


def checked_period(from_ms: int | None, to_ms: int | None, now_ms: int) -> tuple[int, int]:
    """The quarter-hours asked for; raises `out_of_bounds`."""
    end_ms = now_ms if to_ms is None else to_ms
    begin_ms = end_ms - DAY_MS if from_ms is None else from_ms
    if end_ms > END_MS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, "A report ends before 9999-12-31.", pointer="/to")
    if not 0 <= begin_ms < end_ms:
        raise Problem(Code.OUT_OF_BOUNDS, "`from` is before `to`.", pointer="/from")
    if end_ms - begin_ms > PERIOD_MS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, "A report covers 400 days at most.", pointer="/from")
    return whole_quarters(begin_ms, end_ms)


def start_run(run_id: str) -> ReportRun:
    """Note that Spark is started for a run."""
    run = ReportRun.objects.get(pk=run_id)
    run.state = ReportRun.State.RUNNING
    run.started_at = run.started_at or now()
    run.attempts += 1
    run.error = ""
    run.save(update_fields=["state", "started_at", "attempts", "error"])
    return run


def keep_result(run_id: str, result: dict[str, Any]) -> None:
    """Keep a report; a run that has one already keeps that."""
    rows = result.pop("rows", [])
    with transaction.atomic():
        unfinished = ReportRun.objects.filter(pk=run_id).exclude(state=ReportRun.State.SUCCEEDED)
        kept = unfinished.update(
            state=ReportRun.State.SUCCEEDED,
            finished_at=now(),
            error="",
            result=result,
            application_id=(result.get("spark") or {}).get("application_id") or "",
            log_start=result["log"]["read_from"],
            log_end=result["log"]["read_to"],
        )
        if not kept:
            return
        ReportRow.objects.filter(run_id=run_id).delete()
        ReportRow.objects.bulk_create((_row(run_id, row) for row in rows), batch_size=_ROWS_AT_ONCE)


def _row(run_id: str, row: dict[str, Any]) -> ReportRow:
    return ReportRow(
        run_id=run_id,
        hour_ms=row["hour_ms"],
        hour=row["hour"],
        topic=row["topic"],
        kind=row.get("kind", ""),
        level=row.get("level", 0),
        delivered=row["delivered"],
        early=row["early"],
        late_over_slo=row["late_over_slo"],
        lateness_ms=row["lateness_ms"],
    )


def fail_run(run_id: str, error: str, *, state: str = ReportRun.State.FAILED) -> None:
    """Note why a run came to nothing."""
    ReportRun.objects.filter(pk=run_id).exclude(state=ReportRun.State.SUCCEEDED).update(
        state=state, finished_at=now(), error=error[:4000]
    )


def queue_again(run_id: str) -> None:
    """Note that another process takes the run up."""
    ReportRun.objects.filter(pk=run_id, state=ReportRun.State.RUNNING).update(
        state=ReportRun.State.QUEUED
    )


def moment_of(at_ms: int) -> datetime:
    """A moment as the database takes it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)
