"""Resizing the timer: another slot width or wheel span for a store that exists.

Both lie in `postdate/format.json`, because every process has to go by the same. They may be changed
while nobody has the store open: what rests on them, the engines' files, is derived and is begun
anew by the next holder. (`TIMER_OUT_MS` of records that wait keeps the old rounding; only RocketMQ
reads it. The exact due time is in `PD_DUE`.)
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from queues.store.disk import Disk
from queues.store.errors import StoreError, StoreUnsupported
from queues.store.opening import FORMAT, load_sizes, tell_sizes
from queues.store.settings import Sizes


class TimerSizesDiffer(StoreUnsupported):
    """The timer's files were made for another slot width or wheel span than the settings say."""

    hint = (
        "Set POSTDATE_TIMER_PRECISION and POSTDATE_TIMER_WINDOW back, or stop Postdate, run "
        "`manage.py timer_rebuild`, and start it again."
    )


class StoreInUse(StoreError):
    """Somebody has the store open."""

    hint = "Stop Postdate first: every process that has the store open goes by its sizes."


def kept_sizes(disk: Disk, root: Path) -> Sizes | None:
    """The sizes of the store at `root`; None where there is none yet."""
    return load_sizes(disk, root, Sizes()) if disk.exists(root / FORMAT) else None


def check_timer_sizes(disk: Disk, root: Path, wanted: Sizes) -> None:
    """Raise `TimerSizesDiffer` when the store's timer is of another size than wanted."""
    kept = kept_sizes(disk, root)
    if kept is not None and _timer_sizes(kept) != _timer_sizes(wanted):
        precision_ms, window_slots = _timer_sizes(kept)
        raise TimerSizesDiffer(
            precision_ms=precision_ms,
            window_ms=precision_ms * window_slots,
            wanted_precision_ms=wanted.timer_precision_ms,
            wanted_window_ms=wanted.timer_precision_ms * wanted.timer_window_slots,
        )


def resize_timer(
    disk: Disk, root: Path, wanted: Sizes, remove_files: Callable[[], None]
) -> tuple[Sizes, Sizes]:
    """Give the store at `root` the timer sizes that are wanted; the sizes before and after.

    `remove_files` removes what rests on them; it is called before the new sizes are noted, so that
    a stop in between leaves files to be rebuilt and no files of another size.

    Raises `StoreInUse` while anybody has it open.
    """
    lock = disk.lock(root / "postdate" / "open")
    broker_lock = disk.broker_lock(root / "lock")
    try:
        if not lock.try_own() or not broker_lock.try_share():
            raise StoreInUse(path=root)
        before = load_sizes(disk, root, Sizes())
        precision_ms, window_slots = _timer_sizes(wanted)
        after = replace(before, timer_precision_ms=precision_ms, timer_window_slots=window_slots)
        remove_files()
        disk.replace(root / FORMAT, json.dumps(tell_sizes(after), indent=2).encode())
        return before, after
    finally:
        broker_lock.close()
        lock.close()


def _timer_sizes(sizes: Sizes) -> tuple[int, int]:
    return sizes.timer_precision_ms, sizes.timer_window_slots
