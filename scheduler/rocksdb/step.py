"""The RocksDB engine's step: the five stages over a timeline."""

from typing import TYPE_CHECKING

from queues.store.disk import Disk
from scheduler.engine.step import TimerStep
from scheduler.rocksdb.engine import RocksEngine

if TYPE_CHECKING:
    from queues.store.store import Store


class RocksStep(TimerStep):
    """The `wheel` group's work with RocksDB."""

    def __init__(
        self, store: "Store", *, disk: Disk | None = None, sync_beside: bool = True
    ) -> None:
        """`sync_beside`: checkpoints are synced on a thread of their own, not in the step."""
        super().__init__(store, RocksEngine(store, disk=disk, sync_beside=sync_beside))
