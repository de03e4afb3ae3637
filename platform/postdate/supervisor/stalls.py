"""Stalls: which processes hold a lock of the store and have stood still for too long.

A holder counts up while it works, in recovery too. Only time in which the supervisor itself ran is
held against it, so that a suspended machine does not condemn a process that was suspended with it.
Pure: it is given what it judges, and kills nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: How long a holder may stand still, in ms of the supervisor's own running.
STALL_MS_MAX = 5_000
#: The most that one look may count for: more has passed only if the supervisor did not run.
LOOK_MS_MAX = 1_000


@dataclass(slots=True)
class _Seen:
    process_id: int
    counter: int
    still_ms: int = 0


class StallWatch:
    """What was seen of each lock's holder at the last look."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def observe(self, held: Mapping[str, tuple[int, int]], passed_ms: int) -> dict[str, int]:
        """Return the processes that stand still, by lock.

        `held` maps a lock to its holder's process id (0: nobody) and counter; `passed_ms` is the
        time since the last look.
        """
        stalled: dict[str, int] = {}
        now: dict[str, _Seen] = {}
        for lock, (process_id, counter) in held.items():
            if process_id == 0:
                continue
            seen = self._seen.get(lock)
            if seen is None or (seen.process_id, seen.counter) != (process_id, counter):
                seen = _Seen(process_id, counter)
            else:
                seen.still_ms += min(passed_ms, LOOK_MS_MAX)
            now[lock] = seen
            if seen.still_ms >= STALL_MS_MAX:
                stalled[lock] = process_id
        self._seen = now
        return stalled
