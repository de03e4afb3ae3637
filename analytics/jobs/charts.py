"""Charts of a report, drawn where the report is made: one SVG each, without scripts.

Lateness is drawn on a logarithmic axis from 1 ms: 0 ms stands at its foot.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analytics.jobs.charts_listed import CHART_TITLES

Report = dict[str, Any]

_COLOURS: Final = ("#3b6ea8", "#d9822b", "#b23a48", "#5b8c5a", "#7a5195")
_SHOWN: Final = {"p50": "half", "p99": "99 %", "p999": "99.9 %", "max": "latest"}
_TOPICS_MAX: Final = 15
#: Hours that have a label each; of more, every n-th has one.
_LABELS_MAX: Final = 12
_SIZE: Final = (9.0, 3.6)


def draw(report: Report, place: Path) -> list[str]:
    """Draw what the report has something for; returns the names of the files made."""
    place.mkdir(parents=True, exist_ok=True)
    # Names of glyphs and clips are the same each time, and text stays text.
    mpl.rcParams.update({"svg.hashsalt": "postdate", "svg.fonttype": "none", "font.size": 9})
    made = []
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


def _over_time(axes: Axes, report: Report) -> None:
    hours = report["by_hour"]
    for (name, label), colour in zip(_SHOWN.items(), _COLOURS, strict=False):
        values = [_at_least_one(hour["lateness_ms"][name]) for hour in hours]
        axes.plot(range(len(hours)), values, label=label, color=colour, marker=".", linewidth=1.4)
    axes.axhline(report["slo_ms"], color="#888888", linestyle=":", label="objective")
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.legend(ncols=5, fontsize=8, frameon=False)
    _name_hours(axes, [hour["hour"] for hour in hours])


def _heat(axes: Axes, report: Report) -> None:
    cells = report["distribution"]
    hours = sorted({cell["hour_ms"] for cell in cells})
    names = {cell["hour_ms"]: cell["hour"] for cell in cells}
    steps = sorted({cell["from_ms"] for cell in cells})
    counts = np.zeros((len(steps), len(hours)))
    for cell in cells:
        counts[steps.index(cell["from_ms"]), hours.index(cell["hour_ms"])] += cell["n"]
    shares = np.ma.masked_equal(counts / np.maximum(counts.sum(axis=0), 1), 0)
    image = axes.imshow(
        shares, aspect="auto", origin="lower", cmap="viridis_r", vmin=0, vmax=1,
        interpolation="nearest",
    )  # fmt: skip
    axes.figure.colorbar(image, ax=axes, label="share of the hour")
    edges = {cell["from_ms"]: cell["to_ms"] for cell in cells}
    axes.set_yticks(range(len(steps)), [_span(step, edges[step]) for step in steps], fontsize=7)
    _name_hours(axes, [names[hour] for hour in hours])


def _span(first_ms: int, last_ms: int) -> str:
    return f"{first_ms:,} ms" if first_ms == last_ms else f"{first_ms:,} to {last_ms:,} ms"


def _topics(axes: Axes, report: Report) -> None:
    rows = report["by_topic"][:_TOPICS_MAX][::-1]
    places = np.arange(len(rows))
    for offset, (name, colour) in enumerate((("p50", _COLOURS[0]), ("p99", _COLOURS[2]))):
        values = [_at_least_one(row["lateness_ms"][name]) for row in rows]
        axes.barh(places + 0.4 * offset, values, 0.4, color=colour, label=_SHOWN[name])
    axes.set_yticks(places + 0.2, [row["topic"] for row in rows], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("ms")
    axes.legend(frameon=False)


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
        axes.bar(places + 0.27 * offset, values, 0.27, color=colour, label=_SHOWN[name])
    axes.set_xticks(places + 0.27, names, rotation=45, ha="right", fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.legend(frameon=False)


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
        axes.bar(places + width * number, values, width, label=label, color=_COLOURS[number])
    axes.set_ylabel("messages")
    axes.legend(frameon=False)
    _name_hours(axes, [hour["hour"] for hour in hours])


def _against_before(axes: Axes, report: Report) -> None:
    names = list(_SHOWN)
    places = np.arange(len(names))
    periods = ((report["previous"]["totals"], "period before"), (report["totals"], "this period"))
    for number, (totals, label) in enumerate(periods):
        values = [_at_least_one(totals["lateness_ms"][name]) for name in names]
        axes.bar(places + 0.4 * number, values, 0.4, label=label, color=_COLOURS[3 - 3 * number])
    axes.set_xticks(places + 0.2, [_SHOWN[name] for name in names])
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.legend(frameon=False)


def _at_least_one(value: int | None) -> float:
    return float("nan") if value is None else max(1.0, float(value))


def _name_hours(axes: Axes, hours: list[str]) -> None:
    step = max(1, -(-len(hours) // _LABELS_MAX))
    places = range(0, len(hours), step)
    names = [f"{hours[place][5:10]} {hours[place][11:16]}" for place in places]
    axes.set_xticks(list(places), names, rotation=30, ha="right", fontsize=7)


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
