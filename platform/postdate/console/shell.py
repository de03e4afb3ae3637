"""What stands around the pages: the favicon where browsers guess it, and the pages of errors."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.templatetags.static import static


def favicon(request: HttpRequest) -> HttpResponseRedirect:
    """The drawing, wherever the static files lie."""
    del request
    return HttpResponseRedirect(static("console/favicon.svg"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, with the reason where a page gave one."""
    given = exception.args[0] if exception.args else ""
    reason = given if isinstance(given, str) else ""
    return render(request, "404.html", {"reason": reason}, status=404)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the permission that is missing."""
    return render(request, "403.html", {"reason": str(exception)}, status=403)


def locked_out(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """429, after too many failed logins."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    response = render(request, "429.html", {"minutes": minutes}, status=429)
    response["Retry-After"] = str(minutes * 60)
    return response


def address_of(request: HttpRequest) -> str:
    """Where a login comes from: behind the proxy that ends TLS, what that proxy says."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    if settings.POSTDATE.is_public_tls and forwarded:
        # The last entry is the proxy's own; a client can write those before it.
        return str(forwarded).rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
