"""Charts of a report, drawn where the report is made: one SVG each, without scripts.

Lateness is drawn on a logarithmic axis from 1 ms: 0 ms stands at its foot.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from analytics.jobs.charts_listed import CHART_TITLES

Report = dict[str, Any]

_COLOURS: Final = ("#3f7fd6", "#e0862b", "#d1475b", "#4c9c5a", "#8e66b8")
_BLUE: Final = to_rgb(_COLOURS[0])
#: Of text and lines: read well on light ground and on dark, since the ground is the page's.
_INK: Final = "#6f7c8b"
_SHOWN: Final = {"p50": "half", "p99": "99 %", "p999": "99.9 %", "max": "latest"}
_TOPICS_MAX: Final = 15
#: Hours that have a label each; of more, every n-th has one.
_LABELS_MAX: Final = 12
_SIZE: Final = (9.0, 3.8)
_STYLE: Final[Any] = {
    # Names of glyphs and clips are the same each time, and text stays text.
    "svg.hashsalt": "postdate", "svg.fonttype": "none",
    "font.size": 10, "font.family": "sans-serif", "text.color": _INK,
    "axes.labelcolor": _INK, "axes.edgecolor": _INK, "axes.facecolor": "none",
    "axes.titlesize": 12, "axes.titleweight": "bold", "axes.titlepad": 14,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid.axis": "y", "axes.grid": True, "grid.color": _INK, "grid.alpha": 0.22,
    "xtick.color": _INK, "ytick.color": _INK, "figure.facecolor": "none",
    "savefig.facecolor": "none", "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip
#: From nearly nothing to the full colour: what shows through is the page's ground.
_HEAT: Final = LinearSegmentedColormap.from_list("heat", [(*_BLUE, 0.08), (*_BLUE, 1.0)])
_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1_000, 60_000, 3_600_000


def draw(report: Report, place: Path) -> list[str]:
    """Draw what the report has something for; returns the names of the files made."""
    place.mkdir(parents=True, exist_ok=True)
    made = []
    with mpl.rc_context(_STYLE):
        for name, title in CHART_TITLES.items():
            has, paint = _PAINTERS[name]
            if not report.get(has):
                continue
            figure = Figure(figsize=_SIZE, layout="constrained")
            axes = figure.add_subplot()
            axes.set_title(title, loc="left")
            paint(axes, report)
            figure.savefig(place / f"{name}.svg", metadata={"Date": None, "Title": title})
            made.append(name)
    return made


def spoken(value_ms: float) -> str:
    """A duration as people say it: ``850 ms``, ``1.5 s``, ``20 min``, ``3 h``."""
    units = ((_HOUR_MS, "h"), (_MINUTE_MS, "min"), (_SECOND_MS, "s"))
    for unit_ms, unit in units:
        if value_ms >= unit_ms:
            return f"{round(value_ms / unit_ms, 1):g} {unit}"
    return f"{value_ms:g} ms"


def _in_time(axis: Axis) -> None:
    """A logarithmic axis of durations."""
    axis.set_major_formatter(lambda value, _place: spoken(value))
    axis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, columns: int) -> None:
    """Above the chart, where it hides nothing."""
    axes.legend(
        ncols=columns, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2,
        handlelength=1.2, columnspacing=1.2,
    )  # fmt: skip


def _over_time(axes: Axes, report: Report) -> None:
    hours = report["by_hour"]
    places = range(len(hours))
    of = {name: [_at_least_one(hour["lateness_ms"][name]) for hour in hours] for name in _SHOWN}
    axes.fill_between(places, of["p50"], of["p99"], color=_COLOURS[0], alpha=0.14, linewidth=0)
    for (name, label), colour in zip(_SHOWN.items(), _COLOURS, strict=False):
        axes.plot(places, of[name], label=label, color=colour, marker="o", ms=3.5, linewidth=1.6)
    axes.axhline(report["slo_ms"], color=_INK, linestyle=(0, (4, 3)), label="objective")
    axes.set_yscale("log")
    _in_time(axes.yaxis)
    _legend(axes, 5)
    _name_hours(axes, [hour["hour"] for hour in hours])


def _heat(axes: Axes, report: Report) -> None:
    cells = report["distribution"]
    hours = sorted({cell["hour_ms"] for cell in cells})
    names = {cell["hour_ms"]: cell["hour"] for cell in cells}
    spans = _doublings(cells)
    counts = np.zeros((len(spans), len(hours)))
    rows = {first: number for number, (first, _) in enumerate(spans)}
    for cell in cells:
        counts[rows[cell["from_ms"]], hours.index(cell["hour_ms"])] += cell["n"]
    shares = np.ma.masked_equal(100 * counts / np.maximum(counts.sum(axis=0), 1), 0)
    image = axes.imshow(
        shares, aspect="auto", origin="lower", cmap=_HEAT, vmin=0, interpolation="nearest"
    )
    bar = axes.figure.colorbar(image, ax=axes, label="% of the hour", pad=0.01)
    bar.outline.set_visible(False)
    axes.grid(visible=False)
    step = max(1, -(-len(spans) // _LABELS_MAX))
    axes.set_yticks(range(0, len(spans), step), [_span(*span) for span in spans[::step]])
    _name_hours(axes, [names[hour] for hour in hours])


def _doublings(cells: Sequence[Report]) -> list[tuple[int, int]]:
    """All doublings from the least to the longest that there was; none is left out between."""
    least, most = min(cell["from_ms"] for cell in cells), max(cell["from_ms"] for cell in cells)
    negative = [(-1, -1)] if least < 0 else []
    zero = [(0, 0)] if least <= 0 else []
    first = 1 if least <= 0 else least
    count = max(0, most // first).bit_length() if most >= first else 0
    return [*negative, *zero, *((first << n, (first << n + 1) - 1) for n in range(count))]


def _span(first_ms: int, last_ms: int) -> str:
    if first_ms < 0:
        return "early"
    return spoken(first_ms) if first_ms == last_ms else f"{spoken(first_ms)} +"


def _topics(axes: Axes, report: Report) -> None:
    rows = report["by_topic"][:_TOPICS_MAX][::-1]
    places = np.arange(len(rows))
    for offset, (name, colour) in enumerate((("p99", _COLOURS[2]), ("p50", _COLOURS[0]))):
        values = [_at_least_one(row["lateness_ms"][name]) for row in rows]
        bars = axes.barh(places + 0.4 * offset, values, 0.38, color=colour, label=_SHOWN[name])
        if len(rows) <= _LABELS_MAX:
            _label(axes, bars, [row["lateness_ms"][name] for row in rows])
    axes.set_yticks(places + 0.2, [row["topic"] for row in rows])
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.set_xlim(left=1)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    _in_time(axes.xaxis)
    _legend(axes, 2)


def _levels(axes: Axes, report: Report) -> None:
    rows = report["by_level"]
    names = [
        f"level {row['level']}" if row.get("level") else row.get("kind", "unknown") for row in rows
    ]
    places = np.arange(len(rows))
    for offset, (name, colour) in enumerate(
        (("p50", _COLOURS[0]), ("p99", _COLOURS[1]), ("max", _COLOURS[2]))
    ):
        values = [_at_least_one(row["lateness_ms"][name]) for row in rows]
        axes.bar(places + 0.27 * offset, values, 0.25, color=colour, label=_SHOWN[name])
    axes.set_xticks(places + 0.27, names, rotation=45 if len(rows) > _LABELS_MAX else 0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=1)
    _in_time(axes.yaxis)
    _legend(axes, 3)


def _label(axes: Axes, bars: BarContainer, values: Sequence[int | None]) -> None:
    told = ["" if value is None else spoken(value) for value in values]
    axes.bar_label(bars, told, padding=3, fontsize=8, color=_INK)


def _throughput(axes: Axes, report: Report) -> None:
    _hourly(axes, report, (("in", "sent"), ("out", "handed over")))


def _failures(axes: Axes, report: Report) -> None:
    _hourly(axes, report, (("retried", "retried"), ("dead", "dead letters")))


def _hourly(axes: Axes, report: Report, columns: tuple[tuple[str, str], ...]) -> None:
    hours = report["throughput"]
    places = np.arange(len(hours))
    width = 0.8 / len(columns)
    for number, (column, label) in enumerate(columns):
        values = [hour[column] for hour in hours]
        colour = _COLOURS[number if columns[0][0] == "in" else number + 1]
        axes.bar(places + width * number, values, width, label=label, color=colour)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    _legend(axes, 2)
    _name_hours(axes, [hour["hour"] for hour in hours], shift=width / 2)


def _against_before(axes: Axes, report: Report) -> None:
    names = list(_SHOWN)
    places = np.arange(len(names))
    periods = ((report["previous"]["totals"], "period before"), (report["totals"], "this period"))
    for number, (totals, label) in enumerate(periods):
        values = [_at_least_one(totals["lateness_ms"][name]) for name in names]
        colour, faint = _COLOURS[0], 0.45 if number == 0 else 1.0
        bars = axes.bar(places + 0.4 * number, values, 0.38, label=label, color=colour, alpha=faint)
        _label(axes, bars, [totals["lateness_ms"][name] for name in names])
    axes.set_xticks(places + 0.2, [_SHOWN[name] for name in names])
    axes.set_yscale("log")
    axes.set_ylim(1, 2 * axes.get_ylim()[1])  # Room for the labels.
    _in_time(axes.yaxis)
    _legend(axes, 2)


def _at_least_one(value: int | None) -> float:
    return float("nan") if value is None else max(1.0, float(value))


def _name_hours(axes: Axes, hours: list[str], shift: float = 0.0) -> None:
    """The hour at each place, with the day where it begins."""
    step = max(1, -(-len(hours) // _LABELS_MAX))
    places = range(0, len(hours), step)
    days = ["", *(hours[place][5:10] for place in places)]
    names = [
        hours[place][11:16] + (f"\n{day}" if day != before else "")
        for place, before, day in zip(places, days, days[1:], strict=False)
    ]
    axes.set_xticks([place + shift for place in places], names)


#: Name to what the report must have, and how it is drawn.
_PAINTERS: Final[dict[str, tuple[str, Callable[[Axes, Report], None]]]] = {
    "lateness": ("by_hour", _over_time),
    "distribution": ("distribution", _heat),
    "topics": ("by_topic", _topics),
    "levels": ("by_level", _levels),
    "throughput": ("throughput", _throughput),
    "failures": ("retries", _failures),
    "before": ("by_hour", _against_before),
}
