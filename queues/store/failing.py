"""Failing: attempts that failed, because their consumers said so or their leases ran out.

What a group's rule says comes after is written to the log as the next link of the message's chain
(`queues.store.chains`), and dispatching it settles the ledger entry. The ledger's lock is held from
the look at the entry to the settled one, its change begun before the record is written: whoever
finds the holder dead repairs the log's last write first and then reads the entries again.

Example: the second failure of a message by RocketMQ's rule is a record in level 4, due in 30 s, and
its entry is settled by it; its third attempt is a message of the group's retry topic.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from queues.store.chains import Going, Gone
from queues.store.chaintail import Failure
from queues.store.consumers import ConsumerNames
from queues.store.handout import QueueReader
from queues.store.ledger import Ledger
from queues.store.ledgerentries import (
    State,
    attempt_of,
    bout_of,
    bout_word,
    consumer_of,
    lease_word,
    states,
    untils,
)
from queues.store.ledgers import Ledgers, Place
from queues.store.limits import HOLD_RECORDS_MAX, LEASE_MS_MAX, LEDGER_SCAN_ENTRIES
from queues.store.marks import LedgerMark
from queues.store.receipts import Receipts, Shown
from queues.store.record import Record
from queues.store.retryrules import DEAD, RetryRule, Wait

#: The reason that is kept for an attempt whose lease ran out.
RAN_OUT = "The lease ran out."
_UNTIL_MASK = (1 << 44) - 1
_RECONSUME_AT = 72
_GONE_ON = (State.CHAINED, State.ENDED)


class ChainWriter(Protocol):
    """What writes the chains: `queues.store.chains.Chains`."""

    def go_on(self, goings: Sequence[Going]) -> Iterator[list[tuple[Going, Gone]]]:
        """Write each message's next link, hold by hold."""

    def mend(self) -> None:
        """Finish or undo the write in which a process died."""

    @property
    def settle(self) -> Callable[[int], None]:
        """Returns after the flush that covers the log up to an offset."""


class FailedStore(QueueReader, Protocol):
    """What failing needs of a store."""

    @property
    def chains(self) -> ChainWriter:
        """What writes the chains."""

    def read_record(self, log_offset: int) -> Record:
        """The record at a log offset."""


class Failed(NamedTuple):
    """What became of one receipt."""

    outcome: Literal["retrying", "dead", "dropped", "expired", "invalid"]
    #: When the next attempt is due, ms; None unless retrying.
    next_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a consumer says of a failed attempt."""

    reason: str | None = None
    #: What shall come after it, whatever the rule says of its delay; None: as the rule says.
    wait: Wait | None = None

    def after(self, attempt: int, rule: RetryRule) -> Wait:
        """What comes after; no delay that is asked for gives more retries than the rule."""
        ruled = rule.after(attempt)
        return ruled if self.wait is None or ruled.dead else self.wait


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An entry whose attempt failed."""

    offset: int
    #: Its lease word, and what it becomes.
    word: int
    chained_word: int
    failure: Callable[[int], Failure]


