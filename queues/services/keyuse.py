"""When each API key was last used: noted in memory, written to its row a little later.

A request that is let in pays one look into a dictionary. A timer's thread does the writing, so that
no request ever waits for the database because of it; what a killed process had not written is lost.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from django.db import Error as DatabaseFailure
from django.db import connection

from queues.limits import LAST_USED_PAUSE_MS
from queues.models import ApiKey

logger = logging.getLogger(__name__)

#: How long a use waits for others to be written together with it.
WRITE_AFTER_S = 5.0


def start_timer(work: Callable[[], None]) -> None:
    """Do the work in a while, in a thread that does not hold up the end of the process."""
    timer = threading.Timer(WRITE_AFTER_S, work)
    timer.daemon = True
    timer.start()


class KeyUse:
    """The uses that this process has seen."""

    def __init__(self, start: Callable[[Callable[[], None]], None] = start_timer) -> None:
        self._start = start
        self._noted: dict[int, int] = {}
        self._unwritten: dict[int, int] = {}
        self._mutex = threading.Lock()

    def note(self, key_id: int, now_ms: int) -> None:
        """Remember that the key was used now."""
        if now_ms - self._noted.get(key_id, 0) < LAST_USED_PAUSE_MS:
            return
        with self._mutex:
            first = not self._unwritten
            self._noted[key_id] = self._unwritten[key_id] = now_ms
        if first:
            self._start(self._write_and_close)

    def write(self) -> None:
        """Write what was noted since the last time."""
        with self._mutex:
            uses, self._unwritten = self._unwritten, {}
        for key_id, used_ms in uses.items():
            used_at = datetime.fromtimestamp(used_ms / 1000, UTC)
            ApiKey.objects.filter(pk=key_id).update(last_used_at=used_at)

    def _write_and_close(self) -> None:
        try:
            self.write()
        except DatabaseFailure:
            logger.warning("The last use of API keys could not be written.", exc_info=True)
        finally:
            connection.close()


#: The uses of this process.
uses = KeyUse()
