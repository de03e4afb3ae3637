"""Folding a store's log without Spark, as its workers do."""

from collections import Counter
from pathlib import Path
from typing import Any

from analytics.log.extent import find_extent, pieces_of
from analytics.log.facts import Series
from analytics.log.fold import Fold
from analytics.log.leading import may_deliver
from analytics.log.lookback import Lookback
from analytics.log.walk import Seen, Verify, walk

Facts = dict[tuple[Series, int], tuple[int, int, int]]


def fold(root: Path, start: int | None = None, end: int | None = None, *, pieces: int = 1,
         verify: Verify = "crc", deliveries_only: bool = False) -> tuple[Facts, Seen]:  # fmt: skip
    extent = find_extent(root)
    seen, folded = Seen(), Fold(Lookback(extent).due_at, deliveries_only=deliveries_only)
    bounds = (extent.start if start is None else start, extent.end if end is None else end)
    for piece in pieces_of(extent, *bounds, count=pieces):
        for block in walk(piece, seen, verify, may_deliver if deliveries_only else None):
            folded.add(block)
    return facts_of(folded), seen


def facts_of(folded: Fold) -> Facts:
    rows, series = folded.tally.rows(), folded.tally.series
    columns = (rows.series, rows.bucket, rows.count, rows.total_ms, rows.max_ms)
    return {
        (series[number], bucket): (count, total_ms, max_ms)
        for number, bucket, count, total_ms, max_ms in zip(
            *[one.tolist() for one in columns], strict=True
        )
    }


def counts(facts: Facts) -> dict[str, int]:
    """How many there are of each fact."""
    found: Counter[str] = Counter()
    for (series, _), (count, _, _) in facts.items():
        found[series.fact] += count
    return dict(found)


def rows_of(facts: Facts, fact: str) -> list[tuple[Any, ...]]:
    """The rows of one fact: series without fact and empty fields, bucket, sums."""
    return sorted(
        (tuple(one for one in series[1:] if one not in ("", 0)), bucket, *sums)
        for (series, bucket), sums in facts.items()
        if series.fact == fact
    )
