"""Allowances count what each holder has used of its limits, exactly, over all processes.

The file `postdate/allowances` is mapped: 65,536 rows of four native 8-byte words, 2 MiB. A holder
(an API key) uses the row of its number; numbers 65,536 apart share one.

======  =========================================================================
word    holds
======  =========================================================================
0, 1    a bucket each: the moment, in microseconds, at which it will be empty again
2       days since 1970 * 2^40 + what was used on that day
3       nothing
======  =========================================================================

A bucket is a token bucket as one number (GCRA). It *drains* at its rate; what is used fills it:
used of it at a moment is ``max(0, word - now) * rate``. A wish that fits into what is free is
granted and fills it further. One larger than the whole bucket is granted when the bucket is empty:
the next one then waits for as long as it must, so the rate holds and nothing is refused for ever.

A wish may touch several limits; it is granted by all of them or uses none. Look and change happen
under one kernel lock (`postdate/allowances.lock`), some microseconds long. Moments are the wall
clock's: one further off than anything can fill it means that the clock stepped back, and the bucket
is taken as full, so that nobody waits for the clock. The file is not flushed: after a crash of the
machine it may tell of some seconds before.

Example: rate 10/s, capacity 20, word 1,000,000 (1 s after 1970), now 0: ten are used, ten free.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from queues.store.disk import Disk

ROWS = 65_536
_WORDS = 4
_FILE_BYTES = ROWS * _WORDS * 8
_DAY_MS = 86_400_000
_DAY_WORD = 2
_COUNT_BITS = 40
_SECOND_US = 1_000_000
#: What rounding to microseconds leaves of one; it makes nobody wait.
_ROUNDING = 1e-3
#: The most that one wish is for: a batch.
WISH_MAX = 1000


@dataclass(frozen=True, slots=True)
class Bucket:
    """So many a second, and so many at once."""

    #: `requests`, `messages`.
    name: str
    #: Which of the row's words.
    word: int
    per_second: float
    #: Used at once after a rest.
    capacity: int

    @property
    def window_s(self) -> int:
        """How long a used-up one takes to be whole again, s."""
        return math.ceil(self.capacity / self.per_second)


@dataclass(frozen=True, slots=True)
class Daily:
    """So many from midnight to midnight, UTC."""

    name: str
    most: int


Limit = Bucket | Daily


@dataclass(frozen=True, slots=True)
class Standing:
    """How one limit stands after a wish."""

    name: str
    #: How much may be used at once, or in a day.
    limit: int
    #: Over which time, s.
    window_s: int
    #: How much is free now.
    remaining: int
    #: When all of it is free again, s from now.
    reset_s: int
    #: When the wish would be granted, s from now; 0: now.
    wait_s: int


class Allowances:
    """The file with everyone's use, opened by any number of processes."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._mapped = disk.map(directory / "allowances", size_bytes=_FILE_BYTES, create=True)
        self._lock = disk.lock(directory / "allowances.lock")

    def use(
        self, holder: int, limits: Sequence[Limit], count: int, now_ms: int
    ) -> tuple[bool, list[Standing]]:
        """Whether the holder may use `count` of every limit, and how they stand then.

        If one of them refuses, none is used.
        """
        first = holder % ROWS * _WORDS
        with self._lock:
            standings = [self._look(first, limit, count, now_ms) for limit in limits]
            granted = all(standing.wait_s == 0 for standing in standings)
            if granted:
                for limit in limits:
                    self._fill(first, limit, count, now_ms)
        if granted:
            standings = [
                _less(standing, count, limits[at]) for at, standing in enumerate(standings)
            ]
        return granted, standings

    def close(self) -> None:
        """Give file and lock back."""
        self._lock.close()
        self._mapped.close()

    def _look(self, first: int, limit: Limit, count: int, now_ms: int) -> Standing:
        if isinstance(limit, Daily):
            day, rest_ms = divmod(now_ms, _DAY_MS)
            free = limit.most - self._used_today(first, day)
            to_midnight_s = math.ceil((_DAY_MS - rest_ms) / 1000)
            wait_s = 0 if count <= free else to_midnight_s
            window_s = _DAY_MS // 1000
            return Standing(limit.name, limit.most, window_s, max(0, free), to_midnight_s, wait_s)
        used = self._filled_us(first, limit, now_ms) * limit.per_second / _SECOND_US
        # What is larger than the bucket waits for all of it.
        over = used + min(count, limit.capacity) - limit.capacity
        wait_s = math.ceil(over / limit.per_second) if over > _ROUNDING else 0
        return Standing(
            limit.name,
            limit.capacity,
            limit.window_s,
            max(0, int(limit.capacity - used)),
            math.ceil(used / limit.per_second),
            wait_s,
        )

    def _fill(self, first: int, limit: Limit, count: int, now_ms: int) -> None:
        if isinstance(limit, Daily):
            day = now_ms // _DAY_MS
            used = self._used_today(first, day) + count
            self._mapped.set_word(first + _DAY_WORD, (day << _COUNT_BITS) + used)
            return
        filled_us = self._filled_us(first, limit, now_ms) + count * _SECOND_US / limit.per_second
        self._mapped.set_word(first + limit.word, now_ms * 1000 + round(filled_us))

    def _used_today(self, first: int, day: int) -> int:
        then, used = divmod(self._mapped.words[first + _DAY_WORD], 1 << _COUNT_BITS)
        return used if then == day else 0

    def _filled_us(self, first: int, limit: Bucket, now_ms: int) -> float:
        """How long the bucket takes to be empty, us."""
        filled_us = self._mapped.words[first + limit.word] - now_ms * 1000
        if filled_us > max(limit.capacity, WISH_MAX) * _SECOND_US / limit.per_second + 1:
            # Nothing fills it so far: the clock stepped back, or the limit is a new one.
            full_us = limit.capacity * _SECOND_US / limit.per_second
            self._mapped.set_word(first + limit.word, now_ms * 1000 + round(full_us))
            return full_us
        return max(0.0, filled_us)


def _less(standing: Standing, count: int, limit: Limit) -> Standing:
    """How it stands once `count` more are used."""
    reset_s = standing.reset_s
    if isinstance(limit, Bucket):
        reset_s += math.ceil(count / limit.per_second)
    return Standing(
        standing.name,
        standing.limit,
        standing.window_s,
        max(0, standing.remaining - count),
        reset_s,
        0,
    )
