"""What a loop sleeps on: until a time, or until something sooner arrives.

The order of calls makes a lost wake-up impossible: `watch` (from here on every arrival counts),
then the step, then `sleep` with the time that the step named. An arrival between `watch` and
`sleep` makes `sleep` return at once.
"""

import threading
from typing import Protocol

from queues.store import Store

#: A wake time that every arrival is sooner than.
_NEVER_MS = (1 << 62) - 1


class Wake(Protocol):
    """What ends a loop's sleep."""

    def watch(self) -> None:
        """Begin to count arrivals."""

    def sleep(self, until_ms: int, timeout_s: float) -> None:
        """Sleep `timeout_s` seconds, but not past an arrival that is due before `until_ms`."""


class DoorbellWake:
    """Sleeps on the store's doorbell for one of its loops."""

    def __init__(self, store: Store, loop: str) -> None:
        self._store = store
        self._loop = loop
        self._bell = store.loop_bell(loop)
        self._seen = self._bell.value()

    def watch(self) -> None:
        """Ask to be rung for every arrival."""
        self._store.note_wake(self._loop, _NEVER_MS)
        self._seen = self._bell.value()

    def sleep(self, until_ms: int, timeout_s: float) -> None:
        """Ask to be rung for arrivals before `until_ms` only, and sleep."""
        self._store.note_wake(self._loop, until_ms)
        self._bell.wait(self._seen, timeout_s)


class TimedWake:
    """Sleeps for the time alone; a stop ends it."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped

    def watch(self) -> None:
        """Nothing arrives here."""

    def sleep(self, until_ms: int, timeout_s: float) -> None:  # noqa: ARG002 - only time counts
        """Sleep `timeout_s` seconds."""
        self._stopped.wait(timeout_s)
