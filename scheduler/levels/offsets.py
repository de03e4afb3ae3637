"""The delay offsets: for each level, the first queue offset that still waits.

RocketMQ keeps them in `config/delayOffset.json` and goes on from there, and so hands over twice
or never when the file and the log disagree. Here they are read off the schedule table, which
settles in the same moment as the hand-over; the file follows for RocketMQ's tools and for an
export, and nothing starts from it.

Example: `{"offsetTable":{"1":4711,"3":2}}`.
"""

import logging
import threading
from pathlib import Path

from queues.store import Store
from queues.store.configfiles import load_with_backup, save_with_backup
from queues.store.disk import Disk
from queues.store.errors import ConfigCorrupt
from queues.store.names import SCHEDULE_TOPIC

logger = logging.getLogger(__name__)


class DelayOffsets:
    """The file of delay offsets; one object a process, for all its threads."""

    def __init__(self, store: Store, disk: Disk, path: Path) -> None:
        self._store = store
        self._disk = disk
        self._path = path
        self._mutex = threading.Lock()
        self._live: dict[int, int] = {}
        self._saved: dict[str, int] | None = None

    def live(self) -> dict[str, int]:
        """Level to the first offset that waits; it never falls, so each look goes on."""
        for queue_id in self._store.queue_ids(SCHEDULE_TOPIC):
            self._live[queue_id] = self._store.first_unsettled(
                SCHEDULE_TOPIC, queue_id, self._live.get(queue_id, 0)
            )
        return {str(queue_id + 1): offset for queue_id, offset in sorted(self._live.items())}

    def save(self) -> bool:
        """Write the file and its backup, atomically, if anything moved; whether it did."""
        with self._mutex:
            offsets = self.live()
            if offsets == self._saved or (self._saved is None and offsets == self._load()):
                return False
            self._disk.make_dirs(self._path.parent)
            save_with_backup(self._disk, self._path, {"offsetTable": offsets})
            self._saved = offsets
            return True

    def check(self) -> None:
        """Say where the file names an offset outside its queue; the table is gone on from."""
        for level, offset in self._load().items():
            bounds = self._store.queue_bounds(SCHEDULE_TOPIC, int(level) - 1)
            if not bounds.min_offset <= offset <= bounds.max_offset:
                logger.warning(
                    "delayOffset.json has level %s at %d, outside its queue [%d, %d); "
                    "it goes on at %d.",
                    level,
                    offset,
                    bounds.min_offset,
                    bounds.max_offset,
                    self._store.first_unsettled(SCHEDULE_TOPIC, int(level) - 1),
                )

    def _load(self) -> dict[str, int]:
        try:
            table = (load_with_backup(self._disk, self._path) or {}).get("offsetTable", {})
            return {str(int(level)): int(offset) for level, offset in table.items()}
        except ConfigCorrupt:
            logger.warning("delayOffset.json and its backup cannot be read; they are made anew.")
        except (AttributeError, TypeError, ValueError):
            logger.warning("delayOffset.json is not a table of offsets; it is made anew.")
        return {}
