"""Using up a quota: looked at and counted in the store's mapped file, never in SQL."""

from collections.abc import Sequence

from queues import wires
from queues.access import Caller
from queues.codes import Code
from queues.problems import Problem
from queues.store.allowances import Limit, Standing


def use_request(caller: Caller, *, now_ms: int) -> list[Standing]:
    """Count one request; raises `quota_exceeded`. How the limits stand, empty without limits."""
    return _use(caller, caller.quotas.of_requests, 1, now_ms)


def use_messages(caller: Caller, count: int, *, now_ms: int) -> list[Standing]:
    """Count messages that are to be sent, all or none; raises `quota_exceeded`."""
    return _use(caller, caller.quotas.of_messages, count, now_ms)


def _use(caller: Caller, limits: Sequence[Limit], count: int, now_ms: int) -> list[Standing]:
    if not limits:
        return []
    allowances = wires.wiring().get_allowances()
    granted, standings = allowances.use(caller.key_id, limits, count, now_ms)
    if not granted:
        raise QuotaExceeded(standings)
    return standings


class QuotaExceeded(Problem):
    """The key has used up what it may."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        #: How all limits that were looked at stand.
        self.standings = standings
        worst = max(standings, key=lambda standing: standing.wait_s)
        super().__init__(
            Code.QUOTA_EXCEEDED,
            f"Of {worst.name} this key may use {worst.limit} in {worst.window_s} s; "
            f"{worst.remaining} are left. Try again in {worst.wait_s} s.",
            extra={"quota": worst.name, "retry_after_seconds": worst.wait_s},
        )
        self.retry_after_s = worst.wait_s
