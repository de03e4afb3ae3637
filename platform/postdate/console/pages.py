"""What every page of the console is made of: permission, shell, live fragment, acting person.

A page is a function from a request to the context of its template. The decorator `page` makes a
view of it: it asks for login and permission, and renders the whole page, or, for the script that
follows the system (`X-Live: 1`), only its title and live block.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render

from queues import wires
from queues.admin.pages import acting
from queues.codes import Code
from queues.problems import Problem

__all__ = ["Context", "acting", "page", "posted", "render_page", "require"]

Context = dict[str, Any]
Arguments = ParamSpec("Arguments")
Page = Callable[Concatenate[HttpRequest, Arguments], Context | HttpResponseBase]
View = Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]

#: Codes of what is simply not there.
_ABSENT = {
    Code.MESSAGE_NOT_FOUND,
    Code.DEAD_LETTER_NOT_FOUND,
    Code.TOPIC_NOT_FOUND,
    Code.GROUP_NOT_FOUND,
    Code.OPERATION_NOT_FOUND,
    Code.KEY_NOT_FOUND,
    Code.REPORT_NOT_FOUND,
}


def page(template: str, *, permission: str) -> Callable[[Page[Arguments]], View[Arguments]]:
    """Make a view of a page; `permission` is Django's, such as `queues.view_topic`."""

    def make(build: Page[Arguments]) -> View[Arguments]:
        @wraps(build)
        def view(
            request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> HttpResponseBase:
            require(request, permission)
            try:
                built = build(request, *args, **kwargs)
            except Problem as problem:
                if problem.code in _ABSENT:
                    raise Http404(problem.detail) from problem
                raise
            if isinstance(built, HttpResponseBase):
                return built
            return render_page(request, template, built)

        return admin.site.admin_view(view)

    return make


def render_page(
    request: HttpRequest, template: str, context: Context, status: int = 200
) -> HttpResponse:
    """The page, or what of it follows the system."""
    live = request.headers.get("X-Live") == "1"
    now_ms = wires.wiring().get_clock().now_ms()
    frame = "console/fragment.html" if live else ""
    response = render(
        request, template, {"frame": frame, "now_ms": now_ms, **context}, status=status
    )
    response["X-Server-Ms"] = str(now_ms)
    response["Vary"] = "X-Live, Cookie"
    return response


def posted(request: HttpRequest) -> QueryDict | None:
    """What was sent with a form; None when it is only looked at."""
    return request.POST if request.method == "POST" else None


def require(request: HttpRequest, permission: str) -> None:
    """Raise 403 unless the person has the permission."""
    if not request.user.has_perm(permission):
        raise PermissionDenied(permission)
