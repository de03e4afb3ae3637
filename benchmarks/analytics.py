"""Reports on Spark against DuckDB: a scan of the log, lateness quantiles, runs from cold.

The log is written by the real store: each message waits in a level or for a time and is handed over
some milliseconds late, so there are two records a delivery. DuckDB reads Parquet of the delivered
rows (topic, level, lateness) and computes the same quantiles by `quantile_disc`; Spark computes
them from the log's own bytes, and from partials. The session is warm, each figure has five rounds,
ours and DuckDB's in turns. Runs from cold are whole processes, as the platform starts them.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from measuring import Report, rate, run
from pyspark.sql import SparkSession

from analytics.datasource import facts_of
from analytics.jobs.folding import Folder, not_read, write_parquet
from analytics.log.extent import find_extent
from analytics.session import open_session
from analytics.transforms import quantiles, summed
from queues.store import Outgoing, Store, StoreSettings
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC

ROOT = Path(__file__).resolve().parent.parent
BEGIN_MS = 1_790_078_400_000
TOPICS, BATCH, WAVE = 20, 1000, 100_000
ROUNDS = 5
CORES = 2
#: Spark's usual compilers: the session lives long enough for them.
WARM = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
LOG_COLUMNS = "event string, level int, lateness_ms bigint"
DELIVERED_COLUMNS = "topic string, event string, level int, lateness_ms bigint"
SHARES = "[0.5, 0.9, 0.95, 0.99, 0.999]"


class Clock:
    """A clock that the benchmark moves."""

    def __init__(self) -> None:
        self.at_ms = BEGIN_MS

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms - BEGIN_MS


def main(report: Report) -> None:
    """All figures."""
    deliveries = 20_000 if report.quick else 10_000_000
    rounds = 1 if report.quick else ROUNDS
    report.settings = {"deliveries": deliveries, "rounds": rounds, "cores": CORES, "topics": TOPICS}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = [str(ROOT), str(ROOT / "platform"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    with tempfile.TemporaryDirectory(prefix="postdate-") as folder:
        place = Path(folder)
        live(place / "store", deliveries)
        spark = open_session("benchmark", WARM)
        spark.sparkContext.setLogLevel("ERROR")
        warm(report, spark, place, deliveries, rounds)
        spark.stop()
        cold(report, place)


def live(root: Path, deliveries: int) -> None:
    """Write a log in which so many messages were sent and handed over, each a little late."""
    clock, chance = Clock(), random.Random(7)
    with Store.open(root, StoreSettings(), clock=clock) as store:
        for first in range(0, deliveries, WAVE):
            for start in range(0, min(WAVE, deliveries - first), BATCH):
                store.send(messages(store, clock, chance, min(BATCH, deliveries - first - start)))
            waiting = min(WAVE, deliveries - first)
            while waiting:
                clock.at_ms += chance.randrange(200, 2_000)
                waiting -= hand_over_due(store, clock)
            print(f"{first + WAVE:,} delivered", file=sys.stderr)
        store.flush()


def messages(store: Store, clock: Clock, chance: random.Random, count: int) -> list[Outgoing]:
    """Messages for levels and times, half of each."""
    now_ms = clock.now_ms()
    made = []
    for unique_id in store.new_ids("orders", now_ms, count):
        level = chance.randrange(1, 6) if chance.random() < 0.5 else 0
        due_ms = None if level else now_ms + chance.randrange(1, 60_000)
        topic = f"orders-{chance.randrange(TOPICS)}"
        made.append(
            Outgoing(topic, 0, unique_id, bytes(100), now_ms, keys=("waiting",), level=level,
                     due_ms=due_ms)
        )  # fmt: skip
    return made


def hand_over_due(store: Store, clock: Clock) -> int:
    """Hand over what is due by the clock, as the loops do."""
    handed = 0
    for topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
        for queue_id in store.queue_ids(topic):
            end = store.queue_bounds(topic, queue_id).max_offset
            found = store.schedule(topic, queue_id, store.first_unsettled(topic, queue_id), end)
            due = np.flatnonzero((found.settled == 0) & (found.due_ms <= clock.now_ms()))
            offsets = due + found.start
            for start in range(0, len(offsets), BATCH):
                handed += store.hand_over(topic, queue_id, offsets[start : start + BATCH]).handed
    return handed


def warm(report: Report, spark: SparkSession, place: Path, deliveries: int, rounds: int) -> None:
    """Scan and quantiles, ours and DuckDB's in turns."""
    root, parquet = place / "store", place / "delivered.parquet"
    facts = place / "facts.parquet"
    write_parquet(delivered(spark, root), parquet)
    write_parquet(summed(not_read(facts_of(spark, root))).toArrow(), facts)
    report.notes.append(f"log {find_extent(root).end:,} bytes, Parquet {parquet.stat().st_size:,}, "
                        f"partials {facts.stat().st_size:,}")  # fmt: skip
    database = duckdb.connect(config={"threads": CORES})
    works: dict[str, Callable[[], object]] = {
        "scan": lambda: scan(spark, root, "crc"),
        "scan, structure only": lambda: scan(spark, root, "structure"),
        "quantiles from the log": lambda: of_log(spark, root, "crc"),
        "quantiles from the log, structure only": lambda: of_log(spark, root, "structure"),
        "quantiles from partials": lambda: of_facts(spark, facts),
        "DuckDB": lambda: duck(database, parquet),
    }
    check(works["quantiles from the log"](), works["DuckDB"](), deliveries)
    check(works["quantiles from partials"](), works["DuckDB"](), deliveries)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name].append(1 / rate(1, work))
    records = 2 * deliveries
    for name, values in seconds.items():
        if name.startswith("scan"):
            report.add(name, "records/s", [records / one for one in values])
        else:
            report.add(name, "s", values, lower=True)
    report.at_least("full scan, records/s", report.figures["scan"].best, 2_000_000)
    for name, bound, aim in (
        ("quantiles from the log", 20, 12),
        ("quantiles from the log, structure only", 20, 12),
        ("quantiles from partials", 2, 1),
    ):
        ratio = report.figures[name].best / report.figures["DuckDB"].best
        report.at_most(f"{name}, times DuckDB's (best of {rounds})", ratio, bound, aim=aim)


