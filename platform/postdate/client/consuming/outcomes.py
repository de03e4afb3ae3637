"""An outcome is what a handler's end means for its message: done, later, never, or given back."""

from dataclasses import dataclass
from typing import Literal

from postdate.client.writing import Duration, write_duration

#: The server's bound for reasons.
REASON_CHARACTERS_MAX = 1000

Verb = Literal["ack", "retry", "dead_letter", "release"]


class RetryLater(Exception):
    """Raised by a handler: not now; try again after `delay`, or as the group's policy says."""

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason or "the handler asked for another attempt")
        #: How long to wait; None: as the group's policy says.
        self.delay = None if delay is None else write_duration(delay)


class DeadLetterNow(Exception):
    """Raised by a handler: this will never work; straight to the dead letters."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the handler gave it up")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to tell the server; messages with equal outcomes go in one request."""

    verb: Verb
    reason: str | None = None
    #: Of a retry, in words.
    delay: str | None = None


ACK = Outcome("ack")
RELEASE = Outcome("release")


def outcome_of(error: BaseException) -> Outcome:
    """What an exception of a handler means."""
    if isinstance(error, DeadLetterNow):
        return Outcome("dead_letter", str(error)[:REASON_CHARACTERS_MAX])
    if isinstance(error, RetryLater):
        return Outcome("retry", str(error)[:REASON_CHARACTERS_MAX], error.delay)
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return Outcome("retry", reason[:REASON_CHARACTERS_MAX])


@dataclass(slots=True)
class Figures:
    """What a consumer has done so far, in messages."""

    received: int = 0
    acked: int = 0
    retried: int = 0
    #: Went to the dead letters, by the handler's word or after the last retry.
    dead: int = 0
    #: Given back at the end.
    released: int = 0
    renewed: int = 0
    #: Their lease had run out before they could be settled; they come again.
    lost: int = 0
