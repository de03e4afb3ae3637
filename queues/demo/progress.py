"""Progress and summary as text: a line that rewrites itself on a terminal, many lines elsewhere."""

from typing import TextIO

from queues.demo.run import Outcome, Progress

#: Without a terminal, a line at most this often.
PLAIN_EVERY_S = 2.0


class ProgressLine:
    """The line that says how far a run is."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rewrites = out.isatty()
        self._next_plain_s = 0.0

    def show(self, progress: Progress) -> None:
        if self._rewrites:
            self._out.write(f"\r\x1b[2K{progress_text(progress)}")
        elif progress.elapsed_s >= self._next_plain_s:
            self._next_plain_s = progress.elapsed_s + PLAIN_EVERY_S
            self._out.write(f"{progress_text(progress)}\n")
        self._out.flush()

    def end(self) -> None:
        if self._rewrites:
            self._out.write("\n")
            self._out.flush()


def progress_text(progress: Progress) -> str:
    """One line: `4.5 s  posted 9,100/10,000  cancelled 812  closed 233  waiting 8,055`."""
    summary = progress.summary
    text = (
        f"{progress.elapsed_s:5.1f} s  posted {summary.accepted:,}/{progress.planned:,}"
        f"  cancelled {summary.cancelled:,}  closed {summary.closed:,}"
        f"  waiting {progress.waiting:,}"
    )
    if summary.lateness_p99_ms is not None:
        text += f"  lateness p99 {summary.lateness_p99_ms} ms"
    if faults := summary.faults - summary.lost:  # What waits is not lost before the end.
        text += f"  FAULTS {faults:,}"
    return text


def summary_text(outcome: Outcome) -> str:
    """The summary of a run: the counts, what must be nought, lateness, the verdict."""
    s = outcome.summary
    verdict = "every order is accounted for" if not s.faults else "NOT RIGHT: see the counts above"
    counts = {
        "accepted": s.accepted,
        "cancelled": s.cancelled,
        "too late to cancel": s.too_late,
        "closed": s.closed,
        "late": s.late,
        "early": s.early,
        "lost": s.lost,
        "doubled": s.doubled,
        "received after `cancelled`": s.untrue,
        "redelivered": s.redelivered,
        "of a post never answered": s.unanswered,
        "requests repeated": outcome.repeats,
    }
    lines = [f"{name:<28}{count:>10,}" for name, count in counts.items()]
    lateness = (s.lateness_p50_ms, s.lateness_p99_ms, s.lateness_max_ms)
    lines.append("{:<28}p50 {}   p99 {}   max {}".format("lateness", *map(_ms, lateness)))
    return "\n".join([*lines, f"{verdict} ({outcome.elapsed_s:.1f} s)"])


def _ms(value: int | None) -> str:
    return "-" if value is None else f"{value} ms"
