"""The models of reports: what was asked for, what came of it, and when the next one starts."""

from __future__ import annotations

from typing import Any

from django.db import models


class ReportSchedule(models.Model):
    """A schedule starts a report again and again, over the period that has just ended."""

    class Every(models.TextChoices):
        """How often, and so which period a report covers."""

        HOUR = "hour", "hourly, over the hour before"
        DAY = "day", "daily, over the day before"
        WEEK = "week", "weekly, over the seven days before"

    class Weekday(models.IntegerChoices):
        """Of a weekly one."""

        MONDAY = 0
        TUESDAY = 1
        WEDNESDAY = 2
        THURSDAY = 3
        FRIDAY = 4
        SATURDAY = 5
        SUNDAY = 6

    name = models.CharField(max_length=100, unique=True)
    report = models.CharField(max_length=32, default="lateness", editable=False)
    every = models.CharField(max_length=8, choices=Every.choices)
    minute = models.PositiveSmallIntegerField(default=5, help_text="of the hour, 0 to 59")
    hour = models.PositiveSmallIntegerField(default=0, help_text="of the day, 0 to 23")
    weekday = models.PositiveSmallIntegerField(choices=Weekday.choices, default=Weekday.MONDAY)
    #: IANA name, such as `Europe/Berlin`; hours and days of the report are its own.
    time_zone = models.CharField(max_length=64, default="UTC", help_text="such as Europe/Berlin")
    #: Only this topic; empty for all.
    topic = models.CharField(max_length=127, blank=True)
    enabled = models.BooleanField(default=True)
    #: When it starts next; None: it is found out at the next look.
    next_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: The last run, to try it again if it fails.
    last_run = models.CharField(max_length=32, blank=True, editable=False)
    #: Runs of the last period that failed.
    failures = models.PositiveSmallIntegerField(default=0, editable=False)
    #: When a failed one is tried again.
    retry_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class ReportRun(models.Model):
    """A run makes one report; it is carried out as an operation."""

    class State(models.TextChoices):
        """Where it stands; its operation says how far it is."""

        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        ABORTED = "aborted"

    id = models.CharField(primary_key=True, max_length=32)
    report = models.CharField(max_length=32)
    operation_id = models.CharField(max_length=32, blank=True, db_index=True)
    schedule = models.ForeignKey(
        ReportSchedule, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    #: Quarter-hours in [from, to), ms since the epoch.
    from_ms = models.BigIntegerField()
    to_ms = models.BigIntegerField()
    topic = models.CharField(max_length=127, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    #: How often Spark was started for it.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Spark's name for the last attempt.
    application_id = models.CharField(max_length=100, blank=True)
    #: The log's bytes that this run was the first to read.
    log_start = models.BigIntegerField(null=True, blank=True)
    log_end = models.BigIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    #: The report but for its rows.
    result: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.report} {self.id}"


class ReportRow(models.Model):
    """A row tells the lateness of one topic, kind, level and hour."""

    run = models.ForeignKey(ReportRun, on_delete=models.CASCADE, related_name="rows")
    hour_ms = models.BigIntegerField()
    #: The hour in the report's zone.
    hour = models.CharField(max_length=32)
    topic = models.CharField(max_length=127)
    kind = models.CharField(max_length=16)
    level = models.PositiveSmallIntegerField()
    delivered = models.BigIntegerField()
    early = models.BigIntegerField()
    late_over_slo = models.BigIntegerField()
    #: `p50`, `p90`, `p95`, `p99`, `p999`, `max`, each in ms or null.
    lateness_ms: models.JSONField[Any, dict[str, int | None]] = models.JSONField()

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.topic} {self.hour}"
