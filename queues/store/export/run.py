"""An export: one walk over the log as it stands, everything live appended again to a fresh one."""

from collections.abc import Callable
from pathlib import Path

from queues.store.disk import Disk
from queues.store.errors import StoreError
from queues.store.export.brokerfiles import broker_precision_ms, write_broker_files
from queues.store.export.destination import Destination, Exported
from queues.store.export.freshlog import FreshLog, timed_record
from queues.store.export.liveness import Found, Liveness
from queues.store.export.source import Source
from queues.store.inspection.findings import Report
from queues.store.inspection.log import LogWalk
from queues.store.inspection.runs import Run
from queues.store.names import TIMER_TOPIC
from queues.store.record import STORE_MS_AT

_TIMER = TIMER_TOPIC.encode()

#: Told, after each run of records: bytes of the log walked, and bytes in all.
Progress = Callable[[int, int], None]


class DirectoryNotEmpty(StoreError):
    """An export needs a directory of its own."""

    hint = "Name an empty directory, or one that does not exist yet."


class DirectoryInsideStore(StoreError):
    """An export may not lie inside the store that it is made of."""

    hint = "Name a directory elsewhere."


class DirectoryUnusable(StoreError):
    """The directory of an export cannot be made or written."""

    hint = "Name a directory that may be made, with a parent that may be written."


def check_target(root: Path, target: Path) -> None:
    """Raise what `export_store` would of a directory, before anything is made."""
    if target.resolve().is_relative_to(root.resolve()):
        raise DirectoryInsideStore(path=target)
    try:
        names = Disk().list_names(target)
    except OSError as error:
        raise DirectoryUnusable(path=target, reason=error.strerror) from error
    if names:
        raise DirectoryNotEmpty(path=target)


def export_store(
    root: Path, target: Path, destination: Destination, progress: Progress = lambda *_: None
) -> Exported:
    """Make of the store at `root` a directory that a RocketMQ broker opens.

    The platform may go on meanwhile: what goes along is the store as it is when this begins.
    Memory is bounded. Raises ``NotAStore``, ``DirectoryNotEmpty``, ``DirectoryInsideStore``,
    ``DirectoryUnusable``, ``DiskFull``; what was written until then lacks its ``broker.conf``.
    """
    check_target(root, target)
    try:
        Disk().make_dirs(target / "commitlog")
    except OSError as error:
        raise DirectoryUnusable(path=target, reason=error.strerror) from error
    return export_source(Source(root), target, destination, progress)


def export_source(
    source: Source, target: Path, destination: Destination, progress: Progress = lambda *_: None
) -> Exported:
    """Do it with a store that is held still already."""
    disk, told, report = Disk(), Exported(), Report()
    liveness = Liveness(source, destination, told)
    log = FreshLog(disk, target / "commitlog")
    slots_differ = broker_precision_ms(destination.precision_ms) != destination.precision_ms
    walk, first = LogWalk(source.layout, report), source.layout.log_min
    try:
        for run in walk.runs():
            _append_live(run, liveness, log, destination, slots_differ=slots_differ)
            progress(run.base + run.end - first, source.end - first)
    finally:
        log.close()
    write_broker_files(disk, target, destination, liveness.lines)
    told.damaged, told.log_bytes = len(walk.damaged), log.end
    return told


def _append_live(
    run: Run, liveness: Liveness, log: FreshLog, destination: Destination, *, slots_differ: bool
) -> None:
    """Append again what is live of a run of records."""
    view, precision_ms = run.view, broker_precision_ms(destination.precision_ms)
    for at, size, queue_id, queue_offset, topic, properties in zip(
        run.ats,
        run.sizes,
        run.queue_ids,
        run.queue_offsets,
        run.topics,
        run.properties,
        strict=True,
    ):
        store_ms = int.from_bytes(view[at + STORE_MS_AT : at + STORE_MS_AT + 8], "big")
        kept = liveness.place(Found(topic, queue_id, queue_offset, store_ms, properties))
        if kept is None:
            continue
        raw = view[at : at + size]
        if kept.as_timed or (slots_differ and topic == _TIMER):
            log.append(timed_record(raw.tobytes(), precision_ms), kept.queue_offset)
        else:
            log.append(bytearray(raw), kept.queue_offset)
