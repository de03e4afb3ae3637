"""A report as a file: CSV for tables, one HTML page with everything in it for people."""

import csv
import io
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from django.template.loader import render_to_string

from analytics.jobs.charts_listed import CHART_TITLES
from analytics.models import ReportRun
from analytics.selectors import reports as selectors
from analytics.services.places import run_dir

_QUANTILES: Final = ("p50", "p90", "p95", "p99", "p999", "max")
_COLUMNS: Final = (
    "hour", "hour_ms", "topic", "kind", "level", "delivered", "early", "late_over_slo",
    *(f"lateness_{name}_ms" for name in _QUANTILES),
)  # fmt: skip
#: Rows by topic, kind, level and hour that a page shows; the CSV has all.
PAGE_ROWS_MAX: Final = 500
#: What a spreadsheet would take for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def report_csv(run: ReportRun) -> bytes:
    """The rows of a report; the first line names the columns."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row in selectors.rows_of(run).iterator(chunk_size=2000):
        lateness = [row.lateness_ms.get(name) for name in _QUANTILES]
        writer.writerow(
            [
                row.hour, row.hour_ms, _plain(row.topic), row.kind, row.level or "",
                row.delivered, row.early, row.late_over_slo, *lateness,
            ]
        )  # fmt: skip
    return text.getvalue().encode()


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def report_html(run: ReportRun) -> bytes:
    """The whole report as one page that needs nothing else."""
    charts = [
        {"title": CHART_TITLES.get(name, name), "data": b64encode(path.read_bytes()).decode()}
        for name, path in chart_files(run).items()
    ]
    context = {**page_context(run), "embedded": charts}
    return render_to_string("analytics/report_file.html", context).encode()


def chart_files(run: ReportRun) -> dict[str, Path]:
    """The charts of a report that are still there."""
    directory = run_dir(run.id)
    found = {name: directory / f"{name}.svg" for name in (run.result or {}).get("charts", ())}
    return {name: path for name, path in found.items() if path.is_file()}


def page_context(run: ReportRun) -> dict[str, Any]:
    """What the templates of a report are given."""
    rows = [selectors.row_values(row) for row in selectors.rows_of(run)[:PAGE_ROWS_MAX]]
    result = run.result or {}
    return {
        "run": run,
        "report": result,
        "rows": rows,
        "rows_left_out": max(0, result.get("rows_total", 0) - len(rows)),
        "quantiles": _QUANTILES,
    }
