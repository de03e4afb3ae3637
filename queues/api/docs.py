"""The documentation: the OpenAPI document, and a page that shows it with assets of our own."""

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from queues.api.answers import raw_answer, refuse
from queues.api.codec import encode
from queues.api.endpoint import Call, endpoint
from queues.api.openapi import openapi_document
from queues.api.views import ApiView
from queues.codes import Code
from queues.problems import Problem

#: No inline script; the page's own library sets style attributes.
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class OpenApiView(ApiView):
    """`/openapi.json`."""

    @endpoint("This document", scopes=None, gives={200: dict[str, Any]})
    def get(self, call: Call) -> HttpResponse:
        del call
        return raw_answer(_encoded(), "application/json")


def docs_page(request: HttpRequest) -> HttpResponse:
    """The page that people read."""
    if request.method not in ("GET", "HEAD"):
        return refuse(Problem(Code.METHOD_NOT_ALLOWED, extra={"allowed": ["GET", "HEAD"]}))
    page = render(request, "api/docs.html")
    page.headers["Content-Security-Policy"] = _POLICY
    return page


@cache
def _encoded() -> bytes:
    return encode(openapi_document())
