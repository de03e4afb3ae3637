"""Quotas are what one API key may use: requests and messages a second, messages a day.

A message is one that is sent; each item of a batch is one. `docs/operating/keys.md` says what the
limits mean.
"""

from dataclasses import dataclass
from functools import cached_property

from queues.store.allowances import Bucket, Daily, Limit

#: A bucket holds what so many seconds bring, if nothing else is said.
BURST_S_DEFAULT = 10
_REQUESTS_WORD, _MESSAGES_WORD = 0, 1


@dataclass(frozen=True)
class Quotas:
    """The limits of a key; None: no limit."""

    requests_per_second: int | None = None
    messages_per_second: int | None = None
    messages_per_day: int | None = None
    #: So many seconds' worth may be used at once after a rest.
    burst_seconds: int = BURST_S_DEFAULT

    @cached_property
    def of_requests(self) -> tuple[Limit, ...]:
        """What every request uses."""
        return self._bucket("requests", _REQUESTS_WORD, self.requests_per_second)

    @cached_property
    def of_messages(self) -> tuple[Limit, ...]:
        """What every message that is sent uses."""
        day = self.messages_per_day
        daily = () if day is None else (Daily("messages-a-day", day),)
        return (*self._bucket("messages", _MESSAGES_WORD, self.messages_per_second), *daily)

    def _bucket(self, name: str, word: int, per_second: int | None) -> tuple[Limit, ...]:
        if per_second is None:
            return ()
        return (Bucket(name, word, per_second, per_second * self.burst_seconds),)


UNLIMITED = Quotas()
