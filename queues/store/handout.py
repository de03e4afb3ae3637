"""Handing out: what one receive takes from one queue for one group.

What is ready again comes first, in order of offset, then what was never handed out, from the
cursor on. Units are read in runs and filtered by the hash of their tag; only the records that are
handed out are read. A record that cannot be read is settled and counted: it can never be handed
out, and the log reports it.

The leases are written before the records leave: a process that dies in between leaves leases that
run out, never a message that two consumers hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from queues.store.ledger import Ledger
from queues.store.ledgerentries import (
    State,
    Words,
    attempt_of,
    attempts,
    bout_of,
    bouts,
    lease_details,
    lease_word,
    next_lease,
    next_leases,
    states,
)
from queues.store.limits import LEASES_MAX, RECEIVE_UNITS_MAX
from queues.store.settling import expire_leases, lapse
from queues.store.tagfilter import TagFilter

#: Units that are looked at together while a filter looks for its messages.
_UNITS_AT_ONCE = 4096
#: Entries that are looked at first for one that is ready again: one page.
_ENTRIES_AT_FIRST = 256


class Bounds(Protocol):
    """Which offsets of a queue can be read."""

    @property
    def min_offset(self) -> int:
        """The first."""

    @property
    def max_offset(self) -> int:
        """The one after the last."""


class QueueReader(Protocol):
    """The reading side of the store."""

    def queue_ids(self, topic: str) -> Sequence[int]:
        """The queues of a topic, in order."""

    def queue_bounds(self, topic: str, queue_id: int) -> Bounds:
        """Which offsets can be read."""

    def read_units(self, topic: str, queue_id: int, start: int, count: int) -> npt.NDArray[np.void]:
        """ConsumeQueue units, clipped to what can be read."""

    def read_records(self, units: npt.NDArray[np.void]) -> list[bytes | None]:
        """The records that units lead to; None for a damaged one."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a receive asks of one queue."""

    topic: str
    queue_id: int
    tags: TagFilter
    #: Messages at most.
    count: int
    #: Bytes of records at most, but for the first.
    bytes_max: int
    #: When the leases end, wall time in ms.
    until_ms: int
    now_ms: int
    #: The number of the consumer that asks; 0 for one without a name.
    consumer: int = 0
    #: Leases that ran out make their messages ready again, in passing.
    expires: bool = True


@dataclass(slots=True)
class Taken:
    """What one queue gave."""

    offsets: list[int] = field(default_factory=list)
    #: Attempt and turn of each, as its receipt names them.
    bouts: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    bytes_taken: int = 0
    #: Units that were looked at.
    examined: int = 0
    #: Records that could not be read.
    damaged: int = 0
    #: The queue has as many leases as it may.
    full: bool = False
    #: It may have more.
    more: bool = False


def hand_out(ledger: Ledger, reader: QueueReader, ask: Ask) -> Taken:
    """Lease what is ready to the asker (under the ledger's lock) and commit."""
    header = ledger.live()
    bounds = reader.queue_bounds(ask.topic, ask.queue_id)
    # In this order: a lease that ran out on what retention removed has lapsed as well.
    changed = expire_leases(ledger, ask.now_ms) if ask.expires else 0
    changed += lapse(ledger, bounds.min_offset)
    work = _HandOut(ledger, reader, ask)
    work.take_again()
    work.take_new(bounds.max_offset)
    taken = work.taken
    taken.full = header.leased >= LEASES_MAX
    taken.more = not taken.full and (bool(header.again) or header.cursor < bounds.max_offset)
    if changed or taken.examined:
        ledger.commit()
    return taken


