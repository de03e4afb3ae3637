"""The lateness report: from a log to figures computed by hand, again and again the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from analytics.jobs.charts import draw
from analytics.jobs.lateness import BUSY, Request, Steps, main, make
from analytics.jobs.packing import ROOT, pack
from tests.support.loglines import MINUTE_MS, NOON_MS, LivedStore

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

HOUR_MS = 60 * MINUTE_MS


def report(spark: SparkSession, lived: LivedStore, place: Path, **more: Any) -> dict[str, Any]:
    lived.flush()
    asked = {"from_ms": NOON_MS, "to_ms": NOON_MS + HOUR_MS, **more}
    request = Request(store=lived.store.root, reports=place, out=place / "report.json", **asked)
    made: dict[str, Any] = json.loads(json.dumps(make(spark, request, Steps())))
    return made


def lateness_life(lived: LivedStore) -> None:
    """Ten hand-overs: level 1 late by 0 to 8 ms, one timed late by 250 ms, one immediate."""
    for late_ms in range(9):
        lived.send("orders", level=1)
        lived.after(1_000 + late_ms)
    lived.send("payments", delay_ms=5_000)
    lived.send("payments")
    lived.after(5_250)


def test_figures_are_those_computed_by_hand(spark: Any, lived: LivedStore, tmp_path: Path) -> None:
    lateness_life(lived)
    made = report(spark, lived, tmp_path)
    totals = made["totals"]
    assert (totals["delivered"], totals["immediate"], totals["sent"]) == (10, 1, 11)
    assert (totals["early"], totals["late_over_slo"], made["slo_ms"]) == (0, 1, 101)
    # Ranks 5, 9, 10 of 0, 1, ..., 8, 250.
    assert totals["lateness_ms"] == {
        "p50": 4, "p90": 8, "p95": 250, "p99": 250, "p999": 250, "max": 250,
    }  # fmt: skip
    rows = {(row["topic"], row["kind"], row.get("level")): row for row in made["rows"]}
    assert rows.keys() == {("orders", "level", 1), ("payments", "timed", None)}
    assert rows["orders", "level", 1]["delivered"] == 9
    assert rows["orders", "level", 1]["lateness_ms"]["p50"] == 4
    assert rows["orders", "level", 1]["hour_ms"] == NOON_MS
    assert [row["topic"] for row in made["by_topic"]] == ["payments", "orders"]
    assert [(row["in"], row["out"]) for row in made["throughput"]] == [(11, 11)]
    asked = {(row["topic"], row["kind"]): row["ms"]["max"] for row in made["asked_delays"]}
    assert asked == {
        ("orders", "level"): 1_000, ("payments", "timed"): 5_000, ("payments", "immediate"): 0,
    }  # fmt: skip
    assert sum(one["n"] for one in made["hot_slots"]) == 10
    assert made["gaps"] == []
    assert made["log"]["damaged"] == 0
    assert made["log"]["read_to"] == lived.store.flushed


def test_another_run_gives_the_same_figures_and_reads_nothing_again(
    spark: Any, lived: LivedStore, tmp_path: Path
) -> None:
    lateness_life(lived)
    first = report(spark, lived, tmp_path)
    second = report(spark, lived, tmp_path)
    assert second["log"]["read_from"] == second["log"]["read_to"] == first["log"]["read_to"]
    for name in ("totals", "rows", "by_hour", "distribution", "hot_slots", "asked_delays"):
        assert first[name] == second[name]
    # Read in two halves, it is the same, too.
    lateness_life(lived)
    both = report(spark, lived, tmp_path)
    fresh = report(spark, lived, tmp_path / "anew")
    for name in ("totals", "rows", "by_hour", "distribution", "hot_slots", "asked_delays"):
        assert both[name] == fresh[name]
    assert both["totals"]["delivered"] == 20


def test_a_report_outlives_the_log(spark: Any, lived: LivedStore, tmp_path: Path) -> None:
    lateness_life(lived)
    before = report(spark, lived, tmp_path)
    lived.clock.advance(3 * HOUR_MS)
    later = {"from_ms": NOON_MS + 3 * HOUR_MS, "to_ms": NOON_MS + 4 * HOUR_MS}
    nothing = report(spark, lived, tmp_path, **later)
    assert nothing["totals"]["delivered"] == 0
    assert nothing["totals"]["lateness_ms"]["p50"] is None
    assert report(spark, lived, tmp_path)["totals"] == before["totals"]


def test_a_topic_and_the_period_before_are_told_apart(
    spark: Any, lived: LivedStore, tmp_path: Path
) -> None:
    lateness_life(lived)
    lived.clock.advance_to(NOON_MS + HOUR_MS)
    lived.send("orders", level=2)
    lived.after(5_000)
    second_hour = {"from_ms": NOON_MS + HOUR_MS, "to_ms": NOON_MS + 2 * HOUR_MS}
    made = report(spark, lived, tmp_path, topic="orders", **second_hour)
    assert made["totals"]["delivered"] == 1
    assert made["previous"]["totals"]["delivered"] == 9
    assert {row["topic"] for row in made["rows"]} == {"orders"}


def test_hours_are_told_in_the_zone(spark: Any, lived: LivedStore, tmp_path: Path) -> None:
    lateness_life(lived)
    made = report(spark, lived, tmp_path, zone="Asia/Kolkata")
    (row, _) = made["rows"]
    assert row["hour"] == "2026-09-22T17:00:00.000+05:30"


def test_an_empty_store_has_a_report_and_a_brokers_too(
    spark: Any, lived: LivedStore, broker_root: Path, tmp_path: Path
) -> None:
    assert report(spark, lived, tmp_path)["totals"]["delivered"] == 0
    request = Request(
        store=broker_root, reports=tmp_path / "broker", out=tmp_path / "x.json",
        from_ms=1_795_219_200_000, to_ms=1_795_305_600_000,
    )  # fmt: skip
    made = make(spark, request, Steps())
    totals = made["totals"]
    assert (totals["delivered"], totals["lateness_known"], totals["dead"]) == (26, 10, 2)
    assert totals["immediate"] == 77


def test_charts_are_drawn_of_what_there_is(spark: Any, lived: LivedStore, tmp_path: Path) -> None:
    lateness_life(lived)
    made = draw(report(spark, lived, tmp_path), tmp_path / "charts")
    assert made == ["lateness", "distribution", "topics", "levels", "throughput", "before"]
    for name in made:
        text = (tmp_path / "charts" / f"{name}.svg").read_text()
        assert "<svg" in text
        assert "<script" not in text


@pytest.mark.usefixtures("java")
def test_the_same_file_runs_under_spark_submit_on_a_local_cluster(
    lived: LivedStore, tmp_path: Path
) -> None:
    lateness_life(lived)
    lived.flush()
    pack(tmp_path / "postdate.zip")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [
            Path(pyspark.__file__).parent / "bin" / "spark-submit",
            *("--master", "local-cluster[1,2,1024]"),
            *("--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.driver.host=127.0.0.1"),
            *("--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"),
            *("--conf", "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1"),
            *("--py-files", str(tmp_path / "postdate.zip")),
            ROOT / "analytics" / "jobs" / "lateness.py",
            *("--store", str(lived.store.root), "--reports", str(tmp_path / "reports")),
            *("--from", str(NOON_MS), "--to", str(NOON_MS + HOUR_MS)),
            *("--out", str(tmp_path / "report.json")),
        ],
        env={**environment, "PYSPARK_PYTHON": sys.executable,
             "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    made = json.loads((tmp_path / "report.json").read_text())
    assert made["totals"]["delivered"] == 10
    assert made["totals"]["lateness_ms"]["p50"] == 4
    assert made["spark"]["application_id"].startswith("app-")


def test_two_runs_do_not_write_at_once(lived: LivedStore, tmp_path: Path) -> None:
    lived.flush()
    lock = lived.store.disk.lock(tmp_path / "lock")
    with lock:
        arguments = ["--store", str(lived.store.root), "--reports", str(tmp_path), "--from", "0",
                     "--to", "1", "--out", str(tmp_path / "report.json")]  # fmt: skip
        assert main(arguments) == BUSY
    lock.close()
    assert not (tmp_path / "report.json").exists()
