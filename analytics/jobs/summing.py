"""Summing partials up: the few queries that a report is made of, and their rows as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everyone writes it)

from analytics.transforms import (
    FACTS,
    KEYS,
    cut,
    doublings,
    hot_slots,
    hour_of,
    hour_starts,
    of_topic,
    quantiles,
    within,
)

Row = dict[str, Any]

#: What a report tells of each fact: cuts, and the columns that they keep.
CUTS: Final[dict[str, dict[str, Sequence[str]]]] = {
    "delivered": {
        "total": (),
        "row": ("topic", "kind", "level", "hour_ms"),
        "hour": ("hour_ms",),
        "topic": ("topic",),
        "level": ("kind", "level"),
    },
    "immediate": {"total": (), "hour": ("hour_ms",)},
    "sent": {"total": (), "hour": ("hour_ms",), "topic": ("topic", "kind")},
    "redelivered": {"total": (), "hour": ("hour_ms",), "group": ("group",)},
    "received": {"total": ("attempt",), "group": ("topic", "group", "attempt")},
    "acked": {"total": ("attempt",), "group": ("topic", "group", "attempt")},
    "retried": {"total": (), "hour": ("hour_ms",),
                "cause": ("topic", "group", "attempt", "reason")},
    "dead": {"total": (), "hour": ("hour_ms",), "cause": ("topic", "group", "reason")},
    "redriven": {"total": (), "group": ("group",)},
    "cancelled": {"total": (), "topic": ("topic", "kind")},
    "moved": {"total": (), "topic": ("topic", "kind")},
    "parked": {"total": (), "cause": ("topic", "reason")},
    "restored": {"total": ()},
}  # fmt: skip
#: What stands before the name of a fact of the period before, of which only totals are told.
_BEFORE: Final = "before "
_TOTALS_BEFORE: Final = {
    _BEFORE + fact: {"total": of_fact["total"]} for fact, of_fact in CUTS.items()
}
SLOTS_MAX: Final = 20
#: Rows by topic, kind, level and hour that a report keeps; it says if there were more.
ROWS_MAX: Final = 50_000


@dataclass(slots=True)
class Sums:
    """What the queries gave."""

    #: Fact and cut to rows.
    current: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    #: Totals of the period before.
    previous: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    doublings: list[Row] = field(default_factory=list)
    hot_slots: list[Row] = field(default_factory=list)


def sum_up(
    facts: DataFrame | None, *, from_ms: int, to_ms: int, zone: str, topic: str | None, slo_ms: int
) -> Sums:
    """The sums of the period [from, to) and of the one of the same length before it."""
    if facts is None:
        return Sums()
    before_ms = 2 * from_ms - to_ms
    told = told_apart(within(of_topic(facts, topic), before_ms, to_ms), from_ms, to_ms, zone)
    counted = quantiles(cut(told, CUTS | _TOTALS_BEFORE), ("fact", "cut", *KEYS), slo_ms)
    sums = Sums()
    for row in counted.toArrow().to_pylist():
        is_before = row["fact"].startswith(_BEFORE)
        place = sums.previous if is_before else sums.current
        place.setdefault((row["fact"].removeprefix(_BEFORE), row["cut"]), []).append(row)
    for rows in (*sums.current.values(), *sums.previous.values()):
        rows.sort(key=lambda row: tuple(row[key] for key in KEYS))
    sums.doublings = doublings(told).toArrow().to_pylist()
    if topic is None:
        slots = hot_slots(within(facts, from_ms, to_ms), SLOTS_MAX)
        sums.hot_slots = slots.toArrow().to_pylist()
    return sums


def told_apart(facts: DataFrame, from_ms: int, to_ms: int, zone: str) -> DataFrame:
    """The facts with their hour; immediate ones, and the period before, are facts of their own."""
    offsets = hour_starts(2 * from_ms - to_ms, to_ms, zone)
    named = "if(fact = 'delivered' and kind = 'immediate', 'immediate', fact)"
    return facts.select(
        F.expr(f"if(quarter_ms >= {from_ms}, {named}, concat('{_BEFORE}', {named})) as fact"),
        hour_of(F.col("quarter_ms"), offsets).alias("hour_ms"),
        *[name for name in FACTS if name not in ("fact", "quarter_ms")],
    )
