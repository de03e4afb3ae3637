"""Which consumers were seen, and when: noted in memory, written to their rows a little later.

A receive pays one look into a dictionary. A timer's thread does the writing, as for the last use of
API keys; what a killed process had not written is lost, and seen again at the next receive.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import Error as DatabaseFailure
from django.db import connection

from queues.limits import CONSUMER_SEEN_PAUSE_MS, CONSUMERS_SEEN_KEPT_MS, CONSUMERS_SEEN_MAX
from queues.models import SeenConsumer
from queues.services.keyuse import start_timer

logger = logging.getLogger(__name__)

#: Group, consumer and key.
Who = tuple[str, str, str]
_ROWS_AT_ONCE = 500


class Sightings:
    """The consumers that this process has seen."""

    def __init__(self, start: Callable[[Callable[[], None]], None] = start_timer) -> None:
        self._start = start
        self._noted: dict[Who, int] = {}
        self._unwritten: dict[Who, int] = {}
        self._mutex = threading.Lock()

    def note(self, group: str, consumer_id: str | None, by: str, now_ms: int) -> None:
        """Remember that a consumer asks for messages now."""
        who = (group, consumer_id or "", by)
        if now_ms - self._noted.get(who, 0) < CONSUMER_SEEN_PAUSE_MS:
            return
        with self._mutex:
            if len(self._noted) >= CONSUMERS_SEEN_MAX:
                self._noted.clear()
            if len(self._unwritten) >= CONSUMERS_SEEN_MAX:
                return
            first = not self._unwritten
            self._noted[who] = self._unwritten[who] = now_ms
        if first:
            self._start(self._write_and_close)

    def write(self) -> None:
        """Write who was noted since the last time."""
        with self._mutex:
            seen, self._unwritten = self._unwritten, {}
        SeenConsumer.objects.bulk_create(
            [
                SeenConsumer(
                    group=group,
                    consumer_id=consumer_id,
                    by=by,
                    seen_at=datetime.fromtimestamp(seen_ms / 1000, UTC),
                )
                for (group, consumer_id, by), seen_ms in seen.items()
            ],
            batch_size=_ROWS_AT_ONCE,
            update_conflicts=True,
            unique_fields=["group", "consumer_id", "by"],
            update_fields=["seen_at"],
        )

    def _write_and_close(self) -> None:
        try:
            self.write()
        except DatabaseFailure:
            logger.warning("Which consumers were seen could not be written.", exc_info=True)
        finally:
            connection.close()


#: The sightings of this process.
sightings = Sightings()


def forget_sightings(now_ms: int) -> int:
    """Forget who was not seen for a day, and the oldest of too many; returns how many."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    old = SeenConsumer.objects.filter(
        seen_at__lt=now - timedelta(milliseconds=CONSUMERS_SEEN_KEPT_MS)
    )
    forgotten, _ = old.delete()
    last = SeenConsumer.objects.order_by("-seen_at")[CONSUMERS_SEEN_MAX : CONSUMERS_SEEN_MAX + 1]
    for row in last:
        more, _ = SeenConsumer.objects.filter(seen_at__lte=row.seen_at).delete()
        forgotten += more
    return forgotten
