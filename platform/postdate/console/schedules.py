"""The pages of report schedules: which report starts when, made, changed, run now, deleted."""

from collections.abc import Callable
from datetime import time
from functools import cache as remember
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from analytics.selectors.schedules import ScheduleRow, get_schedule, list_schedules
from analytics.services import schedules
from analytics.services.schedules import SchedulePlan
from analytics.services.scheduling import timing_of
from postdate.console.actions import act, confirm
from postdate.console.messages import topic_names
from postdate.console.pages import Context, acting, page, posted
from queues import wires
from queues.moments import format_moment
from queues.problems import Problem

_LOOK = "analytics.view_reportschedule"
_ADD = "analytics.add_reportschedule"
_CHANGE = "analytics.change_reportschedule"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EVERY = [
    ("hour", "each hour, over the hour before"),
    ("day", "each day, over the day before"),
    ("week", "each week, over the seven days before"),
]
_COVERS = {"hour": "the hour before", "day": "the day before", "week": "the seven days before"}


class ScheduleForm(forms.Form):
    """A schedule."""

    name = forms.CharField(max_length=100)
    every = forms.ChoiceField(
        choices=_EVERY, widget=forms.RadioSelect, initial="day", label="Starts"
    )
    at = forms.TimeField(
        initial="00:05",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        help_text="Of an hourly one only the minutes count.",
    )
    weekday = forms.TypedChoiceField(
        choices=list(enumerate(_DAYS)), coerce=int, label="On", help_text="Of a weekly one."
    )
    time_zone = forms.CharField(
        initial="UTC",
        max_length=64,
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        help_text="Its hours and days are those of this zone, such as Europe/Berlin.",
    )
    topic = forms.CharField(
        required=False,
        widget=forms.TextInput(
            attrs={"list": "topics", "autocomplete": "off", "placeholder": "all topics"}
        ),
    )
    enabled = forms.BooleanField(required=False, initial=True, label="Start it by itself")

    def plan(self) -> SchedulePlan:
        """What the service takes."""
        fields = dict(self.cleaned_data)
        at: time = fields.pop("at")
        return SchedulePlan(hour=at.hour, minute=at.minute, **fields)


@page("console/schedules.html", permission=_LOOK)
def schedules_page(request: HttpRequest) -> Context:
    """Every schedule: what it reports, when it starts next, how its last run went."""
    now_ms = wires.wiring().get_clock().now_ms()
    return {
        "title": "Report schedules",
        "crumb": "Schedules",
        "trail": _trail()[:1],
        "lead": "A schedule has a report made again and again, over the period that has just "
        "ended. A start that was missed is caught up once; a run that fails is tried again.",
        "rows": [_told(row, now_ms) for row in list_schedules()],
        "is_manual": settings.POSTDATE.reports == "manual",
        "may_add": request.user.has_perm(_ADD),
        "may_change": request.user.has_perm(_CHANGE),
        "may_run": request.user.has_perm("analytics.add_reportrun"),
        "may_delete": request.user.has_perm("analytics.delete_reportschedule"),
    }


def _told(row: ScheduleRow, now_ms: int) -> dict[str, Any]:
    one = row.schedule
    next_ms = None
    if one.enabled and settings.POSTDATE.reports != "manual":
        known = one.next_at is not None
        next_ms = _ms(one.next_at) if known else timing_of(one).next_after(now_ms)
    return {
        "schedule": one,
        "when": _when(schedules.plan_of(one)),
        "covers": _COVERS[one.every],
        "next_ms": next_ms,
        "last": row.last,
        "last_ms": _ms(row.last.created_at) if row.last else None,
    }


def _ms(at: Any) -> int:
    whole_ms: int = round(at.timestamp() * 1000)
    return whole_ms


def _when(plan: SchedulePlan) -> str:
    """When it starts, in words: `Mondays at 06:00`."""
    clock = f"{plan.hour:02}:{plan.minute:02}"
    return {
        "hour": f"each hour, {plan.minute} min past",
        "day": f"each day at {clock}",
        "week": f"{_DAYS[plan.weekday]}s at {clock}",
    }[plan.every]


