"""Reports over REST: asked for, made as operations, read in three forms."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analytics.models import ReportRun, ReportSchedule
from analytics.periods import DAY_MS
from analytics.services import places, running, scheduling
from analytics.services.running import LatenessRunner
from analytics.services.spark_process import RunFailed, SparkProcess
from queues.models import Operation
from queues.services.operations import carry_out
from tests.http.conftest import Api

SAMPLE = Path(__file__).parents[1] / "data" / "reports" / "lateness.json"


class Spark:
    """What stands in for Spark's process: it writes the report that it was given."""

    def __init__(self) -> None:
        self.arguments: list[list[str]] = []
        self.failures: list[int] = []

    def run(self, process: SparkProcess) -> None:
        self.arguments.append(list(process.arguments))
        process.tell({"done": 20})
        if self.failures:
            raise RunFailed(self.failures.pop(0), "out of memory")
        out = Path(process.arguments[process.arguments.index("--out") + 1])
        out.parent.mkdir(parents=True, exist_ok=True)
        report = json.loads(SAMPLE.read_text()) | {"charts": ["lateness"]}
        (out.parent / "lateness.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
        out.write_text(json.dumps(report))

    def option(self, name: str) -> str:
        """What the last process was told."""
        last = self.arguments[-1]
        return last[last.index(name) + 1]


@pytest.fixture
def spark(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spark]:
    made = Spark()
    api.wiring.runners["report.lateness"] = LatenessRunner(made.run, wait=lambda _: None)
    monkeypatch.setattr(running, "are_packages_ready", lambda: True)
    yield made
    shutil.rmtree(places.reports_dir(), ignore_errors=True)


def make(api: Api, **body: Any) -> str:
    """Ask for a report and carry it out; its id."""
    operation = api.post("reports", body)
    assert operation.status == 202, operation.json
    carry_out(operation.json["id"], is_stopping=lambda: False)
    done = api.get(f"operations/{operation.json['id']}").json
    assert done["state"] == "succeeded", done
    return str(done["result"]["report_id"])


def test_a_report_is_made_by_an_operation(api: Api, spark: Spark) -> None:
    answer = api.post("reports", {})
    assert answer.headers["Location"] == f"/api/v1/operations/{answer.json['id']}"
    assert (answer.json["kind"], answer.json["state"]) == ("report.lateness", "queued")
    carry_out(answer.json["id"], is_stopping=lambda: False)
    done = api.get(f"operations/{answer.json['id']}").json
    assert done["state"] == "succeeded"
    report = api.get(f"reports/{done['result']['report_id']}").json
    assert report["totals"]["delivered"] == 200_000
    assert report["totals"]["lateness_ms"]["p99"] == 7_207_147
    assert [row["topic"] for row in report["rows"]] == ["orders-0"] * 3
    assert report["operation_id"] == answer.json["id"]
    assert spark.option("--store") == str(places.reports_dir().parent / "store")


def test_by_default_it_covers_the_last_24_hours_in_quarter_hours(api: Api, spark: Spark) -> None:
    make(api)
    now_ms = api.wiring.clock.now_ms()
    from_ms, to_ms = int(spark.option("--from")), int(spark.option("--to"))
    assert from_ms % 900_000 == to_ms % 900_000 == 0
    assert from_ms <= now_ms - DAY_MS < from_ms + 900_000
    assert to_ms - 900_000 < now_ms <= to_ms
    assert int(spark.option("--end")) == api.wiring.store.flushed


def test_period_topic_and_zone_are_taken(api: Api, spark: Spark) -> None:
    make(api, **{"from": "2026-09-01T00:00:00Z", "to": 1_788_307_200_000, "topic": "orders",
                 "time_zone": "Asia/Kolkata"})  # fmt: skip
    assert spark.option("--topic") == "orders"
    assert spark.option("--zone") == "Asia/Kolkata"
    assert spark.option("--from") == "1788220800000"


def test_the_same_report_is_not_made_twice_at_once(api: Api, spark: Spark) -> None:
    first, second = api.post("reports", {}), api.post("reports", {})
    other = api.post("reports", {"topic": "orders"})
    assert first.json["id"] == second.json["id"] != other.json["id"]
    carry_out(first.json["id"], is_stopping=lambda: False)
    assert api.post("reports", {}).json["id"] != first.json["id"]
    assert len(spark.arguments) == 1


def test_finished_reports_are_listed_newest_first(api: Api, spark: Spark) -> None:
    assert api.get("reports").json == {"items": [], "next_page_token": ""}
    api.post("reports", {"topic": "never-carried-out"})
    made = []
    for topic in ("a", "b", "c"):
        made.append(make(api, topic=topic))
        api.wiring.clock.advance(10)
    page = api.get("reports?page_size=2").json
    assert [one["id"] for one in page["items"]] == made[:0:-1]
    rest = api.get(f"reports?page_size=2&page_token={page['next_page_token']}").json
    assert [one["id"] for one in rest["items"]] == made[:1]
    assert rest["next_page_token"] == ""
    assert spark.arguments


def test_a_report_comes_as_csv_and_as_html(api: Api, spark: Spark) -> None:
    report_id = make(api)
    table = api.get(f"reports/{report_id}?format=csv")
    lines = table.content.decode().splitlines()
    assert lines[0].startswith("hour,hour_ms,topic,kind,level,delivered")
    assert len(lines) == 4
    assert table.headers["Content-Type"].startswith("text/csv")
    page = Client().get(
        f"/api/v1/reports/{report_id}?format=html",
        headers={"Authorization": f"Bearer {api.secret}"},
    )
    text = page.content.decode()
    assert "data:image/svg+xml;base64," in text
    assert "7,207,147" in text
    assert "<script" not in text
    assert "http://" not in text
    assert spark.arguments


def test_reports_need_their_scopes_and_patterns(api: Api, spark: Spark) -> None:
    everything, of_orders = make(api), make(api, topic="orders")
    reader = api.as_(scopes=("inspect",), topics=("orders",))
    assert reader.post("reports", {}).status == 403
    assert reader.get(f"reports/{of_orders}").status == 200
    assert reader.get(f"reports/{everything}").status == 404
    assert [one["id"] for one in reader.get("reports").json["items"]] == [of_orders]
    manager = api.as_(scopes=("manage",), topics=("orders",))
    assert manager.post("reports", {}).status == 403
    assert manager.post("reports", {"topic": "orders"}).status == 202
    assert spark.arguments


def test_pages_are_full_also_where_patterns_leave_reports_out(api: Api, spark: Spark) -> None:
    made = []
    for topic in ("orders", "mail", "orders", "", "mail", "mail", "orders", "mail"):
        report_id = make(api, **({"topic": topic} if topic else {}))
        made += [report_id] if topic == "orders" else []
        api.wiring.clock.advance(10)
    reader = api.as_(scopes=("inspect",), topics=("orders",))
    listed, token, sizes = [], "", []
    while True:
        page = reader.get(f"reports?page_size=2&page_token={token}").json
        listed += [one["id"] for one in page["items"]]
        sizes.append(len(page["items"]))
        token = page["next_page_token"]
        if not token:
            break
    assert listed == made[::-1]
    assert sizes == [2, 1]
    assert len(spark.arguments) == 8


def test_a_run_that_fails_is_tried_once_more(api: Api, spark: Spark) -> None:
    spark.failures = [1]
    run = ReportRun.objects.get(pk=make(api))
    assert (run.attempts, run.state) == (2, "succeeded")


def test_a_run_that_fails_twice_says_why(api: Api, spark: Spark) -> None:
    spark.failures = [1, 1]
    operation = api.post("reports", {}).json
    carry_out(operation["id"], is_stopping=lambda: False)
    told = api.get(f"operations/{operation['id']}").json
    assert told["state"] == "failed"
    assert told["error"]["code"] == "report_failed"
    assert "out of memory" in told["error"]["detail"]
    assert "out of memory" in ReportRun.objects.get().error
    assert api.get("reports").json["items"] == []


def test_a_run_waits_while_another_holds_the_lock(api: Api, spark: Spark) -> None:
    spark.failures = [75, 75]
    make(api)
    assert len(spark.arguments) == 3


def test_an_aborted_run_stops(api: Api, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = api.post("reports", {}).json
    ready: list[bool] = []

    def are_ready() -> bool:
        ready.append(True)
        api.post(f"operations/{operation['id']}/abort", {})
        return False

    monkeypatch.setattr(running, "are_packages_ready", are_ready)
    carry_out(operation["id"], is_stopping=lambda: False)
    assert api.get(f"operations/{operation['id']}").json["state"] == "aborted"
    assert ReportRun.objects.get().state == "aborted"
    assert spark.arguments == []


def test_a_run_that_is_aborted_in_the_queue_is_aborted(api: Api, spark: Spark) -> None:
    operation = api.post("reports", {}).json
    api.post(f"operations/{operation['id']}/abort", {})
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    run = ReportRun.objects.get()
    assert (run.state, run.error) == ("aborted", "It was aborted.")
    assert spark.arguments == []


def test_a_run_whose_operation_was_given_up_has_failed(api: Api, spark: Spark) -> None:
    operation = api.post("reports", {}).json
    Operation.objects.filter(pk=operation["id"]).update(state="failed")
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    assert ReportRun.objects.get().state == "failed"
    Operation.objects.all().delete()
    ReportRun.objects.update(state="running")
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    assert ReportRun.objects.get().state == "failed"
    assert spark.arguments == []


def test_a_report_that_was_kept_before_the_death_is_not_made_again(api: Api, spark: Spark) -> None:
    report_id = make(api)
    operation = api.post("reports", {}).json
    ReportRun.objects.filter(operation_id=operation["id"]).delete()
    ReportRun.objects.filter(pk=report_id).update(operation_id=operation["id"])
    answer = LatenessRunner(spark.run).run({"report_id": report_id}, None)  # type: ignore[arg-type]
    assert answer == {"report_id": report_id}
    assert len(spark.arguments) == 1


# -- schedules


@pytest.fixture
def hourly(api: Api) -> ReportSchedule:
    del api
    ReportSchedule.objects.all().delete()
    return ReportSchedule.objects.create(name="hourly", every="hour", minute=5)


def begun() -> list[ReportRun]:
    return list(ReportRun.objects.order_by("created_at"))


def test_a_schedule_starts_its_report_once_when_its_time_comes(
    api: Api, hourly: ReportSchedule, spark: Spark
) -> None:
    clock = api.wiring.clock
    scheduling.start_due_reports(clock.now_ms())
    assert begun() == []
    hourly.refresh_from_db()
    assert hourly.next_at is not None
    clock.advance_to(round(hourly.next_at.timestamp() * 1000))
    assert scheduling.start_due_reports(clock.now_ms()) == {"started": 1}
    assert scheduling.start_due_reports(clock.now_ms()) == {"started": 0}
    (run,) = begun()
    assert run.to_ms - run.from_ms == 3_600_000
    assert run.to_ms == clock.now_ms() - 5 * 60_000
    assert run.schedule == hourly
    assert spark.arguments == []


def test_only_a_run_that_nobody_waits_for_keeps_the_classes_of_spark(
    api: Api, hourly: ReportSchedule, spark: Spark
) -> None:
    make(api)
    assert "--keep-classes" not in spark.arguments[-1]
    clock = api.wiring.clock
    scheduling.start_due_reports(clock.now_ms())
    hourly.refresh_from_db()
    assert hourly.next_at is not None
    clock.advance_to(round(hourly.next_at.timestamp() * 1000))
    scheduling.start_due_reports(clock.now_ms())
    carry_out(begun()[-1].operation_id, is_stopping=lambda: False)
    assert "--keep-classes" in spark.arguments[-1]


def test_missed_starts_are_caught_up_once(api: Api, hourly: ReportSchedule) -> None:
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    api.wiring.clock.advance(DAY_MS)
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    scheduling.start_due_reports(api.wiring.clock.now_ms())
    assert len(begun()) == 1
    hourly.refresh_from_db()
    assert hourly.next_at is not None
    assert hourly.next_at.timestamp() * 1000 > api.wiring.clock.now_ms()


def test_a_failed_report_is_tried_again_later_and_not_for_ever(
    api: Api, hourly: ReportSchedule, spark: Spark
) -> None:
    clock = api.wiring.clock
    scheduling.start_due_reports(clock.now_ms())
    hourly.refresh_from_db()
    assert hourly.next_at is not None
    clock.advance_to(round(hourly.next_at.timestamp() * 1000))
    ReportSchedule.objects.update(every="day")
    tries = []
    for _ in range(100):
        spark.failures = [1, 1]
        scheduling.start_due_reports(clock.now_ms())
        for run in ReportRun.objects.filter(state="queued"):
            tries.append(clock.now_ms())
            carry_out(run.operation_id, is_stopping=lambda: False)
        clock.advance(60_000)
    waits = [(after - before) // 60_000 for before, after in itertools.pairwise(tries)]
    assert len(tries) == 4
    assert [5 <= waits[0] <= 7, 10 <= waits[1] <= 12, 20 <= waits[2] <= 22] == [True] * 3
    assert len({(run.from_ms, run.to_ms) for run in begun()}) == 1


def test_with_manual_reports_nothing_starts_by_itself(
    api: Api, hourly: ReportSchedule, settings: Any
) -> None:
    settings.POSTDATE = settings.POSTDATE.model_copy(update={"reports": "manual"})
    for _ in range(3):
        scheduling.start_due_reports(api.wiring.clock.now_ms())
        api.wiring.clock.advance(DAY_MS)
    assert begun() == []
    assert hourly.next_at is None


def test_a_new_platform_reports_each_hour_day_and_week(api: Api) -> None:
    del api
    assert sorted(one.every for one in ReportSchedule.objects.all()) == ["day", "hour", "week"]


# -- console


@pytest.fixture
def browser(api: Api) -> Client:
    del api
    User.objects.create_superuser("root", password="root")
    client = Client()
    client.login(username="root", password="root")
    return client


def test_the_console_shows_a_report_with_its_charts(
    api: Api, spark: Spark, browser: Client
) -> None:
    report_id = make(api)
    listed = browser.get("/admin/reports/").content.decode()
    assert f"/admin/reports/{report_id}/" in listed
    page = browser.get(f"/admin/reports/{report_id}/").content.decode()
    assert f"/admin/reports/{report_id}/charts/lateness.svg" in page
    assert "7,207,147" in page
    picture = browser.get(f"/admin/reports/{report_id}/charts/lateness.svg")
    assert picture["Content-Type"] == "image/svg+xml"
    assert b"".join(picture.streaming_content).startswith(b"<svg")  # type: ignore[attr-defined]
    assert browser.get(f"/admin/reports/{report_id}/charts/../../x.svg").status_code == 404
    file = browser.get(f"/admin/reports/{report_id}/file.html")
    assert file["Content-Security-Policy"].startswith("default-src 'none'")
    assert browser.get(f"/admin/reports/{report_id}/file.csv").status_code == 200
    assert spark.arguments


def test_a_run_whose_end_cannot_be_written_spoils_no_page(api: Api, browser: Client) -> None:
    api.post("reports", {})
    ReportRun.objects.update(to_ms=253_402_300_800_000)  # The year 10000, taken in former versions.
    page = browser.get("/admin/reports/")
    assert page.status_code == 200
    assert "9999-12-31 23:59:59" in page.content.decode()


def test_a_report_is_asked_for_in_the_console(api: Api, browser: Client, spark: Spark) -> None:
    answer = browser.post("/admin/reports/", {"topic": "orders"}, follow=True)
    assert "is being made" in answer.content.decode()
    (run,) = begun()
    assert (run.topic, run.by) == ("orders", "user:root")
    refused = browser.post("/admin/reports/", {"from": "yesterday", "topic": "mail"}, follow=True)
    page = refused.content.decode()
    assert "is no moment" in page
    assert 'value="yesterday"' in page, "what was typed is still there to be mended"
    assert 'value="mail"' in page
    assert len(begun()) == 1
    assert api.wiring.store
    assert spark.arguments == []
