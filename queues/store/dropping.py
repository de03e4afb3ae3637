"""Dropping: attempts that failed in broadcasting groups, which neither retry nor keep dead letters.

As with RocketMQ the failure is logged and the message is settled, for that consumer alone.
"""

import logging
from collections.abc import Sequence
from typing import Literal

from queues.store.ledgerentries import State
from queues.store.ledgers import Ledgers, Place
from queues.store.receipts import Receipts
from queues.store.settling import settle_acks

logger = logging.getLogger(__name__)

Dropped = Literal["dropped", "expired", "invalid"]


class Dropping:
    """Drops what failed, in one store."""

    def __init__(self, ledgers: Ledgers, receipts: Receipts) -> None:
        self._ledgers, self._receipts = ledgers, receipts

    def drop(
        self, member: str, receipts: Sequence[str], now_ms: int, reason: str | None
    ) -> list[Dropped]:
        """Settle what the receipts are for as dropped; one outcome a receipt, in order.

        Repeated, it answers the same. Raises `LedgerBusy`.
        """
        outcomes: list[Dropped] = ["invalid"] * len(receipts)
        for shown in self._receipts.open(member, receipts):
            with self._ledgers.hold(Place(member, shown.topic, shown.queue_id)) as ledger:
                settled = [False] * len(shown.offsets)
                if ledger is not None:
                    settled, _ = settle_acks(ledger, shown, now_ms, State.DROPPED)
            for position, offset, dropped in zip(
                shown.positions, shown.offsets, settled, strict=True
            ):
                outcomes[position] = "dropped" if dropped else "expired"
                if dropped:
                    place = f"{shown.topic} {shown.queue_id} {offset}"
                    logger.warning("%s dropped the message at %s: %s", member, place, reason)
        return outcomes
