"""The pages of reports in the console: runs, one report, its charts and files."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path

from analytics.files import chart_files, page_context, report_csv, report_html
from analytics.jobs.charts_listed import CHART_TITLES
from analytics.models import ReportRun
from analytics.selectors import reports as selectors
from analytics.services.places import run_dir
from analytics.services.reports import request_report
from queues import wires
from queues.admin.pages import acting, read_moment
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors.operations import get_operation

_SHOWN_MAX = 100
_LOG_BYTES_MAX = 200_000
_MAY_LOOK = permission_required("analytics.view_reportrun", raise_exception=True)
#: A file for people who look at it in the browser: its own styles and pictures, and nothing else.
_FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def reports_page(request: HttpRequest) -> HttpResponse:
    """Runs, newest first; a form begins one."""
    may_run = request.user.has_perm("analytics.add_reportrun")
    if request.method == "POST" and may_run and _is_begun(request):
        return redirect("reports-page")
    rows = [_told(run) for run in selectors.recent_runs(_SHOWN_MAX)]
    return _page(
        request, "analytics/reports.html", "Reports",
        rows=rows, may_run=may_run, asked=request.POST,
    )  # fmt: skip


def _is_begun(request: HttpRequest) -> bool:
    try:
        begun = request_report(
            report="lateness",
            from_ms=read_moment(request.POST, "from"),
            to_ms=read_moment(request.POST, "to"),
            topic=request.POST.get("topic", "").strip() or None,
            by=acting(request),
            now_ms=wires.wiring().get_clock().now_ms(),
            zone=request.POST.get("time_zone", "").strip() or "UTC",
        )
    except Problem as problem:
        messages.error(request, problem.detail)
        return False
    told = "The report is being made." if begun.is_new else "This report is being made already."
    messages.success(request, told)
    return True


def _told(run: ReportRun) -> dict[str, Any]:
    unfinished = run.state in (ReportRun.State.QUEUED, ReportRun.State.RUNNING)
    operation = get_operation(run.operation_id) if unfinished else None
    took = ""
    if run.started_at and run.finished_at:
        took = f"{(run.finished_at - run.started_at).total_seconds():.0f}\N{NO-BREAK SPACE}s"
    return {
        "run": run,
        "asked_ms": int(run.created_at.timestamp() * 1000),
        "took": took,
        "percent": None if operation is None else operation.done,
    }


def _shown(at_ms: int) -> str:
    """A moment as people read it, in one piece."""
    return format_moment(at_ms)[:16].replace("T", "\N{NO-BREAK SPACE}")


def report_page(request: HttpRequest, run_id: str) -> HttpResponse:
    """One report with its charts."""
    run = _run(run_id)
    charts = [(name, CHART_TITLES[name]) for name in chart_files(run)]
    title = f"Lateness, {_shown(run.from_ms)} to {_shown(run.to_ms)} UTC"
    return _page(request, "analytics/report.html", title, charts=charts, **page_context(run))


def chart(_request: HttpRequest, run_id: str, name: str) -> HttpResponseBase:
    """One chart, as a picture that runs no script."""
    found = chart_files(_run(run_id)).get(name)
    if found is None:
        raise Http404
    response = FileResponse(found.open("rb"), content_type="image/svg+xml")
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    response["Cache-Control"] = "private, max-age=86400"
    return response


def report_file(_request: HttpRequest, run_id: str, ending: str) -> HttpResponse:
    """The report as CSV, or as one HTML page."""
    run = _run(run_id)
    if ending == "html":
        response = HttpResponse(report_html(run))
        response["Content-Security-Policy"] = _FILE_POLICY
    elif ending == "csv":
        response = HttpResponse(report_csv(run), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="lateness-{run.id}.csv"'
    else:
        raise Http404
    return response


def report_log(_request: HttpRequest, run_id: str) -> HttpResponse:
    """What Spark's process said."""
    found = ReportRun.objects.filter(pk=run_id).first()
    log = run_dir(found.id) / "log.txt" if found else None
    if log is None or not log.is_file():
        raise Http404
    content = log.read_bytes()[-_LOG_BYTES_MAX:]
    return HttpResponse(content, content_type="text/plain; charset=utf-8")


def _run(run_id: str) -> ReportRun:
    try:
        return selectors.get_report(run_id)
    except Problem as problem:
        raise Http404 from problem


def _page(request: HttpRequest, template: str, title: str, **context: object) -> HttpResponse:
    return render(
        request, template, {**admin.site.each_context(request), "title": title, **context}
    )


def _guarded(view: Any) -> Any:
    return admin.site.admin_view(_MAY_LOOK(view))


urlpatterns = [
    path("", _guarded(reports_page), name="reports-page"),
    path("<str:run_id>/", _guarded(report_page), name="report-page"),
    path("<str:run_id>/log", _guarded(report_log), name="report-log"),
    path("<str:run_id>/charts/<str:name>.svg", _guarded(chart), name="report-chart"),
    path("<str:run_id>/file.<str:ending>", _guarded(report_file), name="report-file"),
]
