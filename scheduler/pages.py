"""The schedule's pages in the console: delay levels, timer wheel and loops, to look at."""

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from queues.moments import format_moment
from scheduler import selectors

#: Who may see the audit log may see how the loops are.
_MAY_LOOK = permission_required("queues.view_auditentry", raise_exception=True)


def levels_page(request: HttpRequest) -> HttpResponse:
    """Every delay level and how far it is."""
    rows = [
        {
            "state": state,
            "next_due": _shown(state.next_due_ms),
            "last": _shown(state.last_delivered_ms),
        }
        for state in selectors.level_states()
    ]
    return _page(request, "admin/schedule/levels.html", "Delay levels", rows=rows)


def wheel_page(request: HttpRequest) -> HttpResponse:
    """The timer wheel and the loops."""
    detail = selectors.wheel_detail()
    facts: list[tuple[str, object]] = [("Messages that wait", selectors.timed_waiting())]
    for name, value in detail.items():
        if name == "stages":
            continue
        is_moment = name.endswith("_time_ms") or name == "checkpoint_ms"
        label = name.removesuffix("_ms" if is_moment else "").replace("_", " ").capitalize()
        facts.append((label, _shown(value) if is_moment else value))
    loops = [
        {"state": loop, "since": _shown(loop.since_ms), "last": _shown(loop.last_step_ms)}
        for loop in selectors.loop_states()
    ]
    return _page(
        request,
        "admin/schedule/wheel.html",
        "Timer wheel and loops",
        facts=facts,
        loops=loops,
        stages=detail.get("stages", ()),
    )


def _page(request: HttpRequest, template: str, title: str, **context: object) -> HttpResponse:
    return render(
        request, template, {**admin.site.each_context(request), "title": title, **context}
    )


def _shown(moment_ms: int | None) -> str:
    return "" if moment_ms is None else format_moment(moment_ms)


urlpatterns = [
    path("levels/", admin.site.admin_view(_MAY_LOOK(levels_page)), name="levels-page"),
    path("wheel/", admin.site.admin_view(_MAY_LOOK(wheel_page)), name="wheel-page"),
]
