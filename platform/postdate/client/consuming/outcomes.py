"""An outcome is what a handler's end means for its message: done, later, never, or given back."""

from dataclasses import dataclass
from typing import Literal

from postdate.client.writing import Duration, write_duration

#: The server's bound for reasons.
REASON_CHARACTERS_MAX = 1000

Verb = Literal["ack", "retry", "dead_letter", "release"]


class RetryLater(Exception):
    """Raised by a handler: not now; try again after `delay`, or as the group's policy says."""

    #: How long to wait; None: as the group's policy says.
    delay: str | None = None

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason or "the handler asked for another attempt")
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
    text = _text_of(error)
    if isinstance(error, DeadLetterNow):
        return Outcome("dead_letter", _sendable(text)[:REASON_CHARACTERS_MAX])
    if isinstance(error, RetryLater):
        delay = None if error.delay is None else _sendable(error.delay)
        return Outcome("retry", _sendable(text)[:REASON_CHARACTERS_MAX], delay)
    reason = f"{type(error).__name__}: {text}".rstrip(": ")
    return Outcome("retry", _sendable(reason)[:REASON_CHARACTERS_MAX])


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 (`__str__` is the handler's, and may raise anything)
        return f"its text cannot be had: {type(failure).__name__}"


def _sendable(text: str) -> str:
    """The text with its lone surrogates spelt out: no UTF-8 holds them."""
    return text.encode("utf-8", "backslashreplace").decode()


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
