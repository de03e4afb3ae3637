"""Transforms of facts, against cases computed by hand."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as F  # noqa: N812 (as everyone writes it)
from pyspark.testing import assertDataFrameEqual

from analytics.buckets import UNKNOWN, bucket_of, buckets_of
from analytics.buckets import upper_edge as exact_edge
from analytics.transforms import (
    FACTS,
    UPPER_EDGE,
    cut,
    doublings,
    hot_slots,
    hour_of,
    hour_starts,
    quantiles,
    summed,
    within,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SCHEMA = (
    "fact string, quarter_ms bigint, topic string, kind string, level int, `group` string, "
    "attempt int, reason string, bucket int, n bigint, total_ms bigint, max_ms bigint"
)
HOUR = 3_600_000
QUARTER = 900_000


def facts(spark: Any, *rows: dict[str, Any]) -> Any:
    usual = {"fact": "delivered", "quarter_ms": 0, "topic": "orders", "kind": "timed", "level": 0,
             "group": "", "attempt": 0, "reason": "", "bucket": 0, "n": 1, "total_ms": 0,
             "max_ms": 0}  # fmt: skip
    return spark.createDataFrame(
        [tuple({**usual, **row}[n] for n in FACTS) for row in rows], SCHEMA
    )


def of_values(*values_ms: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"bucket": bucket_of(one), "n": 1, "total_ms": one, "max_ms": one, **fields}
        for one in values_ms
    ]


def test_summing_up_counts_each_series_and_bucket_once(spark: Any) -> None:
    twice = facts(
        spark,
        {"bucket": 5, "n": 2, "total_ms": 10, "max_ms": 5},
        {"bucket": 5, "n": 3, "total_ms": 15, "max_ms": 5},
        {"bucket": 82, "n": 1, "total_ms": 101, "max_ms": 101},
        {"bucket": 82, "n": 1, "total_ms": 100, "max_ms": 100},
    )
    once = facts(
        spark,
        {"bucket": 5, "n": 5, "total_ms": 25, "max_ms": 5},
        {"bucket": 82, "n": 2, "total_ms": 201, "max_ms": 101},
    )
    assertDataFrameEqual(summed(twice), once)


def test_a_range_holds_its_first_quarter_and_not_the_one_behind_it(spark: Any) -> None:
    given = facts(spark, *[{"quarter_ms": at * QUARTER, "n": at} for at in range(4)])
    expected = facts(spark, *[{"quarter_ms": at * QUARTER, "n": at} for at in (1, 2)])
    assertDataFrameEqual(within(given, QUARTER, 3 * QUARTER), expected)


def test_quantiles_are_upper_edges_and_never_above_the_longest(spark: Any) -> None:
    given = facts(spark, *of_values(*range(1, 11), 100))
    found = quantiles(given, ["topic"], slo_ms=100).first()
    # Of eleven, the rank of the median is 6; rank 10 is 10 ms; all above is the last, 100 ms.
    assert (found.p50, found.p90, found.p95, found.p99, found.p999) == (6, 10, 100, 100, 100)
    assert (found.max, found.n, found.known, found.total_ms) == (100, 11, 11, 155)
    # 100 and 101 share a bucket: what lies in the objective's own is not late.
    assert found.late == 0
    assert quantiles(given, ["topic"], slo_ms=99).first().late == 1


def test_quantiles_of_many_are_within_a_bucket_of_the_exact_ones(spark: Any) -> None:
    values = np.sort(np.random.default_rng(7).lognormal(4, 2, 20_000).astype(np.int64))
    of = buckets_of(values)
    buckets, counts = np.unique(of, return_counts=True)
    rows = [
        {"bucket": int(bucket), "n": int(count), "max_ms": int(values[of == bucket].max())}
        for bucket, count in zip(buckets, counts, strict=True)
    ]  # fmt: skip
    found = quantiles(facts(spark, *rows), ["topic"], slo_ms=100).first()
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    for name, share in shares.items():
        exact = int(values[int(np.ceil(share * len(values))) - 1])
        assert exact <= found[name] <= exact * 1.032 + 1


def test_what_is_not_known_is_in_no_quantile(spark: Any) -> None:
    given = facts(spark, *of_values(7), {"bucket": UNKNOWN, "n": 9}, *of_values(-3))
    found = quantiles(given, ["topic"], slo_ms=100).first()
    assert (found.n, found.known, found.early, found.p50, found.max) == (11, 2, 1, -1, 7)
    unknown = quantiles(facts(spark, {"bucket": UNKNOWN, "n": 9}), ["topic"], slo_ms=1).first()
    assert (unknown.n, unknown.known, unknown.p50, unknown.max) == (9, 0, None, None)


def test_edges_are_those_of_the_buckets(spark: Any) -> None:
    values = [-1, 0, 1, 63, 64, 100, 12345, 86_400_000, 2**40 + 5]
    frame = spark.createDataFrame([(one, bucket_of(one)) for one in values], "v long, bucket int")
    told = frame.select("v", F.expr(UPPER_EDGE).alias("edge")).collect()
    assert [row.edge for row in told] == [exact_edge(bucket_of(one)) for one in values]


def test_a_cut_keeps_its_columns_and_sums_the_rest_up(spark: Any) -> None:
    given = facts(
        spark,
        {"topic": "a", "level": 1},
        {"topic": "a", "level": 2},
        {"topic": "b"},
        {"fact": "dead", "n": 7},
        {"fact": "slot", "n": 7},
    ).withColumn("hour_ms", F.lit(0))
    cuts = {"delivered": {"all": (), "topic": ("topic",)}, "dead": {"all": ()}}
    rows = cut(given, cuts).collect()
    found = {(row.fact, row.cut, row.topic): row.n for row in rows}
    assert found == {
        ("delivered", "all", ""): 3,
        ("delivered", "topic", "a"): 2,
        ("delivered", "topic", "b"): 1,
        ("dead", "all", ""): 7,
    }


@pytest.mark.parametrize(
    ("zone", "at_ms", "hour_ms"),
    [
        ("UTC", 5 * HOUR + QUARTER, 5 * HOUR),
        # India is five and a half hours ahead: its hours begin at half past, UTC.
        ("Asia/Kolkata", 5 * HOUR, 4 * HOUR + 2 * QUARTER),
        # The night in which Berlin's clocks go back: 02:15 comes twice, and is two hours.
        ("Europe/Berlin", 1_792_886_400_000 + QUARTER, 1_792_886_400_000),
        ("Europe/Berlin", 1_792_886_400_000 + HOUR + QUARTER, 1_792_886_400_000 + HOUR),
    ],
)
def test_hours_are_the_zones_own(spark: Any, zone: str, at_ms: int, hour_ms: int) -> None:
    offsets = hour_starts(at_ms - HOUR, at_ms + HOUR, zone)
    frame = spark.createDataFrame([(at_ms,)], "quarter_ms long")
    assert frame.select(hour_of(F.col("quarter_ms"), offsets).alias("h")).first().h == hour_ms


def test_lateness_is_told_by_doublings(spark: Any) -> None:
    given = facts(spark, *of_values(0, 1, 2, 3, 4, 7, 8)).withColumn("hour_ms", F.lit(0))
    expected = [(0, 0, 1), (0, 1, 1), (0, 2, 2), (0, 3, 2), (0, 4, 1)]
    assertDataFrameEqual(
        doublings(given),
        spark.createDataFrame(expected, "hour_ms int, doubling int, n bigint"),
    )


def test_the_hottest_seconds_come_first(spark: Any) -> None:
    given = facts(
        spark,
        {"fact": "slot", "bucket": 3, "n": 5},
        {"fact": "slot", "bucket": 899, "n": 9},
        {"fact": "slot", "quarter_ms": QUARTER, "bucket": 0, "n": 2},
        {"fact": "slot", "bucket": 3, "n": 5},
    )
    told = [tuple(row) for row in hot_slots(given, 2).collect()]
    assert told == [(3000, 10), (899_000, 9)]
