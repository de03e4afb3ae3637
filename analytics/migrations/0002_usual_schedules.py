"""The schedules that a new platform has: each hour, each day, each week; changed in the console."""

from django.db import migrations

USUAL = (
    ("Each hour", "hour", 5, 0),
    ("Each day", "day", 10, 0),
    ("Each week", "week", 20, 0),
)


def make(apps, _editor):
    model = apps.get_model("analytics", "ReportSchedule")
    for name, every, minute, hour in USUAL:
        model.objects.get_or_create(
            name=name,
            defaults={"every": every, "minute": minute, "hour": hour, "report": "lateness"},
        )


class Migration(migrations.Migration):
    dependencies = [("analytics", "0001_initial")]
    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
