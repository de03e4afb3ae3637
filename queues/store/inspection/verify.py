"""Verifying a whole store: one walk over the log, and everything derived held against it."""

from pathlib import Path

import numpy as np

from queues.store.disk import Disk
from queues.store.inspection.chunks import Chunk, QueueNumbers, chunks
from queues.store.inspection.configs import check_configs
from queues.store.inspection.entries import EntryCheck, check_chains, open_indexes
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout, check_directories, check_segments, find_layout
from queues.store.inspection.log import LogWalk
from queues.store.inspection.ownfiles import check_own_files
from queues.store.inspection.schedules import ScheduleCheck
from queues.store.inspection.timer import TimerFiles, check_timer, check_timer_records
from queues.store.inspection.units import QueueFiles, UnitCheck
from queues.store.names import TIMER_TOPIC


def verify_store(root: Path, disk: Disk | None = None) -> tuple[Layout, Report]:
    """Look at every byte of a store that means something, and return what was found.

    Raises ``NotAStore``. Nothing is written, created or locked.
    """
    layout = find_layout(disk or Disk(), root)
    report = Report()
    check_segments(layout, report)
    check_directories(layout, report)
    check_own_files(layout, report)
    queues = QueueFiles(layout)
    try:
        queues.check(report)
        _verify_records(layout, queues, report)
        check_configs(layout, queues, report)
    finally:
        queues.close()
    report.counts["segments"] = len(layout.segments)
    if report.counts["undispatched"]:
        report.notes.append(f"{report.counts['undispatched']} records have no unit yet")
    return layout, report


def _verify_records(layout: Layout, queues: QueueFiles, report: Report) -> None:
    numbers = QueueNumbers()
    indexes = open_indexes(layout, report)
    for index in indexes:
        check_chains(index, report)
    units = UnitCheck(layout, queues, numbers, report)
    entries = EntryCheck(layout, indexes, report)
    schedules = ScheduleCheck(layout, numbers, report)
    timer = TimerFiles(layout)
    check_timer(timer, layout, report)
    walk = LogWalk(layout, report)
    before = layout.log_min
    for chunk in chunks(walk, numbers):
        report.counts["records"] += len(chunk.offsets)
        units.take(chunk)
        entries.take(chunk)
        schedules.take(chunk)
        end = int(chunk.offsets[-1]) + 1
        _check_timer(timer, numbers, chunk, (before, end), report)
        before = end
    _judge_tail(layout, walk, units, report)
    units.finish(walk)
    entries.finish(walk)
    schedules.finish()
    report.counts["log_bytes"] = walk.end - layout.log_min


def _check_timer(
    timer: TimerFiles,
    numbers: QueueNumbers,
    chunk: Chunk,
    log_range: tuple[int, int],
    report: Report,
) -> None:
    if timer.log:
        timed = [number for number, name in enumerate(numbers.names) if name == (TIMER_TOPIC, 0)]
        here = np.isin(chunk.queues, timed)
        check_timer_records(timer, chunk.offsets[here], chunk.sizes[here], log_range, report)


def _judge_tail(layout: Layout, walk: LogWalk, units: UnitCheck, report: Report) -> None:
    """An unfinished end is what a killed broker leaves, unless a unit knows it as a record."""
    tail = walk.tail
    if tail is None:
        return
    if layout.closed or units.leads_to(tail.start, tail.end):
        walk.take_tail()
    else:
        report.notes.append(f"{tail.path} at {tail.at}: an unfinished write ({tail.reason})")
