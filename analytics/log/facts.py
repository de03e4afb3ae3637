"""Facts: what the records of a log say happened, counted by quarter-hour.

A *series* is a fact with its quarter-hour (UTC), topic, kind, level, group, attempt and reason; a
row of the result is a series and a bucket of durations (see `analytics.buckets`) with how many
there were, their sum and the longest. What the duration is depends on the fact:

===========  ====================================  =============================================
fact         from records                          duration
===========  ====================================  =============================================
sent         ``N``                                 the delay asked for
delivered    ``H`` to a topic, ``N`` immediate     lateness of the hand-over
slot         ``H`` to a topic                      none: the bucket is the second of the quarter
                                                   of an hour in which they were *due*
redelivered  ``H`` to ``%RETRY%``                  lateness of the retry
retried      ``A``                                 the wait until the next attempt
dead         ``D``                                 none
redriven     ``X``                                 none
cancelled    ``C``                                 how long before it was due
moved        ``M``                                 how long before it had been due
parked       ``P``, restored ``S``                 none
received     traces                                from due to the hand-out to a consumer
acked        traces                                from due to the acknowledgement
===========  ====================================  =============================================

Renewals (``R``) are no facts, nor are changes of a group's own retries and dead letters. Sums and
counts of any split of a log into ranges add up to the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from analytics.buckets import UNKNOWN, bucket_of, buckets_of
from analytics.log.walk import Int64s

QUARTER_MS: Final = 900_000

#: The facts, in the order of their numbers.
FACTS: Final = (
    "sent", "delivered", "slot", "redelivered", "retried", "dead", "redriven", "cancelled",
    "moved", "parked", "restored", "received", "acked",
)  # fmt: skip
KINDS: Final = {"I": "immediate", "L": "level", "T": "timed"}

_VALUE_BITS: Final = 33
_GROUPS_MAX: Final = 1 << (63 - _VALUE_BITS)
_BUCKET_BITS: Final = 12
_BUCKET_SHIFT: Final = 2
#: Rows are summed up when this many wait.
_PENDING_MAX: Final = 1_000_000


class Series(NamedTuple):
    """What is counted together."""

    fact: str
    #: The quarter-hour, as its first ms.
    quarter_ms: int
    topic: str = ""
    #: ``immediate``, ``level``, ``timed``; empty where it is not known.
    kind: str = ""
    level: int = 0
    group: str = ""
    attempt: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """What was counted, one place in each column a row; no series and bucket comes twice."""

    #: Numbers of the series.
    series: Int64s
    bucket: Int64s
    count: Int64s
    total_ms: Int64s
    max_ms: Int64s


@dataclass(slots=True)
class Tally:
    """Counts of many series."""

    series: list[Series] = field(default_factory=list)
    _numbers: dict[Series, int] = field(default_factory=dict)
    _pending: list[tuple[Int64s, ...]] = field(default_factory=list)
    _pending_rows: int = 0
    _singles: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def number(self, series: Series) -> int:
        """The number of a series."""
        found = self._numbers.get(series)
        if found is None:
            found = self._numbers[series] = len(self.series)
            self.series.append(series)
        return found

    def add_one(self, series: Series, value_ms: int | None = None) -> None:
        """Count one; None where the duration is not known."""
        known = value_ms is not None
        bucket = bucket_of(value_ms) if value_ms is not None else UNKNOWN
        value = value_ms or 0
        sums = self._singles.get(key := (self.number(series), bucket))
        if sums is None:
            self._singles[key] = [1, value, value]
        else:
            sums[0] += 1
            sums[1] += value
            sums[2] = max(sums[2], value) if known else 0

    def add(self, groups: Int64s, values: Int64s, series_of: Callable[[int], int]) -> None:
        """Count values of numbered groups; `series_of` gives the series of a group's number."""
        if not len(groups):
            return
        groups, values = _sorted(groups, values)
        self._add_sorted(groups, values, buckets_of(values), series_of)

    def add_unknown(self, groups: Int64s, series_of: Callable[[int], int]) -> None:
        """Count what has no known duration."""
        if len(groups):
            groups = np.sort(groups)
            zeros = np.zeros_like(groups)
            self._add_sorted(groups, zeros, zeros + UNKNOWN, series_of)

    def add_counted(self, groups: Int64s, buckets: Int64s, series_of: Callable[[int], int]) -> None:
        """Count by a number that is no duration and is kept in the bucket's place."""
        if len(groups):
            groups, buckets = _sorted(groups, buckets)
            self._add_sorted(groups, np.zeros_like(groups), buckets, series_of)

    def _add_sorted(
        self, groups: Int64s, values: Int64s, buckets: Int64s, series_of: Callable[[int], int]
    ) -> None:
        changes = (groups[1:] != groups[:-1]) | (buckets[1:] != buckets[:-1])
        starts = np.flatnonzero(np.append(True, changes))
        counts = np.diff(np.append(starts, len(groups)))
        firsts = groups[starts]
        met, places = np.unique(firsts, return_inverse=True)
        series = np.array([series_of(group) for group in met.tolist()], np.int64)[places]
        keys = (series << _BUCKET_BITS) | (buckets[starts] + _BUCKET_SHIFT)
        totals = np.add.reduceat(values, starts)
        self._pend(keys, counts, totals, np.maximum.reduceat(values, starts))

    def _pend(self, *columns: Int64s) -> None:
        self._pending.append(columns)
        self._pending_rows += len(columns[0])
        if self._pending_rows > _PENDING_MAX:
            self._sum_up()

    def _sum_up(self) -> None:
        if self._singles:
            singles = list(self._singles.items())
            self._singles.clear()
            single_keys = [
                (number << _BUCKET_BITS) | (bucket + _BUCKET_SHIFT)
                for (number, bucket), _ in singles
            ]
            sums = np.array([values for _, values in singles], np.int64)
            self._pending.append(
                (np.array(single_keys, np.int64), sums[:, 0], sums[:, 1], sums[:, 2])
            )
        if not self._pending:
            return
        columns: list[Int64s] = [
            np.concatenate(parts) for parts in zip(*self._pending, strict=True)
        ]
        keys, counts, totals, longest = columns
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        summed = (
            keys[starts],
            np.add.reduceat(counts[order], starts),
            np.add.reduceat(totals[order], starts),
            np.maximum.reduceat(longest[order], starts),
        )
        self._pending, self._pending_rows = [summed], len(starts)

    def rows(self) -> Rows:
        """Everything that was counted so far."""
        self._sum_up()
        if not self._pending:
            nothing = np.zeros(0, np.int64)
            return Rows(nothing, nothing, nothing, nothing, nothing)
        keys, counts, totals, longest = self._pending[0]
        buckets = (keys & ((1 << _BUCKET_BITS) - 1)) - _BUCKET_SHIFT
        return Rows(keys >> _BUCKET_BITS, buckets, counts, totals, longest)


def _sorted(groups: Int64s, values: Int64s) -> tuple[Int64s, Int64s]:
    """Sort by group and value: as one number where both fit, which is several times faster."""
    if groups.max() < _GROUPS_MAX and values.min() >= 0 and values.max() < 1 << _VALUE_BITS:
        packed = (groups << _VALUE_BITS) | values
        packed.sort()
        return packed >> _VALUE_BITS, packed & ((1 << _VALUE_BITS) - 1)
    order = np.lexsort((values, groups))
    return groups[order], values[order]