class _HandOut:
    """One run over one queue."""

    def __init__(self, ledger: Ledger, reader: QueueReader, ask: Ask) -> None:
        self.taken = Taken()
        self._ledger, self._reader, self._ask = ledger, reader, ask
        self._header = ledger.live()
        self._details = lease_details(ask.until_ms - ask.now_ms, ask.consumer)

    def _wanted(self) -> int:
        """How many more may be taken."""
        taken, ask = self.taken, self._ask
        full_of_bytes = taken.records and taken.bytes_taken >= ask.bytes_max
        if taken.examined >= RECEIVE_UNITS_MAX or full_of_bytes:
            return 0
        return min(ask.count - len(taken.records), LEASES_MAX - self._header.leased)

    def take_again(self) -> None:
        """Take what was handed out before and is ready again."""
        header, step = self._header, _ENTRIES_AT_FIRST
        while header.again and (wanted := self._wanted()) > 0:
            first = header.again_from
            if first >= header.cursor:
                header.again = 0  # None lies before it: whatever was counted, none is there.
                break
            words = self._ledger.words(first, min(step, header.cursor - first))
            step = _UNITS_AT_ONCE
            ready = np.flatnonzero(states(words) < State.LEASED)
            if not len(ready):
                header.again_from = first + len(words)
                continue
            if self._ask.tags.takes_all:
                ready = ready[:wanted]
            units = self._read_units(first + int(ready[0]), int(ready[-1] - ready[0]) + 1)
            ready = ready[: int(np.searchsorted(ready, ready[0] + len(units)))]
            settled = self._take(first + ready, units[ready - ready[:1]], words[ready])
            header.again -= settled
            if not settled:
                break
            header.again_from = first + int(ready[settled - 1]) + 1
        if self.taken.examined > len(self.taken.records):
            self._ledger.advance_floor()

    def take_new(self, max_offset: int) -> None:
        """Take what was never handed out."""
        header = self._header
        while header.cursor < max_offset and (wanted := self._wanted()) > 0:
            count = wanted if self._ask.tags.takes_all else _UNITS_AT_ONCE
            units = self._read_units(header.cursor, min(count, max_offset - header.cursor))
            offsets = np.arange(header.cursor, header.cursor + len(units))
            settled = self._take(offsets, units, np.zeros(len(units), dtype=np.int64))
            header.cursor += settled
            if not settled:
                break

    def _read_units(self, start: int, count: int) -> npt.NDArray[np.void]:
        ask = self._ask
        units = self._reader.read_units(ask.topic, ask.queue_id, start, count)
        if self._reader.queue_bounds(ask.topic, ask.queue_id).min_offset > start:
            return units[:0]  # Retention went by: the next receive settles what it took.
        return units

    def _take(self, offsets: Words, units: npt.NDArray[np.void], before: Words) -> int:
        """Decide on a leading part of the candidates, which are ascending; return how many.

        `before` are their lease words.
        """
        if len(units) == 1:
            return self._take_one(int(offsets[0]), units, int(before[0]))
        matching = np.flatnonzero(self._ask.tags.may_match(units["tags_code"]))
        chosen = matching[: self._fitting(units["size"][matching])]
        settled = int(matching[len(chosen)]) if len(chosen) < len(matching) else len(offsets)
        if not settled:
            return 0
        words = np.full(settled, lease_word(State.FILTERED))
        leased = self._read(chosen, units, words)
        words[leased] = next_leases(before[leased], self._ask.until_ms)
        self._write(offsets[:settled], words, leased)
        self.taken.examined += settled
        self.taken.offsets += offsets[leased].tolist()
        self.taken.bouts += bouts(words[leased]).tolist()
        self._header.redelivered += int(np.count_nonzero(attempts(before[leased])))
        return settled

    def _take_one(self, offset: int, unit: npt.NDArray[np.void], before: int) -> int:
        """The same for one candidate, for which numpy costs more than it saves."""
        taken, header, ask = self.taken, self._header, self._ask
        if taken.records and taken.bytes_taken + int(unit["size"][0]) > ask.bytes_max:
            return 0
        taken.examined += 1
        state, record = State.FILTERED, None
        if ask.tags.takes_all or ask.tags.may_match(unit["tags_code"])[0]:
            (record,) = self._reader.read_records(unit)
            state = State.DAMAGED if record is None else State.LEASED
        if record is not None and ask.tags.matches(record):
            word = next_lease(before, ask.until_ms)
            self._ledger.put_one(offset, word, self._details)
            header.leased += 1
            header.redelivered += attempt_of(bout_of(word)) > 1
            header.expires_by(ask.until_ms)
            taken.offsets.append(offset)
            taken.bouts.append(bout_of(word))
            taken.records.append(record)
            taken.bytes_taken += len(record)
            return 1
        if state == State.DAMAGED:
            taken.damaged += 1
            header.damaged += 1
        else:
            state = State.FILTERED
            header.filtered += 1
        if header.floor == header.cursor == offset:
            header.raise_floor(offset + 1)
        else:
            self._ledger.put_one(offset, lease_word(state))
        return 1

    def _fitting(self, sizes: npt.NDArray[np.int32]) -> int:
        """How many of the leading ones may be taken."""
        wanted = self._wanted()
        room = self._ask.bytes_max - self.taken.bytes_taken
        fitting = int(np.searchsorted(np.cumsum(sizes[:wanted]), room, side="right"))
        return min(wanted, fitting if self.taken.records else max(1, fitting))

    def _read(self, chosen: Words, units: npt.NDArray[np.void], words: Words) -> Words:
        """Read the chosen records; return which are handed out, and mark which are damaged."""
        taken, header, tags = self.taken, self._header, self._ask.tags
        records = self._reader.read_records(units.take(chosen))
        damaged = [at for at, record in enumerate(records) if record is None]
        if damaged:
            words[chosen[damaged]] = lease_word(State.DAMAGED)
            taken.damaged += len(damaged)
            header.damaged += len(damaged)
        if damaged or not tags.takes_all:
            kept = [at for at, record in enumerate(records) if record and tags.matches(record)]
            chosen = chosen[kept]
            records = [records[at] for at in kept]
        whole = cast("list[bytes]", records)
        taken.records += whole
        taken.bytes_taken += sum(map(len, whole))
        header.filtered += len(words) - len(damaged) - len(whole)
        return chosen

    def _write(self, offsets: Words, words: Words, leased: Words) -> None:
        header = self._header
        unwritten = 0
        if header.floor == header.cursor == offsets[0]:
            # Nothing below is open: what is settled before the first lease needs no entries.
            unwritten = int(leased[0]) if len(leased) else len(offsets)
            header.raise_floor(header.floor + unwritten)
        if unwritten < len(offsets):
            chains = np.zeros(len(words), np.int64)
            chains[leased] = self._details
            self._ledger.put(offsets[unwritten:], words[unwritten:], chains[unwritten:])
        if len(leased):
            header.leased += len(leased)
            header.expires_by(self._ask.until_ms)
