"""The small files: ``checkpoint``, the JSON files under ``config/``, and ``delayOffset.json``.

RocketMQ keeps a file ``name`` and its backup ``name.bak``, both in fastjson's dialect. An empty
file is one that was never saved. A level's delivery offset must lie within its queue: one beyond
its end stands still for ever (RocketMQ #1869).
"""

from pathlib import Path
from typing import Any, Final

from queues.store.checkpoint import CHECKPOINT_BYTES, StoreCheckpoint
from queues.store.configfiles import read_json_lenient
from queues.store.errors import ConfigCorrupt
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.inspection.units import QueueFiles
from queues.store.names import SCHEDULE_TOPIC

#: Files under ``config/`` that are not JSON.
_BINARY: Final = frozenset({"timercheck", "timercheck.bak"})
_DELAY_OFFSET: Final = "delayOffset.json"
#: How the names of saved files end; a broker may have directories beside them.
_SAVED: Final = (".json", ".json.bak")


def read_configs(layout: Layout, report: Report | None = None) -> dict[str, Any]:
    """Return the values of the JSON files under ``config/``; damaged ones are taken down."""
    values: dict[str, Any] = {}
    directory = layout.root / "config"
    for name in layout.names(directory):
        path = directory / name
        if report is not None and name.endswith(_SAVED):
            layout.check_file(path, report)
        if name in _BINARY or layout.names(path):
            continue
        data = _bytes_of(layout, path)
        if not data or not data.strip(b"\0 \t\r\n"):
            continue
        try:
            values[name] = read_json_lenient(data)
        except ConfigCorrupt as error:
            if report is not None:
                report.add(path, None, f"it is not JSON: {error.reason}")
    return values


def read_checkpoint(layout: Layout) -> StoreCheckpoint | None:
    """Return what ``checkpoint`` says; None when it is missing."""
    data = _bytes_of(layout, layout.root / "checkpoint")
    return None if data is None else StoreCheckpoint.decode(data)


def check_configs(layout: Layout, queues: QueueFiles, report: Report) -> None:
    """Take down what is wrong with the small files."""
    values = read_configs(layout, report)
    report.counts["config_files"] += len(values)
    path = layout.root / "checkpoint"
    layout.check_file(path, report)
    data = _bytes_of(layout, path)
    if data is not None and len(data) != CHECKPOINT_BYTES:
        report.add(path, None, f"it has {len(data)} bytes, not {CHECKPOINT_BYTES}")
    for level, offset in delay_offsets(values.get(_DELAY_OFFSET)).items():
        _, end = queues.bounds(SCHEDULE_TOPIC, level - 1)
        if offset > end:
            reason = f"level {level} stands at {offset}, its queue ends at {end}"
            report.add(layout.root / "config" / _DELAY_OFFSET, None, reason)


def delay_offsets(value: Any) -> dict[int, int]:
    """Return the next queue offset by level of a ``delayOffset.json``."""
    table = value.get("offsetTable") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        return {}
    return {
        int(level): offset
        for level, offset in table.items()
        if str(level).isdigit() and isinstance(offset, int)
    }


def _bytes_of(layout: Layout, path: Path) -> bytes | None:
    try:
        return layout.disk.read_bytes(path)
    except (FileNotFoundError, IsADirectoryError):
        return None
