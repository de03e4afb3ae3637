"""A wheel that nobody turns, told from its checkpoint."""

from typing import TYPE_CHECKING

from scheduler.engine.places import WHEEL_LOG
from scheduler.engine.report import TimerReport, resting_report
from scheduler.wheel.checkpoint import load_checkpoint

if TYPE_CHECKING:
    from queues.store.store import Store


def resting_wheel(store: "Store", now_ms: int) -> TimerReport | None:
    """What the checkpoint tells; None when there is no wheel."""
    checkpoint = load_checkpoint(store.disk, store.root)
    if checkpoint is None:
        return None
    names = [name for name in store.disk.list_names(store.root / WHEEL_LOG) if name.isdecimal()]
    files = {
        "window_ms": store.sizes.timer_precision_ms * store.sizes.timer_window_slots,
        "log_files": len(names),
        "log_begin": int(names[0]) if names else 0,
        "log_end": checkpoint.log_position,
    }
    return resting_report(
        store, "wheel", read_ms=checkpoint.read_ms, queue_offset=checkpoint.queue_offset,
        written_ms=checkpoint.written_ms, now_ms=now_ms, files=files,
    )  # fmt: skip
