"""Leases as their holders change them: longer, or given back; and the list of them.

Both make the receipt void and raise the entry's turn. An extension counts from now and keeps the
attempt, whose leases last 12 h in all at the most; a release takes the attempt back, so that a
consumer that shuts down costs its messages none.

Example: an attempt that began at 0 s on a lease of 60 s and is extended at 50 s by 60 s ends at
110 s; released then, its message is ready with the attempts that it had before.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from queues.store.consumers import ConsumerNames
from queues.store.doorbell import Bell
from queues.store.ledger import Ledger
from queues.store.ledgerentries import (
    State,
    attempt_of,
    bout_of,
    bout_word,
    consumer_of,
    held_ms_of,
    lease_details,
    next_turn,
    states,
)
from queues.store.ledgers import Ledgers, Place
from queues.store.limits import LEASE_MS_MAX, LEDGER_SCAN_ENTRIES
from queues.store.receipts import Receipts, Shown

_UNTIL_MASK = (1 << 44) - 1


class Extended(NamedTuple):
    """What became of one extension."""

    outcome: Literal["extended", "expired", "invalid"]
    #: The receipt that counts from now on, and until when; None unless extended.
    new_receipt: str | None = None
    until_ms: int | None = None


Released = Literal["released", "expired", "invalid"]


class Lease(NamedTuple):
    """A message that a consumer holds."""

    place: Place
    queue_offset: int
    attempt: int
    #: Wall times, ms.
    since_ms: int
    until_ms: int
    #: Who holds it, if it said so.
    consumer_id: str | None


class LeaseKeeping:
    """Changes and lists the leases of one store's groups."""

    def __init__(self, ledgers: Ledgers, receipts: Receipts, consumers: ConsumerNames) -> None:
        self._ledgers, self._receipts, self._consumers = ledgers, receipts, consumers
        #: Rung, one after the other, when messages were given back: long polls wait for them.
        self.bells: Sequence[Bell] = ()

    def extend(
        self, group: str, receipts: Sequence[str], *, lease_ms: int, now_ms: int
    ) -> list[Extended]:
        """Let leases end `lease_ms` from now; one outcome a receipt, in order.

        A lease that ran out is extended too while nobody acted on that. Raises `LedgerBusy`.
        """
        outcomes = [Extended("invalid")] * len(receipts)
        for shown in self._receipts.open(group, receipts):
            place = Place(group, shown.topic, shown.queue_id)
            with self._ledgers.hold(place) as ledger:
                for number, position in enumerate(shown.positions):
                    outcomes[position] = Extended("expired")
                    if ledger is not None:
                        outcomes[position] = self._extend(
                            ledger, place, _bout_at(shown, number), now_ms + lease_ms, now_ms
                        )
                if ledger is not None:
                    ledger.commit()
        return outcomes

    def _extend(
        self, ledger: Ledger, place: Place, shown: "_Shown", until_ms: int, now_ms: int
    ) -> Extended:
        lease, chain = ledger.entry(shown.offset)
        if not _is_held(ledger, shown, lease):
            return Extended("expired")
        started_ms = shown.until_ms - held_ms_of(chain)
        until_ms = min(until_ms, started_ms + LEASE_MS_MAX)
        if until_ms <= now_ms:
            return Extended("expired")
        bout = next_turn(shown.bout, counted=True)
        details = lease_details(until_ms - started_ms, consumer_of(chain))
        ledger.put_one(shown.offset, bout_word(State.LEASED, bout, until_ms), details)
        ledger.live().expires_by(until_ms)
        (receipt,) = self._receipts.seal(
            *place, epoch=shown.epoch, offsets=[shown.offset], bouts=[bout], until_ms=until_ms
        )
        return Extended("extended", receipt, until_ms)

    def release(self, group: str, receipts: Sequence[str]) -> list[Released]:
        """Give messages back: they are ready again, and no attempt was counted."""
        outcomes: list[Released] = ["invalid"] * len(receipts)
        for shown in self._receipts.open(group, receipts):
            with self._ledgers.hold(Place(group, shown.topic, shown.queue_id)) as ledger:
                for number, position in enumerate(shown.positions):
                    given = ledger is not None and _give_back(ledger, _bout_at(shown, number))
                    outcomes[position] = "released" if given else "expired"
                if ledger is not None:
                    ledger.commit()
        if "released" in outcomes:
            for bell in self.bells:
                bell.ring()
        return outcomes

    def held(self, group: str, now_ms: int) -> list[Lease]:
        """All leases of the group that have not run out, by topic, queue and offset."""
        found: list[Lease] = []
        names: dict[int, str | None] = {}
        for place in sorted(self._ledgers.places(group)):
            with self._ledgers.use(place) as ledger:
                found += self._held_in(ledger, place, now_ms, names)
        return found

    def _held_in(
        self, ledger: Ledger, place: Place, now_ms: int, names: dict[int, str | None]
    ) -> list[Lease]:
        header = ledger.peek()
        if header is not None and not header.leased:
            return []
        if header is None:
            with self._ledgers.hold(place) as live:
                if live is None:
                    return []
                header = live.live()
        found = []
        for first in range(header.floor, header.cursor, LEDGER_SCAN_ENTRIES):
            entries = ledger.entries(first, min(LEDGER_SCAN_ENTRIES, header.cursor - first))
            leased = states(entries[:, 0]) == State.LEASED
            for number in np.flatnonzero(leased & ((entries[:, 0] & _UNTIL_MASK) > now_ms)):
                lease, chain = entries[number].tolist()
                until_ms, consumer = lease & _UNTIL_MASK, consumer_of(chain)
                if consumer not in names:
                    names[consumer] = self._consumers.name_of(place.group, consumer)
                found.append(
                    Lease(
                        place, first + int(number), attempt_of(bout_of(lease)),
                        until_ms - held_ms_of(chain), until_ms, names[consumer],
                    )
                )  # fmt: skip
        return found


class _Shown(NamedTuple):
    """One genuine receipt."""

    offset: int
    bout: int
    epoch: int
    until_ms: int


def _bout_at(shown: Shown, number: int) -> _Shown:
    return _Shown(
        shown.offsets[number], shown.bouts[number], shown.epochs[number], shown.untils_ms[number]
    )


def _is_held(ledger: Ledger, shown: _Shown, lease: int) -> bool:
    """Whether the receipt's lease is the one that the entry tells of."""
    header = ledger.live()
    return (
        shown.epoch == header.epoch
        and shown.offset < header.cursor
        and lease == bout_word(State.LEASED, shown.bout, shown.until_ms)
    )


def _give_back(ledger: Ledger, shown: _Shown) -> bool:
    if not _is_held(ledger, shown, ledger.word(shown.offset)):
        return False
    bout = next_turn(shown.bout, counted=False)
    ledger.put_one(shown.offset, bout_word(State.READY, bout, 0))
    header = ledger.live()
    header.leased -= 1
    header.again += 1
    header.again_from = min(header.again_from, shown.offset)
    return True
