"""The accounts of a run say of every order what was promised and what came, and add it up.

The accounts are kept by message id. A post whose answer was lost is posted again, so its order may
be in the store twice: the id that nobody was told is `unanswered` when it arrives, and no fault.

An accepted order ends in exactly one way: `cancelled` (the server said so) or closed (the group
received it). What contradicts that is a fault:

| Fault | Means |
|---|---|
| lost | accepted, not cancelled, never received |
| early | `delivered_at`, or the arrival here by the same clock, is before the promised `due_at` |
| doubled | received again as a first attempt (a repeated attempt is `redelivered`, no fault) |
| untrue | received although the cancel was answered `cancelled` |

Lateness is the server's `delivered_at` less `due_at`. Late, above the bound, is counted, no fault.
"""

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass

#: Lateness above this counts as late, as the default of POSTDATE_LATENESS_SLO has it.
LATE_ABOVE_MS = 100


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message as the consumer group received it."""

    #: The message's id.
    message_id: str
    #: Which attempt the server says this is, from 1.
    attempt: int
    #: The promised time by the server, in epoch milliseconds.
    due_ms: int
    #: The hand-over by the server, in epoch milliseconds.
    delivered_ms: int
    #: The arrival by this machine's clock, in epoch milliseconds; None when the clocks are two.
    arrived_ms: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to."""

    accepted: int
    cancelled: int
    #: Cancels that were answered `too_late`; each of these orders must have been received.
    too_late: int
    closed: int
    late: int
    early: int
    lost: int
    doubled: int
    untrue: int
    redelivered: int
    #: Arrivals of messages whose post was never answered.
    unanswered: int
    #: Nearest-rank quantiles in milliseconds; None when nothing was received.
    lateness_p50_ms: int | None
    lateness_p99_ms: int | None
    lateness_max_ms: int | None

    @property
    def faults(self) -> int:
        return self.early + self.lost + self.doubled + self.untrue

    def as_dict(self) -> dict[str, int | None]:
        return asdict(self)


def quantile(ordered: Sequence[int], *, permille: int) -> int | None:
    """The nearest-rank quantile of values in ascending order; None of nothing.

    Of [1, 2, 3, 4] the quantile of 500 permille is 2: the smallest value that half do not exceed.
    """
    if not ordered:
        return None
    rank = -(-permille * len(ordered) // 1000)
    return ordered[max(rank, 1) - 1]


class Accounts:
    """What is known of each order of a run; safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due_ms: dict[str, int] = {}
        self._cancelled: set[str] = set()
        self._too_late: set[str] = set()
        self._first: dict[str, Arrival] = {}
        self._early: set[str] = set()
        self._doubled = 0
        self._redelivered = 0

    def accept(self, message_id: str, *, due_ms: int) -> None:
        with self._lock:
            self._due_ms[message_id] = due_ms

    def cancel(self, message_id: str) -> None:
        with self._lock:
            self._cancelled.add(message_id)

    def refuse_cancel(self, message_id: str) -> None:
        with self._lock:
            self._too_late.add(message_id)

    def receive(self, arrival: Arrival) -> None:
        with self._lock:
            promised_ms = self._due_ms.get(arrival.message_id, arrival.due_ms)
            if _is_early(arrival, promised_ms=promised_ms):
                self._early.add(arrival.message_id)
            if arrival.message_id not in self._first:
                self._first[arrival.message_id] = arrival
            elif arrival.attempt > 1:
                self._redelivered += 1
            else:
                self._doubled += 1

    def waiting(self) -> set[str]:
        """The accepted orders that are neither cancelled nor received yet."""
        with self._lock:
            return self._due_ms.keys() - self._cancelled - self._first.keys()

    def summary(self) -> Summary:
        with self._lock:
            lateness_ms = sorted(a.delivered_ms - a.due_ms for a in self._first.values())
            return Summary(
                accepted=len(self._due_ms),
                cancelled=len(self._cancelled),
                too_late=len(self._too_late),
                closed=len(self._first.keys() & self._due_ms.keys()),
                late=sum(1 for value in lateness_ms if value > LATE_ABOVE_MS),
                early=len(self._early),
                lost=len(self._due_ms.keys() - self._cancelled - self._first.keys()),
                doubled=self._doubled,
                untrue=len(self._cancelled & self._first.keys()),
                redelivered=self._redelivered,
                unanswered=len(self._first.keys() - self._due_ms.keys()),
                lateness_p50_ms=quantile(lateness_ms, permille=500),
                lateness_p99_ms=quantile(lateness_ms, permille=990),
                lateness_max_ms=lateness_ms[-1] if lateness_ms else None,
            )


def _is_early(arrival: Arrival, *, promised_ms: int) -> bool:
    if arrival.delivered_ms < promised_ms:
        return True
    return arrival.arrived_ms is not None and arrival.arrived_ms < promised_ms
