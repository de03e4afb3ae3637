"""Settling: acks, leases that ran out, and messages that retention removed, in one ledger.

Each function is called by the holder of the ledger's lock and leaves header and entries agreeing
once the holder commits. Leases are judged by the wall time kept in the entry, so they mean the same
in every process and after a restart. A step of the wall clock forward ends leases early by that
step (the message comes again, and an ack that is late but not yet overtaken still counts); a step
back lengthens them by it, but a lease that would end more than 12 h from now has run out.
"""

from collections.abc import Iterator

import numpy as np

from queues.store.ledger import Ledger
from queues.store.ledgerentries import (
    State,
    Words,
    attempts,
    bout_word,
    bouts,
    lease_word,
    lease_words,
    states,
    untils,
    with_state,
)
from queues.store.limits import LEASE_MS_MAX, LEDGER_SCAN_ENTRIES
from queues.store.receipts import Shown


def settle_acks(
    ledger: Ledger, shown: Shown, now_ms: int, state: State = State.ACKED
) -> tuple[list[bool], list[bool]]:
    """Settle what the genuine receipts are for.

    Two lists, of which a True means for each: it is now, or was before, settled; it is now. It is
    settled as acked, or by another such state.

    A receipt is void (False) when its message was handed out again, its lease was given up, or the
    group was reset; a late one counts as long as its expiry is not settled.
    """
    if len(shown.offsets) == 1:
        was, is_now = _settle_one_ack(ledger, shown, now_ms, state)
        return [was or is_now], [is_now]
    header = ledger.live()
    given = np.array(shown.offsets)
    until_ms = np.array(shown.untils_ms)
    ascending = bool((given[1:] > given[:-1]).all())  # As a receive gave them: nothing to sort.
    if ascending:
        words = ledger.words_of(given)
    else:
        offsets, places = np.unique(given, return_inverse=True)
        words = ledger.words_of(offsets)[places]
    found = states(words)
    current = (np.array(shown.epochs) == header.epoch) & (given < header.cursor)
    same = (bouts(words) == shown.bouts) & (untils(words) == until_ms) & current
    fresh = is_now = same & (found == State.LEASED)
    if fresh.any():
        chosen = np.flatnonzero(fresh)
        if not ascending:  # One that is shown twice is settled once.
            chosen = chosen[np.unique(given[chosen], return_index=True)[1]]
            is_now = np.zeros_like(fresh)
            is_now[chosen] = True
        ledger.put(given[chosen], with_state(words[chosen], state))
        _note_acks(ledger, int(given[chosen[0]]), len(chosen))
    forgotten = (given < header.floor) & (words == 0) & (until_ms > now_ms)
    before = (same & (found == state)) | (forgotten & current)
    return (fresh | before).tolist(), is_now.tolist()


def _settle_one_ack(ledger: Ledger, shown: Shown, now_ms: int, state: State) -> tuple[bool, bool]:
    """Whether it was settled so before, and whether it is now."""
    header = ledger.live()
    offset, until_ms, bout = shown.offsets[0], shown.untils_ms[0], shown.bouts[0]
    if shown.epochs[0] != header.epoch or offset >= header.cursor:
        return False, False
    word = ledger.word(offset)
    if word == 0:
        # Its entry was given back: settled long ago, by this lease if it has not even run out.
        return offset < header.floor and until_ms > now_ms, False
    if word == bout_word(State.LEASED, bout, until_ms):
        ledger.put_one(offset, bout_word(state, bout, until_ms))
        _note_acks(ledger, offset, 1)
        return False, True
    return word == bout_word(state, bout, until_ms), False


def _note_acks(ledger: Ledger, first: int, count: int) -> None:
    header = ledger.live()
    header.leased -= count
    if first == header.floor:
        ledger.advance_floor()
    ledger.commit()


def expire_leases(ledger: Ledger, now_ms: int) -> int:
    """Make ready again what ran out; return how many. The holder commits."""
    header = ledger.live()
    if not header.expiry_due(now_ms, LEASE_MS_MAX):
        return 0
    header.next_expiry_ms = 0
    ran_out = 0
    for first, words in _entries(ledger, header.floor, header.cursor):
        leased = states(words) == State.LEASED
        until = untils(words)
        due = leased & ((until <= now_ms) | (until > now_ms + LEASE_MS_MAX))
        held = until[leased & ~due]
        if len(held):
            header.expires_by(int(held.min()))
        offsets = np.flatnonzero(due) + first
        if len(offsets):
            ledger.put(offsets, lease_words(State.READY, attempts(words[due]), 0))
            header.again_from = min(header.again_from, int(offsets[0]))
            ran_out += len(offsets)
    header.leased -= ran_out
    header.again += ran_out
    header.ran_out += ran_out
    return ran_out


def lapse(ledger: Ledger, min_offset: int) -> int:
    """Settle what is ready but was removed by retention; return how many. The holder commits.

    A lease on such a message goes on: its consumer has it.
    """
    header = ledger.live()
    moved = min_offset > header.min_offset
    if not moved and (not header.again or header.again_from >= min_offset):
        return 0
    header.min_offset = max(min_offset, header.min_offset)
    if min_offset <= header.floor:
        return 0
    lapsed = 0
    for first, words in _entries(ledger, header.floor, min(header.cursor, min_offset)):
        offsets = np.flatnonzero(states(words) < State.LEASED) + first
        if len(offsets):
            ledger.put(offsets, np.full(len(offsets), lease_word(State.LAPSED)))
            lapsed += len(offsets)
    header.again -= lapsed
    ledger.advance_floor()
    lapsed += pass_over(ledger, min_offset, State.LAPSED)
    header.lapsed += lapsed
    return lapsed


def pass_over(ledger: Ledger, stop: int, state: State) -> int:
    """Settle everything from the cursor up to `stop`; return how many. The holder commits."""
    header = ledger.live()
    first = header.cursor
    if stop <= first:
        return 0
    if header.floor == first:
        header.raise_floor(stop)  # Nothing below is open, so no entries are needed.
    else:
        for start in range(first, stop, LEDGER_SCAN_ENTRIES):
            offsets = np.arange(start, min(start + LEDGER_SCAN_ENTRIES, stop))
            ledger.put(offsets, np.full(len(offsets), lease_word(state)))
    header.cursor = stop
    return stop - first


def _entries(ledger: Ledger, start: int, stop: int) -> Iterator[tuple[int, Words]]:
    for first in range(start, stop, LEDGER_SCAN_ENTRIES):
        yield first, ledger.words(first, min(LEDGER_SCAN_ENTRIES, stop - first))
