"""What can be done with schedules of reports: make, change, delete, run at once.

Each leaves an audit entry, and housekeeping finds out anew when the schedule starts.
"""

from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction

from analytics.models import ReportSchedule
from analytics.selectors.schedules import get_schedule
from analytics.services.reports import Begun, check_topic, check_zone, request_report
from analytics.services.scheduling import timing_of
from queues.codes import Code
from queues.problems import Problem
from queues.services.audit import record_change

_NAME_CHARACTERS_MAX = 100
_MOST = {"minute": 59, "hour": 23, "weekday": 6}


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A schedule as it is to be."""

    name: str
    #: `hour`, `day` or `week`.
    every: str
    #: Of the hour.
    minute: int = 0
    #: Of the day; an hourly one leaves it aside.
    hour: int = 0
    #: 0 is Monday; only a weekly one has it.
    weekday: int = 0
    #: IANA name.
    time_zone: str = "UTC"
    #: Only this topic; empty for all.
    topic: str = ""
    enabled: bool = True


def create_schedule(*, plan: SchedulePlan, by: str) -> ReportSchedule:
    """Make a schedule; raises `field_invalid`, `out_of_bounds`."""
    _check(plan)
    try:
        with transaction.atomic():
            made = ReportSchedule.objects.create(**asdict(plan))
            _note("create", plan.name, by, after=asdict(plan))
    except IntegrityError as error:
        raise _taken(plan.name) from error
    return made


def change_schedule(*, schedule_id: int, plan: SchedulePlan, by: str) -> ReportSchedule:
    """Change a schedule; raises `report_not_found`, `field_invalid`, `out_of_bounds`."""
    _check(plan)
    try:
        with transaction.atomic():
            before = plan_of(get_schedule(schedule_id))
            was, wanted = asdict(before), asdict(plan)
            changed = [name for name in wanted if was[name] != wanted[name]]
            if changed:
                anew: dict[str, Any] = {"next_at": None, "failures": 0, "retry_at": None}
                ReportSchedule.objects.filter(pk=schedule_id).update(**wanted, **anew)
                _note("change", plan.name, by,
                      before={name: was[name] for name in changed},
                      after={name: wanted[name] for name in changed})  # fmt: skip
    except IntegrityError as error:
        raise _taken(plan.name) from error
    return get_schedule(schedule_id)


def delete_schedule(*, schedule_id: int, by: str) -> None:
    """Delete a schedule; its reports stay. Raises `report_not_found`."""
    with transaction.atomic():
        schedule = get_schedule(schedule_id)
        _note("delete", schedule.name, by, before=asdict(plan_of(schedule)))
        schedule.delete()


def run_schedule(*, schedule_id: int, by: str, now_ms: int) -> Begun:
    """Have its report made now, over the last whole period; its own times stay."""
    schedule = get_schedule(schedule_id)
    from_ms, to_ms = timing_of(schedule).period(now_ms)
    return request_report(
        report=schedule.report, from_ms=from_ms, to_ms=to_ms, topic=schedule.topic or None,
        by=by, now_ms=now_ms, zone=schedule.time_zone, schedule=schedule,
    )  # fmt: skip


def plan_of(schedule: ReportSchedule) -> SchedulePlan:
    """The schedule as it was asked for."""
    return SchedulePlan(
        **{name: getattr(schedule, name) for name in SchedulePlan.__dataclass_fields__}
    )


def _check(plan: SchedulePlan) -> None:
    if not 0 < len(plan.name) <= _NAME_CHARACTERS_MAX or not plan.name.isprintable():
        detail = f"A schedule's name has 1 to {_NAME_CHARACTERS_MAX} printable characters."
        raise Problem(Code.FIELD_INVALID, detail, pointer="/name")
    if plan.every not in ReportSchedule.Every.values:
        raise Problem(Code.FIELD_INVALID, "It starts each hour, day or week.", pointer="/every")
    for name, most in _MOST.items():
        if not 0 <= getattr(plan, name) <= most:
            raise Problem(Code.OUT_OF_BOUNDS, f"It is 0 to {most}.", pointer=f"/{name}")
    check_zone(plan.time_zone)
    if plan.topic:
        check_topic(plan.topic)


def _taken(name: str) -> Problem:
    return Problem(Code.FIELD_INVALID, f"There is a schedule {name!r} already.", pointer="/name")


def _note(action: str, name: str, by: str, **values: Any) -> None:
    record_change(by=by, action=f"report_schedule.{action}", subject=name, **values)
