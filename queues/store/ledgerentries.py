"""A ledger entry: what became of one message of a queue in one group, 16 bytes an offset.

The entry of offset n lies at byte 4096 + 16 n of a sparse file. It is two native 8-byte words.

======  ==========  ========  ==================================================================
word    bits        field     meaning
======  ==========  ========  ==================================================================
lease   0 to 43     until     wall time in ms at which the lease ends (state LEASED, ACKED)
lease   44 to 53    attempt   hand-outs so far, at most 1023 (it stays there)
lease   54 to 57    state     see `State`
lease   58 to 62    turn      raised whenever a receipt becomes void within an attempt, modulo 32
chain   63          details   1: bits 0 to 49 tell of the lease, 0: of the chain
chain   0 to 25     held      details: until minus the start of the attempt, ms (at most 12 h)
chain   26 to 49    consumer  details: number of the consumer that holds it, 0 for none
chain   0 to 62     settled   no details: log offset of the retry or dead-letter record, 0 for none
======  ==========  ========  ==================================================================

The lease word is written by the holder of the ledger's lock alone. The chain word tells of the
lease (who holds it, and since when) while the message is on lease, and of the record that goes on
with it afterwards: dispatch settles an entry by this one aligned word, under the append lock alone.
Attempt and turn together are the *bout* that a receipt names: a release takes the attempt back and
an extension keeps it, and both raise the turn.

A holder writes only entries whose state it changes, so that it never writes over what dispatch
settles beside them. An entry is 16-aligned and so never straddles a page: it is written whole.

Worked example: offset 7, first attempt, leased until 1700000060000 ms, is
``1700000060000 | 1 << 44 | LEASED << 54`` at byte 4208; its ack changes the state to ACKED and
keeps the rest, by which a repeated ack is told from one with a void receipt.
"""

from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

ENTRY_BYTES = 16
_UNTIL_BITS, _ATTEMPT_BITS = 44, 10
_ATTEMPT_AT = _UNTIL_BITS
_STATE_AT = _UNTIL_BITS + _ATTEMPT_BITS
_UNTIL_MASK = (1 << _UNTIL_BITS) - 1
ATTEMPT_MAX = (1 << _ATTEMPT_BITS) - 1
_STATE_MASK = 0xF
_TURN_AT = _STATE_AT + 4
_TURN_MASK = 31
_HELD_BITS = 26
_CONSUMER_BITS = 24
_HELD_MASK = (1 << _HELD_BITS) - 1
CONSUMER_MAX = (1 << _CONSUMER_BITS) - 1
#: What bit 63 is worth in a signed word.
_DETAILS = -(1 << 63)


class State(IntEnum):
    """What became of a message; from `ACKED` on it is settled, before it is open."""

    #: Never handed out, or all knowledge of it was lost: ready.
    BLANK = 0
    #: Its last lease ran out: ready, and `attempt` tells how often it was handed out.
    READY = 1
    #: Handed out, until `until`.
    LEASED = 2
    #: Settled by its consumer.
    ACKED = 3
    #: Settled because its tag is not subscribed to.
    FILTERED = 4
    #: Settled because its record cannot be read.
    DAMAGED = 5
    #: Settled because retention removed it before it was fetched.
    LAPSED = 6
    #: Settled because its attempt failed: the record that the chain word tells of goes on with it.
    #: In an ordered group it is open until that is over.
    CHAINED = 7
    #: Settled because its attempt failed in a broadcasting group, which never tries again.
    DROPPED = 8
    #: Settled in an ordered group, where it was `CHAINED`: its chain is over.
    ENDED = 9


def lease_word(state: State, attempt: int = 0, until_ms: int = 0) -> int:
    """The lease word of one entry."""
    return until_ms | min(attempt, ATTEMPT_MAX) << _ATTEMPT_AT | state << _STATE_AT


def lease_words(state: State, attempts: Words, until_ms: int) -> Words:
    """The lease words of many entries that share state and end."""
    return (np.minimum(attempts, ATTEMPT_MAX) << _ATTEMPT_AT) | (until_ms | state << _STATE_AT)


