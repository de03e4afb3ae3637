"""Schedules of reports in the console; changes leave an audit entry."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from analytics.models import ReportSchedule
from analytics.services.reports import check_zone
from analytics.services.scheduling import schedule_changed
from queues.admin.pages import acting
from queues.naming import check_topic_name
from queues.problems import Problem

_MINUTE_MAX, _HOUR_MAX = 59, 23


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic in Django
    """A schedule; what cannot be is said beside the field."""

    class Meta:
        model = ReportSchedule
        fields = (
            "name", "enabled", "every", "minute", "hour", "weekday", "time_zone", "topic",
        )  # fmt: skip

    def clean_minute(self) -> int:
        """Of the hour."""
        return self._at_most("minute", _MINUTE_MAX)

    def clean_hour(self) -> int:
        """Of the day."""
        return self._at_most("hour", _HOUR_MAX)

    def _at_most(self, name: str, maximum: int) -> int:
        value: int = self.cleaned_data[name]
        if value > maximum:
            raise forms.ValidationError(f"0 to {maximum}")
        return value

    def clean_time_zone(self) -> str:
        """An IANA name."""
        return self._checked("time_zone", check_zone)

    def clean_topic(self) -> str:
        """A topic's name, or nothing."""
        return self._checked("topic", _check_topic)

    def _checked(self, name: str, check: Any) -> str:
        value: str = self.cleaned_data[name]
        try:
            check(value)
        except Problem as problem:
            raise forms.ValidationError(problem.detail) from None
        return value


def _check_topic(topic: str) -> None:
    if topic:
        check_topic_name(topic)


@admin.register(ReportSchedule)
class ReportScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # as above
    """Schedules: made, changed, switched off, deleted."""

    form = ScheduleForm
    list_display = ("name", "every", "time_zone", "topic", "enabled", "next_at", "failures")
    list_filter = ("every", "enabled")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        schedule_changed(obj, by=acting(request), action="change" if change else "create")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        schedule_changed(obj, by=acting(request), action="delete")
        super().delete_model(request, obj)
