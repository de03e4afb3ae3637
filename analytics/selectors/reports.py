"""Reports as they are looked at."""

from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from analytics.models import ReportRow, ReportRun
from queues.access import Patterns
from queues.codes import Code
from queues.problems import Problem

_ROWS_AT_ONCE = 100


def get_report(report_id: str) -> ReportRun:
    """The finished run; raises `report_not_found`."""
    found = ReportRun.objects.filter(pk=report_id[:32], state=ReportRun.State.SUCCEEDED).first()
    if found is None or found.id != report_id:
        raise Problem(Code.REPORT_NOT_FOUND, f"There is no finished report {report_id[:64]!r}.")
    return found


def list_reports(*, before: str | None, limit: int, topics: Patterns) -> list[ReportRun]:
    """Finished runs over these topics newest first, from behind the one named `before`.

    A run over all topics is for those who may look at all.
    """
    rows = ReportRun.objects.filter(state=ReportRun.State.SUCCEEDED).order_by("-id").defer("result")
    if before is not None:
        rows = rows.filter(id__lt=before)
    if topics.takes_all:
        return list(rows[:limit])
    # Read until the page is full: cut off before, it would lack what the patterns leave out.
    found = rows.exclude(topic="").iterator(chunk_size=_ROWS_AT_ONCE)
    return list(islice((run for run in found if topics.allow(run.topic)), limit))


def recent_runs(limit: int) -> list[ReportRun]:
    """Runs in any state, newest first."""
    return list(ReportRun.objects.order_by("-id").defer("result")[:limit])


def rows_of(run: ReportRun) -> QuerySet[ReportRow]:
    """The rows of a report, in the order in which it tells them."""
    return run.rows.order_by("pk")


def row_values(row: ReportRow) -> dict[str, Any]:
    """A row as the API shows it."""
    return {
        "topic": row.topic,
        "kind": row.kind,
        **({"level": row.level} if row.level else {}),
        "hour": row.hour,
        "hour_ms": row.hour_ms,
        "delivered": row.delivered,
        "early": row.early,
        "late_over_slo": row.late_over_slo,
        "lateness_ms": row.lateness_ms,
    }


def slo_ms() -> int:
    """What is later than this counts as late."""
    found: int = settings.POSTDATE.lateness_slo_ms
    return found
