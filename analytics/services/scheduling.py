"""Scheduling: starting the reports whose time has come; housekeeping looks every few seconds.

A start that was missed (the platform was down) is caught up once. A run that failed is tried again
after 5, 10 and 20 minutes over the same period; then the next period comes.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from analytics.models import ReportRun, ReportSchedule
from analytics.periods import Timing
from analytics.services.reports import Begun, fail_run, moment_of, request_report
from queues.problems import Problem
from queues.selectors.operations import get_operation, is_finished

LOOK_EVERY_MS = 5_000
RETRIES_MAX = 3
_RETRY_FIRST = timedelta(minutes=5)
_BY = "schedule"


def timing_of(schedule: ReportSchedule) -> Timing:
    """When the schedule starts."""
    return Timing(
        every=schedule.every,  # type: ignore[arg-type]  # one of the model's choices
        minute=schedule.minute,
        hour=schedule.hour,
        weekday=schedule.weekday,
        zone=schedule.time_zone,
    )


def start_due_reports(now_ms: int) -> dict[str, Any]:
    """Begin what is due; returns how many."""
    settle_left_runs()
    if settings.POSTDATE.reports == "manual":
        return {"started": 0}
    started = 0
    for schedule in ReportSchedule.objects.filter(enabled=True):
        if schedule.next_at is None:
            _plan(schedule, now_ms)
        elif schedule.next_at <= moment_of(now_ms):
            started += _start(schedule, now_ms)
        else:
            started += _try_again(schedule, now_ms)
    return {"started": started}


def settle_left_runs() -> None:
    """Note the end of runs whose operation ended without them: aborted in the queue, given up."""
    unfinished = (ReportRun.State.QUEUED, ReportRun.State.RUNNING)
    for run in ReportRun.objects.filter(state__in=unfinished).defer("result"):
        try:
            operation = get_operation(run.operation_id)
        except Problem:
            fail_run(run.id, "Its operation is gone.")
            continue
        if is_finished(operation):
            was_aborted = operation.state == ReportRun.State.ABORTED
            told = "It was aborted." if was_aborted else "Its operation was given up."
            fail_run(run.id, told, state=operation.state if was_aborted else ReportRun.State.FAILED)


def _plan(schedule: ReportSchedule, now_ms: int) -> bool:
    """Find out when it starts next, by compare-and-set."""
    following = moment_of(timing_of(schedule).next_after(now_ms))
    mine = ReportSchedule.objects.filter(pk=schedule.pk, next_at=schedule.next_at)
    return bool(mine.update(next_at=following))


def _start(schedule: ReportSchedule, now_ms: int) -> int:
    with transaction.atomic():
        if not _plan(schedule, now_ms):
            return 0  # Another process was faster, or someone changed it just now.
        from_ms, to_ms = timing_of(schedule).period(now_ms)
        begun = _begin(schedule, from_ms, to_ms, now_ms)
        ReportSchedule.objects.filter(pk=schedule.pk).update(
            last_run=begun.run_id, failures=0, retry_at=None
        )
    return 1


def _begin(schedule: ReportSchedule, from_ms: int, to_ms: int, now_ms: int) -> Begun:
    return request_report(
        report=schedule.report, from_ms=from_ms, to_ms=to_ms, topic=schedule.topic or None,
        by=f"{_BY}:{schedule.name}", now_ms=now_ms, zone=schedule.time_zone, schedule=schedule,
    )  # fmt: skip


def _try_again(schedule: ReportSchedule, now_ms: int) -> int:
    """Plan another try of a run that failed, or begin it when its time has come."""
    run = ReportRun.objects.filter(pk=schedule.last_run, state=ReportRun.State.FAILED).first()
    if run is None or (schedule.retry_at is None and schedule.failures >= RETRIES_MAX):
        return 0
    mine = ReportSchedule.objects.filter(pk=schedule.pk, last_run=run.id)
    if schedule.retry_at is None:
        wait = _RETRY_FIRST * 2**schedule.failures
        planned = mine.filter(retry_at=None)
        planned.update(retry_at=moment_of(now_ms) + wait, failures=schedule.failures + 1)
        return 0
    if schedule.retry_at > moment_of(now_ms):
        return 0
    with transaction.atomic():
        begun = _begin(schedule, run.from_ms, run.to_ms, now_ms)
        return mine.filter(retry_at=schedule.retry_at).update(last_run=begun.run_id, retry_at=None)
