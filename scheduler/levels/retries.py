"""What could not be handed over and is tried again: after 100 ms, doubling up to 10 s.

The others go on meanwhile. A wall clock that is set back does not lengthen a wait: a time farther
away than the longest wait was set under another clock, and has come.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.limits import RETRY_MS, RETRY_MS_MAX

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Retry:
    """One unit that is tried again."""

    #: When it was due, ms.
    due_ms: int
    #: How often it failed.
    failures: int
    #: When it is tried again, wall-clock ms.
    at_ms: int
    #: Why it failed last.
    reason: str


class Retries:
    """The failing units of one level, by queue offset."""

    def __init__(self) -> None:
        self._retries: dict[int, Retry] = {}

    def __len__(self) -> int:
        return len(self._retries)

    def failed(self, offset: int, *, due_ms: int, now_ms: int, reason: str) -> None:
        """Try the unit again later, later each time."""
        before = self._retries.get(offset)
        failures = before.failures + 1 if before else 1
        wait_ms = min(RETRY_MS << min(failures - 1, 10), RETRY_MS_MAX)
        self._retries[offset] = Retry(due_ms, failures, now_ms + wait_ms, reason)

    def settled(self, offsets: Int64s, *, but: Collection[int] = ()) -> None:
        """Forget units that need no other try: all of these `but` some."""
        if self._retries:
            for offset in offsets.tolist():
                if offset not in but:
                    self._retries.pop(offset, None)

    def due(self, now_ms: int, limit: int) -> tuple[Int64s, Int64s]:
        """Queue offsets and due times of the units whose time has come, in order of due time."""
        ripe = sorted(
            (retry.due_ms, offset)
            for offset, retry in self._retries.items()
            if _has_come(retry, now_ms)
        )[:limit]
        table = np.array(ripe, dtype=np.int64).reshape(-1, 2)
        return table[:, 1], table[:, 0]

    def next_ms(self, now_ms: int) -> int | None:
        """When the next one is tried; None when there is none."""
        return min(
            (
                now_ms if _has_come(retry, now_ms) else retry.at_ms
                for retry in self._retries.values()
            ),
            default=None,
        )


def _has_come(retry: Retry, now_ms: int) -> bool:
    return retry.at_ms <= now_ms or retry.at_ms > now_ms + RETRY_MS_MAX