def next_lease(before: int, until_ms: int) -> int:
    """The lease word of the next hand-out of an entry."""
    attempt = min((before >> _ATTEMPT_AT & ATTEMPT_MAX) + 1, ATTEMPT_MAX)
    turn = before & _TURN_MASK << _TURN_AT
    return until_ms | attempt << _ATTEMPT_AT | State.LEASED << _STATE_AT | turn


def next_leases(before: Words, until_ms: int) -> Words:
    """The lease words of the next hand-out of many entries."""
    turns = before & _TURN_MASK << _TURN_AT
    return lease_words(State.LEASED, attempts(before) + 1, until_ms) | turns


def bout_of(word: int) -> int:
    """Attempt and turn of one entry, as its receipt names them."""
    return word >> _ATTEMPT_AT & ATTEMPT_MAX | (word >> _TURN_AT & _TURN_MASK) << _ATTEMPT_BITS


def bouts(words: Words) -> Words:
    """Attempt and turn of each entry, as its receipt names them."""
    turns = (words >> _TURN_AT) & _TURN_MASK
    return attempts(words) | turns << _ATTEMPT_BITS


def bout_word(state: State, bout: int, until_ms: int) -> int:
    """The lease word of one entry in the bout that a receipt names."""
    turn = bout >> _ATTEMPT_BITS << _TURN_AT
    return until_ms | (bout & ATTEMPT_MAX) << _ATTEMPT_AT | state << _STATE_AT | turn


def attempt_of(bout: int) -> int:
    """The attempt of a bout."""
    return bout & ATTEMPT_MAX


def attempts_of(bouts: Iterable[int]) -> list[int]:
    """The attempts of bouts."""
    return [bout & ATTEMPT_MAX for bout in bouts]


def next_turn(bout: int, *, counted: bool) -> int:
    """The bout in which this one's receipt is void; without `counted` its attempt is taken back."""
    turn = (bout >> _ATTEMPT_BITS) + 1 & _TURN_MASK
    return (bout & ATTEMPT_MAX) - (not counted) | turn << _ATTEMPT_BITS


def lease_details(held_ms: int, consumer: int) -> int:
    """The chain word of an entry on lease: until minus the attempt's start, and who holds it."""
    return _DETAILS | min(held_ms, _HELD_MASK) | consumer << _HELD_BITS


def held_ms_of(chain: int) -> int:
    """Until minus the start of the attempt, ms; 0 where the word does not tell."""
    return chain & _HELD_MASK if chain < 0 else 0


def consumer_of(chain: int) -> int:
    """The number of the consumer that holds it; 0 for none."""
    return chain >> _HELD_BITS & CONSUMER_MAX if chain < 0 else 0


def with_state(words: Words, state: State) -> Words:
    """The words with another state, all else kept."""
    return (words & ~(_STATE_MASK << _STATE_AT)) | state << _STATE_AT


def states(words: Words) -> Words:
    """The state of each entry."""
    return (words >> _STATE_AT) & _STATE_MASK


def attempts(words: Words) -> Words:
    """How often each was handed out."""
    return (words >> _ATTEMPT_AT) & ATTEMPT_MAX


def untils(words: Words) -> Words:
    """When each lease ends, ms."""
    return words & _UNTIL_MASK


def state_of(word: int) -> State:
    """The state of one entry."""
    return State(word >> _STATE_AT & _STATE_MASK)


def until_of(word: int) -> int:
    """When the lease of one entry ends, ms."""
    return word & _UNTIL_MASK


def split_runs(offsets: Words) -> list[tuple[int, int]]:
    """The positions ``[start, stop)`` of each run of consecutive offsets in ascending `offsets`."""
    if int(offsets[-1]) - int(offsets[0]) == len(offsets) - 1:
        return [(0, len(offsets))]
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    edges = [0, *breaks.tolist(), len(offsets)]
    return list(pairwise(edges))
