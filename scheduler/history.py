"""The history is a ring of the store's counters, one sample every five seconds for an hour.

It draws the console's curves. A mapped file of 64 KiB, `postdate/leases/history`, of native 8-byte
words; a sample takes 8 of them and stands at (its time / 5 s) modulo 1,024.

=====  =====================================================
word   what
=====  =====================================================
0      when it was taken, wall time in ms; 0: being written
1      messages sent, of every kind
2      messages handed over
3      messages cancelled
4      messages parked
5      lateness of all hand-overs together, ms
6      hand-overs more than 100 ms late
7      messages sent into the schedule
=====  =====================================================

The invariant: a reader believes a sample only if its time is the one that its place is for. It is
for eyes only: deleted, it begins anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from queues.store import Store
from queues.store.disk import Disk, Mapped

EVERY_MS = 5_000
SAMPLES = 1_024
_WORDS = 8
_SIZE_BYTES = SAMPLES * _WORDS * 8


@dataclass(frozen=True, slots=True)
class Rates:
    """What happened in one span of time, a second on the average."""

    #: The span's end, ms.
    at_ms: int
    sent: float
    handed_over: float
    cancelled: float
    #: Mean lateness of what was handed over, ms; None where nothing was.
    lateness_ms: float | None


class History:
    """The ring as its one writer, housekeeping, sees it."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._mapped = disk.map(path, size_bytes=_SIZE_BYTES, create=True)

    def note(self, counters: Mapping[str, int], now_ms: int) -> None:
        """Keep a sample."""
        at_ms = now_ms // EVERY_MS * EVERY_MS
        first = at_ms // EVERY_MS % SAMPLES * _WORDS
        self._mapped.set_word(first, 0)
        for place, value in enumerate(_values(counters), start=1):
            self._mapped.set_word(first + place, value)
        self._mapped.set_word(first, at_ms)


class HistoryDuty:
    """Housekeeping's duty to keep samples; the file is opened with the first one."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store, self._path = store, path
        self._history: History | None = None

    def __call__(self, now_ms: int) -> None:
        if self._history is None:
            self._history = History(self._store.disk, self._path)
        self._history.note(self._store.counters(), now_ms)


def _values(counters: Mapping[str, int]) -> list[int]:
    scheduled = counters["sent_level"] + counters["sent_timed"]
    return [
        counters["sent"] + scheduled,
        counters["handed_over"],
        counters["cancelled"],
        counters["parked"],
        counters["lateness_ms_sum"],
        counters["late_over_100ms"],
        scheduled,
    ]


def read_rates(disk: Disk, path: Path, now_ms: int, *, minutes: int, step_ms: int) -> list[Rates]:
    """The last minutes in spans of `step_ms`, oldest first; spans without two samples left out."""
    try:
        mapped: Mapped = disk.map(path, size_bytes=_SIZE_BYTES, write=False)
    except FileNotFoundError:
        return []
    try:
        ring = np.frombuffer(bytes(mapped.memory), dtype=np.int64).reshape(SAMPLES, _WORDS)
    finally:
        mapped.close()
    fresh = ring[(ring[:, 0] > now_ms - minutes * 60_000 - step_ms) & (ring[:, 0] <= now_ms)]
    samples = fresh[np.argsort(fresh[:, 0])]
    found: list[Rates] = []
    before: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
    for sample in samples:
        if before is None:
            before = sample
        elif sample[0] - before[0] >= step_ms:
            found.append(_rates(before.tolist(), sample.tolist()))
            before = sample
    return found


def _rates(before: list[int], after: list[int]) -> Rates:
    change = [now - then for now, then in zip(after, before, strict=True)]
    span_s = change[0] / 1000
    return Rates(
        at_ms=after[0],
        sent=max(0, change[1]) / span_s,
        handed_over=max(0, change[2]) / span_s,
        cancelled=max(0, change[3]) / span_s,
        lateness_ms=change[5] / change[2] if change[2] > 0 else None,
    )
