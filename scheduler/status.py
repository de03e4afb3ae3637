"""The status page: what a loop's holder tells other processes about itself, once a second.

A mapped file of 4 KiB beside the lease, `<group>.status`; the standby has `<group>.standby.status`.

=====  ==========================================================================
byte   what
=====  ==========================================================================
0      sequence (native 8 bytes): odd while the page is being written
8      monotonic time of the writing, ms: it is one clock for the whole machine
16     length of the text; 0 when nobody holds the lease
24     the text: JSON, the fields of `LoopStatus`
=====  ==========================================================================

The invariant: a reader that finds the same even sequence before and after has one whole status.
Whether a holder lives is judged by the age of its status, never by its process id.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from queues.store.disk import Disk, Mapped
from scheduler.limits import STATUS_FRESH_MS

PAGE_BYTES = 4096
_TEXT_AT = 24
_SEQUENCE, _WRITTEN, _LENGTH = 0, 1, 2
_READ_TRIES = 8


@dataclass(frozen=True, slots=True)
class LoopStatus:
    """One loop, as its holder saw it last."""

    #: The group: `levels`, `wheel`, `housekeeping`.
    group: str
    #: The name of the process that holds the lease.
    holder: str
    #: Its process id, for the operator's eyes.
    process_id: int
    #: Wall-clock time since when it holds the lease, ms.
    since_ms: int
    #: Monotonic time at which a standby may take over, ms.
    term_ends_monotonic_ms: int = 0
    #: Wall-clock time of the last step, ms; None before the first.
    last_step_ms: int | None = None
    #: Steps in the last second.
    steps_per_second: float = 0.0
    #: Messages handed over in the last second.
    moved_per_second: float = 0.0
    #: Messages handed over since the lease was taken.
    moved: int = 0
    #: When there is something to do next, ms; None when nothing waits.
    next_due_ms: int | None = None
    #: How far the loop is behind what is due, ms.
    behind_ms: int = 0
    #: Lateness of recent hand-overs, ms; None before the first.
    lateness_p50_ms: int | None = None
    lateness_p99_ms: int | None = None
    #: Steps that failed since the lease was taken, in a row, and the last reason.
    failures: int = 0
    failures_in_a_row: int = 0
    last_error: str | None = None
    #: Steps of the wall clock noticed by this holder, and the last one.
    clock_steps: int = 0
    clock_step_ms: int | None = None
    clock_step_at_ms: int | None = None
    #: What the step itself reports.
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def stuck(self) -> bool:
        """Whether the loop fails again and again."""
        return self.failures_in_a_row > 1


class StatusPage:
    """One status page, written by the holder alone."""

    def __init__(self, disk: Disk, path: Path) -> None:
        disk.make_dirs(path.parent)
        self._mapped = disk.map(path, size_bytes=PAGE_BYTES, create=True)

    def write(self, status: LoopStatus, monotonic_ms: int) -> None:
        """Replace the status."""
        text = json.dumps(asdict(status), separators=(",", ":")).encode()
        if len(text) > PAGE_BYTES - _TEXT_AT:
            trimmed = asdict(status) | {"detail": {}, "last_error": (status.last_error or "")[:500]}
            text = json.dumps(trimmed, separators=(",", ":")).encode()
        self._put(text, monotonic_ms)

    def clear(self, monotonic_ms: int) -> None:
        """Say that nobody holds the lease."""
        self._put(b"", monotonic_ms)

    def _put(self, text: bytes, monotonic_ms: int) -> None:
        page, sequence = self._mapped, self._mapped.words[_SEQUENCE] | 1
        page.set_word(_SEQUENCE, sequence)
        page.set_word(_WRITTEN, monotonic_ms)
        page.set_word(_LENGTH, len(text))
        page.put(_TEXT_AT, text)
        page.set_word(_SEQUENCE, sequence + 1)

    def close(self) -> None:
        """Drop the mapping."""
        self._mapped.close()


def read_status(disk: Disk, path: Path, monotonic_ms: int | None = None) -> LoopStatus | None:
    """The status in a page; None when nobody holds the lease.

    With the time given also None when the status is stale: its writer died or hangs.
    """
    try:
        mapped = disk.map(path, size_bytes=PAGE_BYTES, write=False)
    except FileNotFoundError:
        return None
    try:
        written_ms, text = _read(mapped)
    finally:
        mapped.close()
    if not text:
        return None
    if monotonic_ms is not None and not 0 <= monotonic_ms - written_ms <= STATUS_FRESH_MS:
        return None
    return LoopStatus(**json.loads(text))


def read_statuses(
    disk: Disk, directory: Path, groups: Iterable[str], monotonic_ms: int
) -> dict[str, LoopStatus | None]:
    """What the living holder of each group last said; None where there is no holder."""
    return {name: read_status(disk, directory / f"{name}.status", monotonic_ms) for name in groups}


def _read(page: Mapped) -> tuple[int, bytes]:
    """When the page was written and its text; no text if a writer died in the middle."""
    words = page.words
    for _ in range(_READ_TRIES):
        sequence, written_ms, length = words[_SEQUENCE], words[_WRITTEN], words[_LENGTH]
        text = bytes(page.memory[_TEXT_AT : _TEXT_AT + max(0, min(length, PAGE_BYTES))])
        if sequence % 2 == 0 and words[_SEQUENCE] == sequence:
            return written_ms, text
    return written_ms, b""
