"""Schedules of reports as they are looked at."""

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from analytics.models import ReportRun, ReportSchedule
from queues.codes import Code
from queues.problems import Problem


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule and its newest run, if it had one."""

    schedule: ReportSchedule
    last: ReportRun | None


def get_schedule(schedule_id: int) -> ReportSchedule:
    """The schedule; raises `report_not_found`."""
    found = ReportSchedule.objects.filter(pk=schedule_id).first()
    if found is None:
        raise Problem(Code.REPORT_NOT_FOUND, f"There is no schedule {schedule_id}.")
    return found


def list_schedules() -> list[ScheduleRow]:
    """All of them by name, each with its newest run."""
    newest = ReportRun.objects.filter(schedule=OuterRef("pk")).order_by("-id").values("id")[:1]
    found = list(ReportSchedule.objects.annotate(newest=Subquery(newest)))
    runs = ReportRun.objects.defer("result").in_bulk([one.newest for one in found if one.newest])
    return [ScheduleRow(one, runs.get(one.newest or "")) for one in found]
