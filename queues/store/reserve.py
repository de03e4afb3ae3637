"""The reserve: what is kept back of the disk, so that a full one refuses sends and nothing else.

Two things are kept: a spare segment (``postdate/spare``), which becomes the next segment when no
new one can be allocated, and a ballast file (``postdate/ballast``) that is deleted to make room for
everything else. Only privileged writes (hand-overs, cancels, retries, acks) may use them. While the
spare is missing and cannot be made again, sends are refused with `StoreFull`.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from queues.store.clock import Clock
from queues.store.commitlog import CommitLog
from queues.store.disk import Disk
from queues.store.errors import DiskFull, StoreFull

Result = TypeVar("Result")

#: How often the reserve is looked at while it is whole, and while it is not.
_LOOK_MS = 1000


class Reserve:
    """The spare segment and the ballast of one store."""

    def __init__(
        self, disk: Disk, clock: Clock, log: CommitLog, ballast: Path, ballast_bytes: int
    ) -> None:
        self._disk, self._clock, self._log = disk, clock, log
        self._ballast, self._ballast_bytes = ballast, ballast_bytes
        self._mutex = threading.Lock()
        self._whole = False
        self._looked_ms: int | None = None

    def refill(self) -> bool:
        """Make what is missing of the reserve; True when it is whole."""
        with self._mutex:
            return self._refill()

    def _refill(self) -> bool:
        self._whole = self._log.keep_spare() and self._keep_ballast()
        # Noted last: until then whoever asks waits for this look instead of taking an older one.
        self._looked_ms = self._clock.monotonic_ms()
        return self._whole

    def _keep_ballast(self) -> bool:
        if self._disk.exists(self._ballast):
            return True
        try:
            self._disk.create_whole(self._ballast, self._ballast_bytes)
        except DiskFull:
            return False
        return True

    def whole(self) -> bool:
        """Whether sends may go on, by a look that is at most a second old."""
        if self._is_stale():
            with self._mutex:
                if self._is_stale():
                    self._refill()
        return self._whole

    def _is_stale(self) -> bool:
        looked_ms = self._looked_ms
        return looked_ms is None or self._clock.monotonic_ms() - looked_ms >= _LOOK_MS

    def with_room(self, make_room: Callable[[], Result], *, privileged: bool) -> Result:
        """Run step 0 of a write; a privileged one falls back on the ballast."""
        if not privileged:
            if not self.whole():
                raise StoreFull
            try:
                return make_room()
            except DiskFull as error:
                self._whole = False
                raise StoreFull from error
        try:
            return make_room()
        except DiskFull:
            self._disk.unlink(self._ballast)
            self._whole = False
            return make_room()