@page("console/confirm.html", permission=_ADD)
def schedule_add_page(request: HttpRequest) -> Context | HttpResponseBase:
    """A new schedule."""
    return _ask(
        request,
        ScheduleForm(posted(request)),
        lambda plan: schedules.create_schedule(plan=plan, by=acting(request)),
        title="New schedule",
        button="Make the schedule",
        done="is made",
    )


@page("console/confirm.html", permission=_CHANGE)
def schedule_change_page(request: HttpRequest, schedule_id: int) -> Context | HttpResponseBase:
    """Other times, another period, topic or zone; or switched off."""
    schedule = get_schedule(schedule_id)
    fields = ("name", "every", "weekday", "time_zone", "topic", "enabled")
    initial: dict[str, Any] = {name: getattr(schedule, name) for name in fields}
    initial["at"] = time(schedule.hour, schedule.minute)
    return _ask(
        request,
        ScheduleForm(posted(request), initial=initial),
        lambda plan: schedules.change_schedule(
            schedule_id=schedule_id, plan=plan, by=acting(request)
        ),
        title=f"Change {schedule.name}",
        button="Change the schedule",
        done="is changed",
    )


def _ask(
    request: HttpRequest, form: ScheduleForm, work: Callable[[SchedulePlan], object], *,
    title: str, button: str, done: str,
) -> Context | HttpResponseBase:  # fmt: skip
    """The form; what the service refuses stands beside its field."""
    if request.method == "POST" and form.is_valid():
        try:
            work(form.plan())
        except Problem as problem:
            field = (problem.pointer or "").strip("/")
            form.add_error(field if field in form.fields else None, problem.detail)
        else:
            act(request, lambda: None, done=f"{form.cleaned_data['name']} {done}.")
            return redirect("schedules")
    return confirm(
        title=title,
        sentence="The report is made by Spark at the lowest priority, and kept under Reports.",
        button=button,
        back=reverse("schedules"),
        trail=_trail(),
        form=form,
        columns=True,
        offered=[("zones", zone_names()), ("topics", topic_names())],
    )


@remember
def zone_names() -> tuple[str, ...]:
    """What a zone's field offers."""
    return tuple(sorted(available_timezones()))


@page("console/confirm.html", permission="analytics.add_reportrun")
def schedule_run_page(request: HttpRequest, schedule_id: int) -> Context | HttpResponseBase:
    """Make its report now."""
    schedule = get_schedule(schedule_id)
    now_ms = wires.wiring().get_clock().now_ms()
    if request.method == "POST":
        try:
            begun = schedules.run_schedule(
                schedule_id=schedule_id, by=acting(request), now_ms=now_ms
            )
        except Problem as problem:
            messages.error(request, problem.detail)
            return redirect("schedules")
        return redirect("operation", begun.operation_id)
    period = timing_of(schedule).period(now_ms)
    begin, end = (format_moment(at_ms)[:16] + "Z" for at_ms in period)
    return confirm(
        title=f"Run {schedule.name} now?",
        sentence="Its report is made of the last whole period. Its own times stay as they are.",
        button="Make the report",
        back=reverse("schedules"),
        trail=_trail(),
        facts=[("Period", f"{begin} to {end}"), ("Topic", schedule.topic or "all")],
    )


@page("console/confirm.html", permission="analytics.delete_reportschedule")
def schedule_delete_page(request: HttpRequest, schedule_id: int) -> Context | HttpResponseBase:
    """It starts no more."""
    schedule = get_schedule(schedule_id)
    if request.method == "POST":
        act(
            request,
            lambda: schedules.delete_schedule(schedule_id=schedule_id, by=acting(request)),
            done=f"{schedule.name} is deleted.",
        )
        return redirect("schedules")
    return confirm(
        title=f"Delete {schedule.name}?",
        sentence="No further report starts by it. The reports that it made stay.",
        button="Delete the schedule",
        back=reverse("schedules"),
        trail=_trail(),
        danger=True,
        facts=[("Starts", _when(schedules.plan_of(schedule)))],
    )


def _trail() -> list[tuple[str, str]]:
    return [("Reports", reverse("reports-page")), ("Schedules", reverse("schedules"))]
