"""Resetting: a group begins anew at other places of its queues.

What it knew of those queues is forgotten: leases are void, attempts start at 1 again, and so is
every receipt of before, because the ledger has another epoch. In its other queues (its retry
topic's, those of topics that were taken out of the subscription) it stays where it is, but leases
end there too.

Each queue is reset in one step: a process that dies half-way leaves some queues reset and others
not, and none in between.
"""

from collections.abc import Mapping

import numpy as np

from queues.store.disk import Disk
from queues.store.errors import LedgerBusy
from queues.store.ledger import Ledger
from queues.store.ledgerentries import State, attempts, lease_words, states
from queues.store.ledgers import Ledgers, Place
from queues.store.limits import LEDGER_SCAN_ENTRIES, LEDGER_WAIT_S


class Resetting:
    """Resets the groups of one store."""

    def __init__(self, ledgers: Ledgers, disk: Disk) -> None:
        self._ledgers, self._disk = ledgers, disk

    def reset(
        self, group: str, starts: Mapping[tuple[str, int], int], *, others: bool = True
    ) -> None:
        """Let the group begin anew at these offsets of these queues, durably.

        In its `others` leases end, or they are left alone.
        Raises `LedgerBusy` if another holds a ledger for long; repeated, it goes on.
        """
        wanted = {Place(group, *queue): offset for queue, offset in starts.items()}
        for place in sorted({*wanted, *(self._ledgers.places(group) if others else ())}):
            with self._ledgers.use(place) as ledger:
                if not ledger.try_hold(LEDGER_WAIT_S):
                    raise LedgerBusy(**place._asdict())
                try:
                    self._reset(ledger, wanted.get(place))
                finally:
                    ledger.release()
                ledger.sync()
            self._ledgers.sync_names(place)

    def _reset(self, ledger: Ledger, offset: int | None) -> None:
        epoch = int.from_bytes(self._disk.random_bytes(7), "little")
        if ledger.header is None:
            if offset is not None:
                ledger.begin_at(offset, epoch)
        elif offset is not None:
            ledger.restart_at(offset, epoch)
        else:
            _void_leases(ledger)
            ledger.live().epoch = epoch
            ledger.commit()


def _void_leases(ledger: Ledger) -> None:
    """Make ready again what is leased (under the ledger's lock)."""
    header = ledger.live()
    for first in range(header.floor, header.cursor, LEDGER_SCAN_ENTRIES):
        words = ledger.words(first, min(LEDGER_SCAN_ENTRIES, header.cursor - first))
        leased = np.flatnonzero(states(words) == State.LEASED)
        if len(leased):
            ledger.put(first + leased, lease_words(State.READY, attempts(words[leased]), 0))
            header.again_from = min(header.again_from, first + int(leased[0]))
            header.again += len(leased)
    header.leased = header.next_expiry_ms = 0
