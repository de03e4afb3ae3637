"""The lateness meter: how late the latest hand-overs were.

It keeps the newest samples in a ring and answers with quantiles; a large batch leaves a sample of
itself, so that noting costs the same however many were handed over.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.limits import LATENESS_SAMPLES

#: A batch leaves at most this many samples.
_BATCH_SAMPLES = 256


@dataclass(frozen=True, slots=True)
class Lateness:
    """Quantiles of recent lateness, in ms."""

    p50_ms: int
    p99_ms: int
    max_ms: int


class LatenessMeter:
    """A ring of recent lateness samples."""

    def __init__(self) -> None:
        self._samples = np.zeros(LATENESS_SAMPLES, dtype=np.int64)
        self._noted = 0

    def note(self, due_ms: npt.NDArray[np.int64], delivered_ms: int) -> None:
        """Take in what was handed over at `delivered_ms`."""
        if len(due_ms) == 1:
            late = max(delivered_ms - int(due_ms[0]), 0)
            self._samples[self._noted % LATENESS_SAMPLES] = late
            self._noted += 1
            return
        if len(due_ms) > _BATCH_SAMPLES:
            due_ms = due_ms[:: len(due_ms) // _BATCH_SAMPLES + 1]
        late_ms = np.maximum(delivered_ms - due_ms, 0)
        at = (self._noted + np.arange(len(late_ms))) % LATENESS_SAMPLES
        self._samples[at] = late_ms
        self._noted += len(late_ms)

    def read(self) -> Lateness | None:
        """The quantiles; None before the first hand-over."""
        samples = self._samples[: self._noted]
        if not len(samples):
            return None
        p50, p99 = np.percentile(samples, (50, 99), method="higher")
        return Lateness(p50_ms=int(p50), p99_ms=int(p99), max_ms=int(samples.max()))
