"""The due load as a histogram: what every page that shows one hands to `console/duebars.html`."""

from dataclasses import dataclass

from postdate.console.drawing import WIDTH, Bar, Mark, bars, grid, is_spiky, nice_maximum
from queues.selectors.dueload import Counted

HEIGHT = 160.0
_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
#: Labels under a histogram.
_TICKS = 6
#: A second in which more comes due than is handed over in 100 ms or so is called hot.
HOT_SECOND = 10_000


@dataclass(frozen=True, slots=True)
class DueBar:
    """One column."""

    bar: Bar
    count: int
    start_ms: int
    end_ms: int
    #: It stands above what is handed over on time.
    hot: bool
    #: Where looking closer leads, or what to look at; empty: nowhere.
    address: str = ""


@dataclass(frozen=True, slots=True)
class DueBars:
    """A histogram ready to be written down."""

    columns: tuple[DueBar, ...]
    lines: tuple[Mark, ...]
    #: Distance from the left and moment of each label under it.
    ticks: tuple[tuple[float, int], ...]
    height: float
    #: Where now is; None: outside.
    now_at: float | None
    total: int
    step_ms: int
    peak: int
    #: How the labels are written: `second`, `minute` or `date`.
    tick: str
    #: The columns lead somewhere.
    leads: bool
    #: Heights stand for square roots: one column dwarfs the others.
    root: bool


def draw(
    counted: Counted, now_ms: int, *, addresses: list[str] | None = None, ticks: int = _TICKS
) -> DueBars:
    """The histogram of one span."""
    peak = max(counted.counts, default=0)
    top, root = nice_maximum(peak), is_spiky(counted.counts)
    hot = HOT_SECOND * max(1, counted.step_ms // 1000)
    columns = tuple(
        DueBar(
            bar=bar,
            count=count,
            start_ms=counted.start_ms + index * counted.step_ms,
            end_ms=counted.start_ms + (index + 1) * counted.step_ms,
            hot=count >= hot,
            address=addresses[index] if addresses else "",
        )
        for index, (bar, count) in enumerate(
            zip(
                bars(counted.counts, height=HEIGHT, top=top, root=root),
                counted.counts,
                strict=True,
            )
        )
    )
    span_ms = max(1, counted.end_ms - counted.start_ms)
    share = (now_ms - counted.start_ms) / span_ms
    marks = tuple(
        (part / ticks * 100, counted.start_ms + span_ms * part // ticks)
        for part in range(ticks + 1)
    )
    return DueBars(
        columns=columns,
        lines=tuple(grid(top, height=HEIGHT, root=root)),
        ticks=marks,
        height=HEIGHT,
        now_at=round(share * WIDTH, 1) if 0 <= share <= 1 else None,
        total=sum(counted.counts),
        step_ms=counted.step_ms,
        peak=peak,
        tick=_tick(span_ms),
        leads=bool(addresses),
        root=root,
    )


def _tick(span_ms: int) -> str:
    if span_ms < 10 * _MINUTE_MS:
        return "second"
    return "minute" if span_ms < 2 * _DAY_MS else "date"
