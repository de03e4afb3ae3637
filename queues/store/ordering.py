"""Ordering: what an ordered group is handed, one message a sharding key at a time.

Messages of a queue that have the same sharding key are handed out in the order of the queue, each
only after the one before is over: acknowledged, dropped, or, if it failed, once the chain of its
retries ended (acknowledged, dead, cancelled). Messages without a key share one key a queue. Other
keys go on meanwhile.

Nothing is kept for that but the ledger itself. A message blocks its key while its entry is on
lease, or `CHAINED` with a chain that goes on; in an ordered ledger both are open, so the floor
waits for them. An entry whose chain was seen to be over becomes `ENDED`. So order holds over
restarts and deaths. At most `LOOK_AHEAD_UNITS` units from the floor on are looked at: a chain that
takes long holds back what lies farther behind it, whatever its key.

Example: of keys a b a b, with the first a on lease, the first b is handed out and the rest waits;
the first a fails, and while its retry waits, the second b can come, once the first is acked.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from queues.store.handout import Ask, QueueReader, Taken
from queues.store.ledger import Ledger
from queues.store.ledgerentries import (
    State,
    attempt_of,
    bout_of,
    bout_word,
    lease_details,
    lease_word,
    next_lease,
    state_of,
    states,
    until_of,
)
from queues.store.ledgerheader import Header
from queues.store.ledgers import Place
from queues.store.limits import LEASES_MAX, LOOK_AHEAD_UNITS
from queues.store.names import DEAD_LETTER_PREFIX, JOURNAL_TOPIC, RETRY_PREFIX
from queues.store.properties import SHARDING_KEY
from queues.store.settling import expire_leases, lapse
from queues.store.tagfilter import property_of

#: How long it is believed that nothing changed for a queue of which nothing could be handed out.
_BELIEVED_MS = 2_000


class ChainReader(Protocol):
    """What ordering asks of the chains."""

    def newest_link(self, group: str, log_offset: int) -> int | None:
        """Where the newest link of a chain lies, given one of its links; None if it is over."""

    def read_link(self, log_offset: int) -> bytes | None:
        """The record of a link; None if it is gone."""


class OrderedReader(QueueReader, Protocol):
    """What ordering needs of a store."""

    @property
    def chains(self) -> ChainReader:
        """Its chains."""


#: A queue, and what its blocking hangs on: nothing can be handed out while this stays the same.
_Stamp = tuple[int, ...]


class Ordering:
    """Hands out to ordered groups, for one process."""

    def __init__(self, reader: OrderedReader, peek: Callable[[Place], Header | None]) -> None:
        self._reader, self._peek = reader, peek
        #: Sharding keys that were read, by place and offset; guarded by the ledger's lock.
        self._keys: dict[Place, dict[int, str]] = {}
        #: Places of which nothing could be handed out.
        self._blocked: dict[Place, _Stamp] = {}

    def hand_out(self, ledger: Ledger, place: Place, ask: Ask) -> Taken:
        """Lease what may come next to the asker (under the ledger's lock) and commit."""
        header = ledger.live()
        bounds = self._reader.queue_bounds(ask.topic, ask.queue_id)
        if not header.ordered:
            # Before the first lease: whoever fails it must know that it goes on blocking.
            header.ordered = 1
            ledger.commit()
        changed = expire_leases(ledger, ask.now_ms) if ask.expires else 0
        changed += lapse(ledger, bounds.min_offset)
        keys = self._keys.setdefault(place, {})
        for offset in [offset for offset in keys if offset < header.floor]:
            del keys[offset]
        chains = self._chains_stamp(place)  # Before the look: one may end while it goes on.
        run = _Run(ledger, self._reader, place, ask, keys)
        run.look(bounds.min_offset, bounds.max_offset)
        if run.write() or changed:
            ledger.advance_floor()
            ledger.commit()
        run.taken.full = header.leased >= LEASES_MAX
        if not run.taken.records and not run.taken.full:
            self._blocked[place] = self._stamp(place, header, ask.now_ms) + chains
        return run.taken

    def may_have(self, place: Place, header: Header, now_ms: int) -> bool:
        """Whether anything changed since nothing could be handed out."""
        blocked = self._blocked.get(place)
        if blocked is None:
            return True
        return blocked != self._stamp(place, header, now_ms) + self._chains_stamp(place)

    def _stamp(self, place: Place, header: Header, now_ms: int) -> _Stamp:
        end = self._reader.queue_bounds(place.topic, place.queue_id).max_offset
        return (now_ms // _BELIEVED_MS, header.epoch, header.floor, header.cursor, header.leased,
                header.again, end)  # fmt: skip

    def _chains_stamp(self, place: Place) -> _Stamp:
        """What changes when a chain of the group goes on or ends."""
        reader, group = self._reader, place.group
        told = [reader.queue_bounds(JOURNAL_TOPIC, 0).max_offset]
        told.append(reader.queue_bounds(DEAD_LETTER_PREFIX + group, 0).max_offset)
        retry = RETRY_PREFIX + group
        for queue_id in reader.queue_ids(retry):
            mine = self._peek(Place(group, retry, queue_id))
            if mine is not None:
                told += (mine.floor, mine.cursor, mine.leased, mine.again)
        return tuple(told)


class _Run:
    """One run over one queue."""

    def __init__(
        self, ledger: Ledger, reader: OrderedReader, place: Place, ask: Ask, keys: dict[int, str]
    ) -> None:
        self.taken = Taken()
        self._ledger, self._reader, self._place, self._ask = ledger, reader, place, ask
        self._keys = keys
        self._details = lease_details(ask.until_ms - ask.now_ms, ask.consumer)
        #: What becomes of entries: lease and chain word, by offset.
        self._entries: dict[int, tuple[int, int]] = {}
        #: How many messages block each key, and the one of them that is chained.
        self._held: dict[str, int] = {}
        self._chained: dict[str, tuple[int, int, int]] = {}
        #: Keys whose chain was seen to go on: should it end now, a message was passed before.
        self._passed: set[str] = set()

    def look(self, min_offset: int, max_offset: int) -> None:
        """Decide on what lies in reach of the floor."""
        first = self._ledger.live().floor
        stop = min(max_offset, first + LOOK_AHEAD_UNITS)
        begin = max(first, min_offset)
        if stop <= first:
            return
        units = self._reader.read_units(
            self._ask.topic, self._ask.queue_id, begin, max(0, stop - begin)
        )
        bounds = self._reader.queue_bounds(self._ask.topic, self._ask.queue_id)
        if bounds.min_offset > begin:
            return  # Retention went by: the next receive settles what it took.
        stop = begin + len(units)
        entries = self._ledger.entries(first, max(0, stop - first))
        found = states(entries[:, 0])
        opened = np.flatnonzero((found < State.ACKED) | (found == State.CHAINED))
        matching = self._ask.tags.may_match(units["tags_code"])
        self._end_leading(first, opened.tolist(), found, entries)
        for number in opened.tolist():
            offset, (word, chain) = first + number, entries[number].tolist()
            unit = units[offset - begin : offset - begin + 1] if offset >= begin else units[:0]
            if found[number] >= State.LEASED:
                self._block(offset, unit, word, chain)
            elif len(unit) and not self._offer(offset, unit, word, matching[offset - begin]):
                self.taken.more = True
                return

    def _end_leading(
        self, first: int, opened: list[int], found: npt.NDArray[np.int64],
        entries: npt.NDArray[np.int64],
    ) -> None:  # fmt: skip
        """End the chains that are over at the floor, so that it moves."""
        for number in opened:
            if found[number] != State.CHAINED:
                return
            word, chain = entries[number].tolist()
            if not self._end(first + number, word, chain):
                return

    # -- what blocks ----------------------------------------------------------------------------

    def _block(self, offset: int, unit: npt.NDArray[np.void], word: int, chain: int) -> None:
        word, chain = self._entries.get(offset, (word, chain))
        if state_of(word) == State.ENDED:
            return
        chained = state_of(word) == State.CHAINED
        key = self._key(offset, unit, chain if chained else 0)
        if key is None:
            return  # Neither it nor its chain can be read: nobody can tell what it would block.
        self._held[key] = self._held.get(key, 0) + 1
        if chained:
            self._chained[key] = offset, word, chain

    def _is_free(self, key: str) -> bool:
        """Whether no message before has the key; a chain that is over is ended on the way."""
        if self._held.get(key) == 1 and key in self._chained and key not in self._passed:
            if self._end(*self._chained[key]):
                del self._held[key], self._chained[key]
            else:
                self._passed.add(key)
        return key not in self._held

    def _end(self, offset: int, word: int, chain: int) -> bool:
        """End the entry if its chain is over; else let it lead to the newest link."""
        newest = self._reader.chains.newest_link(self._place.group, chain)
        if newest is None:
            bout, until_ms = bout_of(word), until_of(word)
            self._entries[offset] = bout_word(State.ENDED, bout, until_ms), chain
            return True
        if newest != chain:
            self._entries[offset] = word, newest
        return False

    def _key(self, offset: int, unit: npt.NDArray[np.void], chain: int) -> str | None:
        key = self._keys.get(offset)
        if key is None:
            (record,) = self._reader.read_records(unit) if len(unit) else (None,)
            if record is None and chain:
                record = self._reader.chains.read_link(chain)
            if record is None:
                return None
            key = self._keys[offset] = property_of(record, SHARDING_KEY) or ""
        return key

    # -- what may come --------------------------------------------------------------------------

    def _offer(self, offset: int, unit: npt.NDArray[np.void], word: int, matches: bool) -> bool:
        """Take the message if it may come now; False when no more is wanted."""
        taken, ask, header = self.taken, self._ask, self._ledger.live()
        taken.examined += 1
        key = self._key(offset, unit, 0) if matches else ""
        if key is None:
            return self._settle(offset, State.DAMAGED)
        if not matches:
            return self._settle(offset, State.FILTERED)
        if not self._is_free(key):
            return True
        leases = header.leased + len(taken.records)
        if len(taken.records) >= ask.count or leases >= LEASES_MAX:
            return False
        if taken.records and taken.bytes_taken + int(unit["size"][0]) > ask.bytes_max:
            return False
        (record,) = self._reader.read_records(unit)
        if record is None:
            return self._settle(offset, State.DAMAGED)
        if not ask.tags.matches(record):
            return self._settle(offset, State.FILTERED)
        leased = next_lease(word, ask.until_ms)
        self._entries[offset] = leased, self._details
        self._held[key] = 1
        taken.offsets.append(offset)
        taken.bouts.append(bout_of(leased))
        taken.records.append(record)
        taken.bytes_taken += len(record)
        return True

    def _settle(self, offset: int, state: State) -> bool:
        header = self._ledger.live()
        self._entries[offset] = lease_word(state), 0
        if state == State.DAMAGED:
            header.damaged += 1
            self.taken.damaged += 1
        else:
            header.filtered += 1
        return True

    # -- writing --------------------------------------------------------------------------------

    def write(self) -> bool:
        """Write the entries and what the header says of them; whether there was anything."""
        if not self._entries:
            return False
        header = self._ledger.live()
        offsets = sorted(self._entries)
        before = states(self._ledger.words_of(np.array(offsets)))
        ready = [
            offset
            for offset, state in zip(offsets, before.tolist(), strict=True)
            if state < State.LEASED
        ]
        rows = np.array([self._entries[offset] for offset in offsets], np.int64)
        self._ledger.put(np.array(offsets), rows[:, 0], rows[:, 1])
        cursor = max(header.cursor, ready[-1] + 1 if ready else 0)
        new = sum(offset >= header.cursor for offset in ready)
        header.again += (cursor - header.cursor - new) - (len(ready) - new)
        header.again_from = min(header.again_from, header.cursor)
        header.cursor = cursor
        header.leased += len(self.taken.records)
        header.redelivered += sum(attempt_of(bout) > 1 for bout in self.taken.bouts)
        if self.taken.records:
            header.expires_by(self._ask.until_ms)
        return True


def leave_order(ledger: Ledger) -> None:
    """Let a ledger be that of a group without order (under its lock)."""
    ledger.live().ordered = 0
    ledger.advance_floor()
    ledger.commit()
