"""The two middlewares of Postdate: the door that lets programs past the console's, and the CSP.

A request of a program (`/api/…`, health, metrics) needs no session, no CSRF token and no messages;
walking through the middlewares that provide them costs as much as the request itself (about 45 µs).
`program_door` stands first in the list and calls such a view directly. Everything else goes on to
Django's own chain.
"""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponseBase

from queues.api.answers import refuse
from queues.codes import Code
from queues.problems import Problem

Handler = Callable[[HttpRequest], HttpResponseBase]

#: Health and metrics: answered over plain HTTP and under any host name, because probes ask so.
PROBE_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
PROGRAM_PREFIX = "/api/"
STRICT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    )
)


class _BareHandler(BaseHandler):
    """Django's handler with no middleware: resolve, call the view, answer exceptions."""

    def __init__(self) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []

    def as_handler(self) -> Handler:
        resolve_and_call = cast("Any", self)._get_response  # noqa: SLF001 (the chain's inner end)
        return cast("Handler", convert_exception_to_response(resolve_and_call))


def program_door(get_response: Handler) -> Handler:
    """Return a handler that answers programs directly and hands people's requests on."""
    bare = _BareHandler().as_handler()
    tls_only = settings.SECURE_SSL_REDIRECT

    def handle(request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if path.startswith(PROGRAM_PREFIX):
            if tls_only and not request.is_secure():
                return _tls_required()
        elif path not in PROBE_PATHS:
            return get_response(request)
        response = bare(request)
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return handle


def _tls_required() -> HttpResponseBase:
    """Refuse, rather than redirect, a key sent in clear: a redirect would hide the leak."""
    return refuse(Problem(Code.TLS_REQUIRED, "This server takes API requests over HTTPS only."))


def content_security_policy(get_response: Handler) -> Handler:
    """Return a handler that adds the strict policy where a view has not set one."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", STRICT_POLICY)
        return response

    return handle
