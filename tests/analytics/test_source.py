"""The data source `commitlog`, through Spark."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.loglines import MINUTE_MS, NOON_MS, LivedStore

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def read(spark: Any, root: Path, schema: str | None = None, **options: str) -> list[Any]:
    reader = spark.read.format("commitlog").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(str(root)).collect()


def test_every_column_of_our_records_is_told(spark: Any, lived: LivedStore) -> None:
    message_id = lived.send("orders", delay_ms=MINUTE_MS, keys=("a", "b"), tag="paid")
    lived.after(MINUTE_MS + 5).flush()
    sent, delivered = read(spark, lived.store.root)
    due = datetime.fromtimestamp((NOON_MS + MINUTE_MS) / 1000, UTC).replace(tzinfo=None)
    for row in (sent, delivered):
        assert (row.id, row.topic, row["keys"], row.tag) == (message_id, "orders", "a b", "paid")
        assert (row.kind, row.level, row.due, row.version) == ("timed", None, due, 1)
    assert (sent.event, sent.stored_topic) == ("sent", "rmq_sys_wheel_timer")
    assert (sent.asked_delay_ms, sent.lateness_ms, sent.delivered) == (MINUTE_MS, None, None)
    assert (delivered.event, delivered.stored_topic) == ("delivered", "orders")
    assert (delivered.lateness_ms, delivered.attempt, delivered.queue) == (5, 1, 0)
    assert delivered.log_offset == sent.log_offset + sent.size


def test_only_what_is_asked_for_comes(spark: Any, lived: LivedStore) -> None:
    for topic in ("orders", "payments", "orders"):
        lived.send(topic, level=1)
        lived.clock.advance(MINUTE_MS)
    lived.after(1_000).flush()
    root, schema = lived.store.root, "event string, topic string"
    rows = read(spark, root, schema, topics="payments")
    assert [tuple(row) for row in rows] == [("sent", "payments"), ("delivered", "payments")]
    late = read(spark, root, schema, **{"from": str(NOON_MS + MINUTE_MS)})
    assert len(late) == 5
    early = read(spark, root, schema, to="2026-09-22T12:01:00Z")
    assert [row.topic for row in early] == ["orders"]
    assert lived.clock.now_ms() > NOON_MS + 3 * MINUTE_MS


def test_a_condition_is_taken_from_the_query(spark: Any, lived: LivedStore) -> None:
    for topic in ("orders", "payments"):
        lived.send(topic, level=1)
    lived.flush()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = (
            spark.read.format("commitlog").option("pushdown", "true")
            .load(str(lived.store.root)).filter("topic = 'payments' and size > 0").collect()
        )  # fmt: skip
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert [row.topic for row in rows] == ["payments"]


def test_a_column_that_there_is_not_is_refused(spark: Any, lived: LivedStore) -> None:
    with pytest.raises(Exception, match="there is no column latness"):
        read(spark, lived.store.root, "latness bigint")


def test_a_damaged_stretch_is_a_row_that_says_where_and_why(spark: Any, lived: LivedStore) -> None:
    for _ in range(3):
        lived.send("orders", level=1)
    lived.flush()
    size = lived.store.flushed // 3
    with (lived.store.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(size + 95)
        file.write(b"\xff")
    rows = read(spark, lived.store.root, "event string, log_offset bigint, reason string")
    assert sorted(row.event for row in rows) == ["damaged", "sent", "sent"]
    (damaged,) = [row for row in rows if row.event == "damaged"]
    assert (damaged.log_offset, damaged.reason) == (size, "the body's CRC differs")
    assert len(read(spark, lived.store.root, damaged="skip")) == 2


def test_a_removed_segment_fails_the_query(spark: Any, lived: LivedStore) -> None:
    lived.send("orders", level=1)
    lived.flush()
    frame = spark.read.format("commitlog").option("start", "0").load(str(lived.store.root))
    assert frame.count() == 1
    (lived.store.root / "commitlog" / f"{0:020d}").rename(lived.store.root / "gone")
    with pytest.raises(Exception, match="removed before it was read"):
        frame.count()
    (lived.store.root / "gone").rename(lived.store.root / "commitlog" / f"{0:020d}")


def test_a_brokers_store_is_read_as_its_client_read_it(spark: Any, broker_root: Path) -> None:
    rows = read(spark, broker_root)
    expected = {
        one["commitlog_offset"]: one
        for one in json.loads((broker_root.parent / "expected.json").read_text())
    }
    found = {row.log_offset: row for row in rows}
    assert len(found) == 181
    for offset, told in expected.items():
        row = found[offset]
        assert (row.stored_topic, row.queue, row.queue_offset, row.size) == (
            told["topic"], told["queue"], told["queue_offset"], told["store_size"],
        )  # fmt: skip
        assert row.id == told["properties"].get("UNIQ_KEY")
        assert row.tag == told["properties"].get("TAGS")
    timed = [row for row in rows if row.event == "delivered" and row.kind == "timed"]
    assert len(timed) == 10
    assert all(0 <= row.lateness_ms < 1000 for row in timed)
    levels = [row for row in rows if row.event == "delivered" and row.kind == "level"]
    assert {(row.due, row.lateness_ms) for row in levels} == {(None, None)}


def run_stream(spark: Any, root: Path, place: Path, **options: str) -> list[int]:
    """Read what is new, and say how many rows each batch had."""
    sizes: list[int] = []

    def take(batch: Any, number: int) -> None:
        target = place / "out" / f"batch={number}"
        rows = batch.toArrow()
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "offsets").write_text("\n".join(map(str, rows["log_offset"].to_pylist())))
        sizes.append(rows.num_rows)

    query = (
        spark.readStream.format("commitlog").options(**options)
        .schema("log_offset bigint, event string").load(str(root))
        .writeStream.foreachBatch(take).option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination(300)
    return sizes


def test_a_stream_gives_every_record_once_over_restarts(
    spark: Any, lived: LivedStore, tmp_path: Path
) -> None:
    for _ in range(4):
        lived.send("orders", level=1)
    lived.flush()
    root = lived.store.root
    assert run_stream(spark, root, tmp_path) == [4]
    lived.after(1_000).flush()
    sizes = run_stream(spark, root, tmp_path, max_bytes="700")
    assert sum(sizes) == 4
    assert len(sizes) > 1
    offsets = [
        int(line)
        for path in sorted((tmp_path / "out").rglob("offsets"))
        for line in path.read_text().split()
    ]
    assert len(offsets) == len(set(offsets)) == 8
    assert run_stream(spark, root, tmp_path) == []
