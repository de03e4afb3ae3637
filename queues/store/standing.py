"""A standing is how far one group is with one message of a queue, read from its ledger entry."""

from typing import Literal, NamedTuple

from queues.store.ledgerentries import ATTEMPT_MAX, State
from queues.store.ledgerheader import Header

_UNTIL_BITS = 44
_STATE_AT = 54

StandingState = Literal["ready", "leased", "acked", "retrying", "dropped", "expired"]

_SETTLED: dict[State, StandingState] = {
    State.ACKED: "acked",
    State.DROPPED: "dropped",
    State.CHAINED: "retrying",
    State.ENDED: "retrying",
}


class Standing(NamedTuple):
    """How far a group is with a message."""

    state: StandingState
    #: How often it was handed out.
    attempts: int
    #: When its lease ends, wall time in ms; None without one.
    until_ms: int | None = None


def standing_of(header: Header, word: int, offset: int, now_ms: int) -> Standing | None:
    """What an entry's lease word says; None if the message is none of the group's.

    Of what was settled long ago the entry was given back to the file system: it counts as
    acknowledged at the first attempt.
    """
    if offset < header.start:
        return None
    attempts = word >> _UNTIL_BITS & ATTEMPT_MAX
    match State(word >> _STATE_AT & 0xF):
        case State.LEASED:
            until_ms = word & (1 << _UNTIL_BITS) - 1
            if until_ms > now_ms:
                return Standing("leased", attempts, until_ms)
            return Standing("ready", attempts)
        case State.ACKED | State.DROPPED | State.CHAINED | State.ENDED as state:
            return Standing(_SETTLED[state], attempts)
        case State.FILTERED:
            return None
        case State.DAMAGED | State.LAPSED:
            return Standing("expired", attempts)
        case _:
            return Standing("ready", attempts) if offset >= header.floor else Standing("acked", 1)
