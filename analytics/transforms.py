"""Transforms of facts: DataFrame in, DataFrame out; each ends with the columns that it promises.

What comes in has the columns of `facts_of` (`FACTS`), from partials or straight from a log.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everyone writes it)

from analytics.buckets import EXACT_BELOW_MS, NEGATIVE, PER_DOUBLING, bucket_of

#: What facts are told apart by; beside them stand `n`, `total_ms` and `max_ms`.
SERIES: Final = ("fact", "quarter_ms", "topic", "kind", "level", "group", "attempt", "reason")
FACTS: Final = (*SERIES, "bucket", "n", "total_ms", "max_ms")
#: Quantiles in ten-thousandths, by the names under which reports show them.
QUANTILES: Final = {"p50": 5000, "p90": 9000, "p95": 9500, "p99": 9900, "p999": 9990}
_WHOLE: Final = 10_000
HOUR_MS: Final = 3_600_000

#: What a cut keeps; everything else is summed up.
KEYS: Final = ("hour_ms", "topic", "kind", "level", "group", "attempt", "reason")
_EMPTY: Final = {"hour_ms": "0L", "level": "0", "attempt": "0"}


def summed(facts: DataFrame) -> DataFrame:
    """The same facts with each series and bucket once."""
    return (
        facts.groupBy(*SERIES, "bucket")
        .agg(
            F.sum("n").alias("n"),
            F.sum("total_ms").alias("total_ms"),
            F.max("max_ms").alias("max_ms"),
        )
        .select(*FACTS)
    )


def _sums() -> list[Column]:
    added = [F.sum(name).alias(name) for name in ("n", "total_ms")]
    return [*added, F.max("max_ms").alias("max_ms")]


def within(facts: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """The facts of the quarter-hours in [from, to)."""
    in_range = (F.col("quarter_ms") >= from_ms) & (F.col("quarter_ms") < to_ms)
    return facts.filter(in_range).select(*FACTS)


def of_topic(facts: DataFrame, topic: str | None) -> DataFrame:
    """The facts of one topic, or all."""
    return facts if topic is None else facts.filter(F.col("topic") == topic).select(*FACTS)


def hour_starts(from_ms: int, to_ms: int, zone: str) -> list[tuple[int, int]]:
    """Where the zone's offset from UTC changes in a range: from when, and the offset in ms."""
    place = ZoneInfo(zone)
    found: list[tuple[int, int]] = []
    for at_ms in range(from_ms, max(to_ms, from_ms + 1), HOUR_MS // 4):
        offset = datetime.fromtimestamp(at_ms / 1000, place).utcoffset() or timedelta()
        offset_ms = round(offset.total_seconds() * 1000)
        if not found or found[-1][1] != offset_ms:
            found.append((at_ms, offset_ms))
    return found


def hour_of(quarter_ms: Column, offsets: Sequence[tuple[int, int]]) -> Column:
    """The first ms of the zone's hour that a quarter-hour lies in."""
    offset: Column = F.lit(offsets[0][1])
    for from_ms, offset_ms in offsets[1:]:
        offset = F.when(quarter_ms >= from_ms, offset_ms).otherwise(offset)
    local = quarter_ms + offset
    return local - F.pmod(local, F.lit(HOUR_MS)) - offset


#: `analytics.buckets.upper_edge` as an expression.
_SHIFT: Final = f"(floor(bucket / {PER_DOUBLING}) - 1)"
UPPER_EDGE: Final = (
    f"if(bucket < {EXACT_BELOW_MS}, greatest(bucket, -1), "
    f"cast((bucket - {PER_DOUBLING} * {_SHIFT} + 1) * pow(2.0D, {_SHIFT}) - 1 as bigint))"
)


def cut(
    facts: DataFrame, cuts: Mapping[str, Mapping[str, Sequence[str]]], keep: Sequence[str] = ()
) -> DataFrame:
    """Each fact once for each of its cuts: what the cut does not keep is emptied.

    `cuts` names, for each fact, cuts and the columns of `KEYS` that they keep. A row of a fact
    without cuts is left out.
    """
    # As text: each call for a column would be a message to the JVM, and these are some hundreds.
    arrays = ""
    for fact, of_fact in cuts.items():
        structs = ", ".join(_struct(name, kept) for name, kept in of_fact.items())
        arrays += f" when '{fact}' then array({structs})"
    return (
        facts.selectExpr(
            *keep, "fact", f"explode(case fact{arrays} end) as at",
            "bucket", "n", "total_ms", "max_ms",
        )
        .groupBy(*keep, "fact", "at", "bucket")
        .agg(*_sums())
        .selectExpr(*keep, "fact", "at.cut", *[f"at.`{key}`" for key in KEYS],
                    "bucket", "n", "total_ms", "max_ms")
    )  # fmt: skip


def _struct(name: str, kept: Sequence[str]) -> str:
    columns = [
        f"'{key}', " + (f"`{key}`" if key in kept else _EMPTY.get(key, "''")) for key in KEYS
    ]
    return f"named_struct('cut', '{name}', {', '.join(columns)})"


def quantiles(buckets: DataFrame, by: Sequence[str], slo_ms: int) -> DataFrame:
    """Counts, sums, maxima and quantiles of each group of buckets.

    A quantile is the upper edge of the bucket that holds the value of that rank (the smallest rank
    that is not below the share, as `percentile_disc` has it), never above the longest. Values that
    are not known are counted in `n` and nowhere else. A bucket may stand in several rows.
    """
    keys, is_known = ", ".join(f"`{key}`" for key in by), f"bucket >= {NEGATIVE}"
    longest = f"max(max_ms) filter (where {is_known})"
    ranks = ", ".join(
        f"least(min(edge) filter (where {is_known} and below * {_WHOLE} >= all_known * {share}), "
        f"{longest}) as {name}"
        for name, share in QUANTILES.items()
    )
    known_n = f"sum(if({is_known}, n, 0))"
    # One text, for the reason told in `cut`. Rows of one bucket are peers: each counts all of them.
    query = f"""
        select {keys}, sum(n) as n, {known_n} as known, sum(total_ms) as total_ms,
            sum(if(bucket = {NEGATIVE}, n, 0)) as early,
            sum(if(bucket > {bucket_of(slo_ms)}, n, 0)) as late,
            {ranks}, {longest} as max
        from (
            select *, {UPPER_EDGE} as edge,
                {known_n} over (partition by {keys} order by bucket) as below,
                {known_n} over (partition by {keys}) as all_known
            from {{buckets}}
        )
        group by {keys}
    """  # noqa: S608 (names and numbers of our own)
    return buckets.sparkSession.sql(query, buckets=buckets)


def doublings(facts: DataFrame) -> DataFrame:
    """Late hand-overs by hour and doubling of lateness: 0, 1, 2 to 3, 4 to 7 ms and so on."""
    doubling = f"cast(if(bucket < 1, bucket, floor(log2({UPPER_EDGE})) + 1) as int)"
    return (
        facts.filter((F.col("fact") == "delivered") & (F.col("kind") != "immediate"))
        .filter(F.col("bucket") >= NEGATIVE)
        .groupBy("hour_ms", F.expr(doubling).alias("doubling"))
        .agg(F.sum("n").alias("n"))
        .select("hour_ms", "doubling", "n")
    )


def hot_slots(facts: DataFrame, count: int) -> DataFrame:
    """The seconds in which most was due, of what was handed over."""
    at_ms = F.col("quarter_ms") + F.col("bucket") * 1000
    return (
        facts.filter(F.col("fact") == "slot")
        .groupBy(at_ms.alias("at_ms"))
        .agg(F.sum("n").alias("n"))
        .orderBy(F.desc("n"), "at_ms")
        .limit(count)
        .select("at_ms", "n")
    )