def delivered(spark: SparkSession, root: Path) -> Any:
    """The delivered rows, for DuckDB."""
    rows = spark.read.format("commitlog").schema(DELIVERED_COLUMNS).load(str(root))
    return rows.filter("event = 'delivered'").drop("event").toArrow()


def scan(spark: SparkSession, root: Path, verify: str) -> object:
    """Every record, by event and level."""
    reader = spark.read.format("commitlog").schema(LOG_COLUMNS).option("verify", verify)
    rows = reader.load(str(root))
    return rows.groupBy("event", "level").agg({"*": "count", "lateness_ms": "max"}).collect()


def of_log(spark: SparkSession, root: Path, verify: str) -> Any:
    """Quantiles by topic and level, from the log's bytes."""
    return told(not_read(facts_of(spark, root, verify=verify, facts="delivered")))


def of_facts(spark: SparkSession, facts: Path) -> Any:
    """The same from partials."""
    return told(Folder(spark, facts.parent, {}).read([facts]).coalesce(1))


def told(facts: Any) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Count, median and 99th percentile by topic and level."""
    by = ("topic", "level")
    rows = quantiles(facts.filter("fact = 'delivered'"), by, slo_ms=100).toArrow().to_pylist()
    return {(row["topic"], row["level"]): (row["n"], row["p50"], row["p99"]) for row in rows}


def duck(database: Any, parquet: Path) -> dict[tuple[str, int], tuple[int, int, int]]:
    """The same by DuckDB."""
    rows = database.execute(
        f"select topic, coalesce(level, 0), count(*), quantile_disc(lateness_ms, {SHARES}) "  # noqa: S608 (its own file)
        f"from '{parquet}' group by all"
    ).fetchall()
    return {(topic, level): (count, found[0], found[3]) for topic, level, count, found in rows}


def check(ours: Any, theirs: Any, deliveries: int) -> None:
    """Counts are the same, quantiles within a bucket."""
    assert ours.keys() == theirs.keys()
    assert sum(count for count, _, _ in ours.values()) == deliveries
    for key, (count, half, late) in theirs.items():
        found = ours[key]
        assert found[0] == count
        assert half <= found[1] <= half * 1.032 + 1
        assert late <= found[2] <= late * 1.032 + 1


def cold(report: Report, place: Path) -> None:
    """Whole processes: the hourly run after all but an hour was read, and some over a small log.

    The first over the small log finds no partials and none of Spark's classes kept; a scheduled
    one, which is not counted, keeps them; the others find both.
    """
    extent = find_extent(place / "store")
    ends = [*extent.segment_ends, extent.end]
    hour = ends[-2] if len(ends) > 1 else extent.start
    if hour > extent.start:
        job(place / "store", place / "reports", "--end", str(hour), "--keep-classes")
    report.settings["hourly_bytes"] = extent.end - hour
    hourly = job(place / "store", place / "reports", "--keep-classes")
    live(place / "small", 1_000)
    store, reports = place / "small", place / "small-reports"
    first = [job(store, reports)]
    job(store, reports, "--keep-classes")
    later = [job(store, reports) for _ in range(1 if report.quick else 3)]
    report.add("hourly run from cold", "s", [hourly], lower=True)
    report.add("first report over a small store, from cold", "s", first, lower=True)
    report.add("later reports over a small store, from cold", "s", later, lower=True)
    report.at_most("hourly run from cold, s", hourly, 40)
    report.at_most("report over a small store from cold, s", max(first + later), 30)


def job(store: Path, reports: Path, *options: str) -> float:
    """One run of the job; its seconds."""
    out = reports / "report.json"
    command = [
        *(sys.executable, "-m", "analytics.jobs.lateness", "--store", str(store)),
        *("--reports", str(reports), "--from", str(BEGIN_MS), "--to", str(BEGIN_MS + 86_400_000)),
        *("--out", str(out), "--charts", *options),
    ]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(out.read_text())["totals"]["early"] == 0
    return time.perf_counter() - began


if __name__ == "__main__":
    run("analytics", main, __doc__)
