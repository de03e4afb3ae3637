"""Acknowledging: what receipts are for is settled, and what was settled just now is told apart.

A repeated ack answers as the first one did, but it is no other event: traces tell of each once.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Literal

from queues.store.ledgerentries import attempts_of
from queues.store.ledgers import Ledgers, Place
from queues.store.receipts import Receipts, Shown
from queues.store.settling import settle_acks
from queues.store.tracing import Acked

Outcome = Literal["acked", "expired", "invalid"]


class Acknowledging:
    """Settles what was done with, in one store."""

    def __init__(self, ledgers: Ledgers, receipts: Receipts) -> None:
        self._ledgers, self._receipts = ledgers, receipts

    def ack(
        self, group: str, receipts: Sequence[str], now_ms: int
    ) -> tuple[list[Outcome], list[Acked]]:
        """Settle what the receipts are for: one outcome a receipt, in order; what is settled now.

        A repeated ack is ``acked``, and so is a late one whose lease's end was not yet acted on.
        Raises `LedgerBusy` if a queue's ledger is held for long; what was settled stays settled.
        """
        outcomes: list[Outcome] = ["invalid"] * len(receipts)
        settled_now: list[Acked] = []
        for shown in self._receipts.open(group, receipts):
            acked, is_now = self._settle(group, shown, now_ms)
            for position, settled in zip(shown.positions, acked, strict=True):
                outcomes[position] = "acked" if settled else "expired"
            if any(is_now):
                offsets = list(compress(shown.offsets, is_now))
                attempts = attempts_of(compress(shown.bouts, is_now))
                settled_now.append(Acked(shown.topic, shown.queue_id, offsets, attempts))
        return outcomes, settled_now

    def _settle(self, group: str, shown: Shown, now_ms: int) -> tuple[list[bool], list[bool]]:
        with self._ledgers.hold(Place(group, shown.topic, shown.queue_id)) as ledger:
            if ledger is not None:
                return settle_acks(ledger, shown, now_ms)
        none = [False] * len(shown.offsets)
        return none, none
