"""A timeline that nobody has open, told from its checkpoint."""

from typing import TYPE_CHECKING

from scheduler.engine.places import TIMELINE
from scheduler.engine.report import TimerReport, resting_report
from scheduler.rocksdb.timeline import read_only_checkpoint

if TYPE_CHECKING:
    from queues.store.store import Store


def resting_timeline(store: "Store", now_ms: int) -> TimerReport | None:
    """What the checkpoint tells; None when there is no timeline."""
    folder = store.root / TIMELINE
    checkpoint = read_only_checkpoint(folder)
    if checkpoint is None:
        return None
    names = store.disk.list_names(folder)
    return resting_report(
        store, "rocksdb", read_ms=checkpoint.settled_ms, queue_offset=checkpoint.queue_offset,
        written_ms=checkpoint.written_ms, now_ms=now_ms,
        files={"timeline_bytes": sum(store.disk.size(folder / name) for name in names)},
    )  # fmt: skip