class Failing:
    """Fails attempts in the ledgers of one store."""

    def __init__(
        self, store: FailedStore, ledgers: Ledgers, receipts: Receipts, consumers: ConsumerNames
    ) -> None:
        self._store, self._ledgers = store, ledgers
        self._receipts, self._consumers = receipts, consumers

    # -- said by consumers ----------------------------------------------------------------------

    def fail(
        self, group: str, receipts: Sequence[str], rule: RetryRule, verdict: Verdict, now_ms: int
    ) -> list[Failed]:
        """Fail what the receipts are for; one outcome a receipt, in order.

        A repeated call with the same receipts answers as before. Raises `LedgerBusy`, `StoreFull`,
        `StoreFailed`; what was written before stays so, and a repetition tells.
        """
        outcomes = [Failed("invalid")] * len(receipts)
        end = 0
        for shown in self._receipts.open(group, receipts):
            place = Place(group, shown.topic, shown.queue_id)
            with self._ledgers.hold(place) as ledger:
                gone: dict[int, Gone] = {}
                if ledger is not None:
                    candidates = self._held(ledger, place, shown, verdict, now_ms)
                    gone = self._go_on(ledger, place, candidates, rule, verdict)
                    end = max([end, *(one.log_offset + 1 for one in gone.values())])
                for number, position in enumerate(shown.positions):
                    outcomes[position] = self._outcome(ledger, shown, number, gone)
        self._store.chains.settle(end)
        return outcomes

    def _held(
        self, ledger: Ledger, place: Place, shown: Shown, verdict: Verdict, now_ms: int
    ) -> list[_Candidate]:
        found: dict[int, _Candidate] = {}
        for number, offset in enumerate(shown.offsets):
            if not _is_current(ledger, shown, number):
                continue
            word, chain = ledger.entry(offset)
            bout, until_ms = shown.bouts[number], shown.untils_ms[number]
            if word != bout_word(State.LEASED, bout, until_ms):
                continue
            consumer = self._consumers.name_of(place.group, consumer_of(chain))

            def failure(attempt: int, consumer: str | None = consumer) -> Failure:
                return Failure(attempt, now_ms, verdict.reason, consumer)

            chained = bout_word(State.CHAINED, bout, until_ms)
            found[offset] = _Candidate(offset, word, chained, failure)
        return [found[offset] for offset in sorted(found)]

    def _outcome(
        self, ledger: Ledger | None, shown: Shown, number: int, gone: dict[int, Gone]
    ) -> Failed:
        """What one receipt came to: now, or by an earlier call with it."""
        if ledger is None or not _is_current(ledger, shown, number):
            return Failed("expired")
        offset = shown.offsets[number]
        word, chain = ledger.entry(offset)
        bout, until_ms = shown.bouts[number], shown.untils_ms[number]
        # In an ordered ledger a chain that is over has ended its entry.
        if word not in (bout_word(state, bout, until_ms) for state in _GONE_ON):
            return Failed("expired")
        now = gone.get(offset)
        if now is not None:
            return Failed("dead") if now.dead else Failed("retrying", now.due_ms)
        self._store.chains.settle(chain + 1)
        properties = self._store.read_record(chain).properties
        if properties.get("PD_FROM", "").startswith("D"):
            return Failed("dead")
        return Failed("retrying", int(properties["PD_DUE"]))

    # -- leases that ran out --------------------------------------------------------------------

    def expire(self, ledger: Ledger, place: Place, rule: RetryRule, now_ms: int) -> int:
        """Fail what ran out, at most `HOLD_RECORDS_MAX` (the ledger is held); return how many."""
        header = ledger.live()
        if not header.expiry_due(now_ms, LEASE_MS_MAX):
            return 0
        due: list[_Candidate] = []
        soonest: int | None = None
        for first in range(header.floor, header.cursor, LEDGER_SCAN_ENTRIES):
            entries = ledger.entries(first, min(LEDGER_SCAN_ENTRIES, header.cursor - first))
            leased = states(entries[:, 0]) == State.LEASED
            until = untils(entries[:, 0])
            over = leased & ((until <= now_ms) | (until > now_ms + LEASE_MS_MAX))
            room = HOLD_RECORDS_MAX - len(due)
            chosen = np.flatnonzero(over)
            due += [
                self._ran_out(place, first + number, entries[number].tolist(), now_ms)
                for number in chosen[:room].tolist()
            ]
            left = until[leased & ~over]
            if len(chosen) > room:
                soonest = 1  # At once again.
            elif len(left):
                soonest = min(soonest or int(left.min()), int(left.min()))
        self._go_on(ledger, place, due, rule, Verdict(RAN_OUT))
        header.next_expiry_ms = soonest or 0
        header.ran_out += len(due)
        ledger.commit()
        return len(due)

    def _ran_out(self, place: Place, offset: int, entry: list[int], now_ms: int) -> _Candidate:
        word, chain = entry
        consumer = self._consumers.name_of(place.group, consumer_of(chain))
        at_ms = min(now_ms, word & _UNTIL_MASK)
        # Without its end, so that no receipt of this lease is taken for one that failed it.
        chained = bout_word(State.CHAINED, bout_of(word), 0)
        return _Candidate(
            offset, word, chained, lambda attempt: Failure(attempt, at_ms, RAN_OUT, consumer)
        )

    # -- both -----------------------------------------------------------------------------------

    def _go_on(
        self, ledger: Ledger, place: Place, candidates: Sequence[_Candidate], rule: RetryRule,
        verdict: Verdict,
    ) -> dict[int, Gone]:  # fmt: skip
        """Write the next links and settle the entries; where each message went, by its offset."""
        if not candidates:
            return {}
        ledger.begin_change()
        by_offset = {one.offset: one for one in candidates}
        goings = self._goings(ledger, place, candidates, rule, verdict)
        found: dict[int, Gone] = {}
        for hold in self._store.chains.go_on(goings):
            gone = dict(sorted((going.mark.offset, one) for going, one in hold))
            found |= gone
            ledger.put(
                np.array(list(gone)),
                np.array([by_offset[offset].chained_word for offset in gone]),
                np.array([one.log_offset for one in gone.values()]),
            )
            ledger.live().leased -= len(gone)
        ledger.advance_floor()
        ledger.commit()
        return found

    def _goings(
        self, ledger: Ledger, place: Place, candidates: Sequence[_Candidate], rule: RetryRule,
        verdict: Verdict,
    ) -> list[Going]:  # fmt: skip
        goings, header = [], ledger.live()
        for one in candidates:
            units = self._store.read_units(place.topic, place.queue_id, one.offset, 1)
            (raw,) = self._store.read_records(units) if len(units) else (None,)
            if raw is None:
                self._lose(ledger, one)
                continue
            before = int.from_bytes(raw[_RECONSUME_AT : _RECONSUME_AT + 4], "big")
            attempt = before + max(1, attempt_of(bout_of(one.word)))
            wait = verdict.after(attempt, rule)
            mark = LedgerMark(*place, one.offset, header.epoch)
            goings.append(
                Going(raw, int(units["log_offset"][0]), mark, one.failure(attempt), wait,
                      rule.queues)
            )  # fmt: skip
        return goings

    def _lose(self, ledger: Ledger, one: _Candidate) -> None:
        """Settle what nobody can hand out again: its record is damaged; the log reports it."""
        ledger.put_one(one.offset, lease_word(State.DAMAGED))
        header = ledger.live()
        header.leased -= 1
        header.damaged += 1


def dead_letter(reason: str | None) -> Verdict:
    """The verdict that ends a message's attempts."""
    return Verdict(reason, DEAD)


def _is_current(ledger: Ledger, shown: Shown, number: int) -> bool:
    """Whether a receipt is of this life of the ledger."""
    header = ledger.live()
    return shown.epochs[number] == header.epoch and shown.offsets[number] < header.cursor
