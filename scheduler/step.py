"""A step: the bounded, repeatable piece of work that a loop runs over and over.

Time is an argument. A step never sleeps and never asks for the time; the loop does both.
"""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Advanced:
    """What one step did."""

    #: Messages that reached their next place.
    moved: int
    #: Whether there is more to do at once.
    more: bool
    #: Wall-clock time (ms) at which there is something to do again; None when nothing waits.
    next_due_ms: int | None


class Step(Protocol):
    """One group's work."""

    def open(self) -> None:
        """Take the work up: called with the lease held, before the first `advance`."""

    def advance(self, now_ms: int) -> Advanced:
        """Do a bounded piece of what is due at `now_ms`."""

    def close(self) -> None:
        """Put the work down for the next holder."""

    def report(self) -> dict[str, Any]:
        """What a console shows of it, as JSON values; asked once a second, so it must be cheap.

        `behind_ms`, `lateness_p50_ms` and `lateness_p99_ms` have places of their own in the status.
        """
