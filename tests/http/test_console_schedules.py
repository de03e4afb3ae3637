"""Report schedules in the console: made, changed, switched off, run now, deleted."""

import pytest
from django.contrib.auth.models import Group as Role
from django.contrib.auth.models import User

from analytics.models import ReportRun, ReportSchedule
from queues.models import AuditEntry
from tests.support.visiting import Console

PAGE = "/admin/reports/schedules/"
NIGHTLY = {"name": "nightly", "enabled": "on", "every": "day", "at": "03:30", "weekday": "0",
           "time_zone": "Europe/Berlin", "topic": ""}  # fmt: skip


@pytest.fixture
def nightly(console):
    ReportSchedule.objects.all().delete()
    console.post(f"{PAGE}new/", **NIGHTLY)
    return ReportSchedule.objects.get()


def person_with(api, role):
    user = User.objects.create_user(f"a-{role}", password="x", is_staff=True)
    user.groups.add(Role.objects.get(name=role))
    return Console(api, user)


def test_a_schedule_is_made_and_shown_with_its_next_start(console, nightly):
    assert (nightly.every, nightly.hour, nightly.minute) == ("day", 3, 30)
    html = console.text(PAGE)
    assert "each day at 03:30" in html
    assert "Europe/Berlin" in html
    assert "2026-09-22T01:30:00.000Z" in html
    entry = AuditEntry.objects.get(action="report_schedule.create")
    assert (entry.by, entry.subject, entry.after["hour"]) == ("user:ada", "nightly", 3)


def test_a_change_is_noted_with_what_was_and_plans_anew(console, nightly):
    ReportSchedule.objects.update(next_at="2030-01-01T00:00:00Z", failures=2)
    page = f"{PAGE}{nightly.pk}/change/"
    assert 'value="03:30"' in console.text(page)
    console.post(page, **{**NIGHTLY, "every": "week", "weekday": "4", "at": "06:00"})
    nightly.refresh_from_db()
    assert (nightly.every, nightly.weekday, nightly.hour, nightly.next_at) == ("week", 4, 6, None)
    assert nightly.failures == 0
    entry = AuditEntry.objects.get(action="report_schedule.change")
    assert entry.before == {"every": "day", "weekday": 0, "hour": 3, "minute": 30}
    assert entry.after == {"every": "week", "weekday": 4, "hour": 6, "minute": 0}
    assert "Fridays at 06:00" in console.text(PAGE)


def test_what_changes_nothing_leaves_its_plan(console, nightly):
    ReportSchedule.objects.update(next_at="2030-01-01T00:00:00Z")
    console.post(f"{PAGE}{nightly.pk}/change/", **NIGHTLY)
    nightly.refresh_from_db()
    assert nightly.next_at.year == 2030
    assert not AuditEntry.objects.filter(action="report_schedule.change").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"at": "25:00"}, "Enter a valid time"),
        ({"time_zone": "Mars/Olympus"}, "is no time zone"),
        ({"time_zone": "../../etc/passwd"}, "is no time zone"),
        ({"topic": "TBW102"}, "belongs to the system"),
        ({"every": "minute"}, "Select a valid choice"),
        ({"name": "hourly"}, "already"),
        ({"name": ""}, "required"),
    ],
)
def test_what_cannot_be_is_said_beside_the_field(console, nightly, wrong, words):
    ReportSchedule.objects.create(name="hourly", every="hour")
    for page in (f"{PAGE}new/", f"{PAGE}{nightly.pk}/change/"):
        answer = console.post(page, **{**NIGHTLY, "name": "other", **wrong})
        assert words in answer.content.decode()
    assert ReportSchedule.objects.count() == 2
    nightly.refresh_from_db()
    assert nightly.name == "nightly"


def test_one_that_is_off_has_no_next_start(console, nightly):
    console.post(f"{PAGE}{nightly.pk}/change/", **{**NIGHTLY, "enabled": ""})
    html = console.text(PAGE)
    assert ">off<" in html
    assert "2026-09-22" not in html


def test_manual_reports_start_by_hand_alone(console, nightly, settings):
    settings.POSTDATE = settings.POSTDATE.model_copy(update={"reports": "manual"})
    html = console.text(PAGE)
    assert "No schedule starts by itself" in html
    assert "by hand only" in html
    assert nightly.name in html


def test_a_schedule_is_run_now_over_the_last_whole_period(console, nightly):
    page = f"{PAGE}{nightly.pk}/run/"
    assert "2026-09-19T22:00Z to 2026-09-20T22:00Z" in console.text(page)
    answer = console.post(page)
    run = ReportRun.objects.get()
    assert answer.request["PATH_INFO"] == f"/admin/operations/{run.operation_id}/"
    assert (run.to_ms - run.from_ms, run.schedule, run.by) == (86_400_000, nightly, "user:ada")
    assert AuditEntry.objects.filter(by="user:ada", action="operation.begin").exists()
    assert f"/admin/operations/{run.operation_id}/" in console.text(PAGE)


def test_a_schedule_is_deleted_and_its_reports_stay(console, nightly):
    console.post(f"{PAGE}{nightly.pk}/run/")
    console.post(f"{PAGE}{nightly.pk}/delete/")
    assert not ReportSchedule.objects.exists()
    assert ReportRun.objects.get().schedule is None
    assert AuditEntry.objects.get(action="report_schedule.delete").before["name"] == "nightly"
    assert "No report is scheduled" in console.text(PAGE)
    assert console.get(f"{PAGE}{nightly.pk}/change/").status_code == 404


def test_who_may_do_what_with_schedules(api, console, nightly):
    changing = [f"{PAGE}new/", *(f"{PAGE}{nightly.pk}/{verb}/" for verb in ("change", "delete"))]
    assert person_with(api, "viewer").get(PAGE).status_code == 403
    operator = person_with(api, "operator")
    assert "/run/" in operator.text(PAGE)
    assert "/change/" not in operator.text(PAGE)
    assert [operator.post(page, **NIGHTLY).status_code for page in changing] == [403] * 3
    admin = person_with(api, "admin")
    assert [admin.get(page).status_code for page in changing] == [200] * 3
    assert console.client
