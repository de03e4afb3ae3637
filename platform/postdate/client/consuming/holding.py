"""Holdings are the messages that a consumer has leased and not settled.

Pure bookkeeping, the same under threads and tasks: time is an argument, and nothing here waits.

============  =============================================  ===========================
a message is  until                                          and then
============  =============================================  ===========================
waiting       a worker starts it, or the consumer ends       running, or finished
running       its handler ends                               finished
finished      the settler takes its outcome to the server    gone
============  =============================================  ===========================

Its lease is renewed while it waits or runs, each time a third of it is over. Renewing voids the
receipt, so one thread alone renews and settles, in turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from postdate.client.consuming.outcomes import RELEASE, Figures, Outcome
from postdate.client.shapes.consuming import ReceiptResult, ReceivedMessage

#: Receipts in one request; the server takes 1000.
RECEIPTS_MAX = 500
#: A lease is renewed when this share of it is over: two more tries fit before it ends.
RENEW_AFTER = 1 / 3


@dataclass(slots=True, eq=False)
class Held:
    """One leased message."""

    message: ReceivedMessage
    #: The receipt that is valid now.
    receipt: str
    #: When its lease is to be renewed, monotonic s.
    renew_at_s: float
    started: bool = False
    #: None: not finished.
    outcome: Outcome | None = None


@dataclass(slots=True)
class Settlement:
    """Messages of equal outcome, for one request."""

    outcome: Outcome
    held: list[Held]

    @property
    def receipts(self) -> list[str]:
        """As they are now."""
        return [one.receipt for one in self.held]


@dataclass(slots=True)
class Holdings:
    """What one consumer holds."""

    #: So many at most.
    capacity: int
    lease_s: float
    figures: Figures = field(default_factory=Figures)
    _held: dict[int, Held] = field(default_factory=dict)
    _finished: list[Held] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more it may lease."""
        return self.capacity - len(self._held)

    @property
    def empty(self) -> bool:
        """Nothing is leased, nothing waits for being settled."""
        return not self._held

    @property
    def finished(self) -> int:
        """How many wait for being settled."""
        return len(self._finished)

    @property
    def running(self) -> int:
        """How many handlers are at work."""
        return sum(one.started and one.outcome is None for one in self._held.values())

    def take(self, messages: Sequence[ReceivedMessage], now_s: float) -> list[Held]:
        """Hold what was received; `now_s` is when it was asked for, so no lease is overrated."""
        taken = [Held(one, one.receipt, now_s + self.lease_s * RENEW_AFTER) for one in messages]
        self._held.update((id(one), one) for one in taken)
        self.figures.received += len(taken)
        return taken

    def start(self, held: Held) -> bool:
        """Whether its handler may run: it was not given back meanwhile."""
        held.started = held.outcome is None
        return held.started

    def finish(self, held: Held, outcome: Outcome) -> None:
        """Its handler ended; what ends after it was given back counts no more."""
        if held.outcome is None:
            held.outcome = outcome
            self._finished.append(held)

    def give_back(self, *, running: bool) -> None:
        """Release what waits, or with `running` whatever is not finished."""
        for held in list(self._held.values()):
            if running or not held.started:
                self.finish(held, RELEASE)

    def next_renewal_s(self) -> float | None:
        """When the next lease is to be renewed; None: there is none."""
        return min((one.renew_at_s for one in self._unfinished()), default=None)

    def due_renewals(self, now_s: float) -> list[Held]:
        """Whose lease is to be renewed now."""
        due = [one for one in self._unfinished() if one.renew_at_s <= now_s]
        return due[:RECEIPTS_MAX]

    def renewed(self, held: Sequence[Held], results: Sequence[ReceiptResult], now_s: float) -> None:
        """Take over the new receipts; a lease that is lost is not renewed again."""
        for one, result in zip(held, results, strict=True):
            if result.outcome == "extended":
                one.receipt = result.new_receipt or one.receipt
                one.renew_at_s = now_s + self.lease_s * RENEW_AFTER
                self.figures.renewed += 1
            else:
                one.renew_at_s = float("inf")

    def not_renewed(self, held: Sequence[Held], now_s: float) -> None:
        """The request failed; try once more while there is time."""
        for one in held:
            one.renew_at_s = now_s + self.lease_s * RENEW_AFTER / 2

    def settlements(self) -> list[Settlement]:
        """What is to be told to the server now, grouped."""
        groups: dict[Outcome, list[Held]] = {}
        for held in self._finished:
            assert held.outcome is not None  # noqa: S101 (only the finished are in the list)
            groups.setdefault(held.outcome, []).append(held)
        self._finished = []
        return [
            Settlement(outcome, held[first : first + RECEIPTS_MAX])
            for outcome, held in groups.items()
            for first in range(0, len(held), RECEIPTS_MAX)
        ]

    def settled(self, settlement: Settlement, results: Sequence[ReceiptResult]) -> None:
        """Let go of them, and count."""
        self.let_go(settlement)
        for result in results:
            match result.outcome:
                case "acked":
                    self.figures.acked += 1
                case "retrying" | "dropped":
                    self.figures.retried += 1
                case "dead":
                    self.figures.dead += 1
                case "released":
                    self.figures.released += 1
                case _:
                    self.figures.lost += 1

    def let_go(self, settlement: Settlement) -> None:
        """They are the server's again, which hands them out when their lease ends."""
        for held in settlement.held:
            self._held.pop(id(held), None)

    def _unfinished(self) -> list[Held]:
        return [one for one in self._held.values() if one.outcome is None]
