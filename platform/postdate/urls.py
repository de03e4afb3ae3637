"""Every address of the server: health, metrics, the REST API, the console."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from postdate.console.shell import favicon
from queues.api.docs import docs_page
from queues.api.probes import HealthView, MetricsView, ReadyView
from queues.api.views import UnknownView

urlpatterns = [
    path("api/v1/", include("queues.api.urls")),
    path("api/v1/", include("scheduler.api.urls")),
    path("api/v1/", include("analytics.api.urls")),
    path("api/docs", docs_page, name="docs"),
    path("healthz", HealthView.as_view()),
    path("readyz", ReadyView.as_view()),
    path("metrics", MetricsView.as_view()),
    # What a program asks is never answered with a page, whatever slashes it has too many.
    re_path(r"^(?:/*)(?:api|healthz|readyz|metrics)(/.*)?$", UnknownView.as_view()),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("favicon.ico", favicon),
    path("admin/", include("postdate.console.urls")),
    path("admin/reports/", include("analytics.pages")),
    path("admin/", admin.site.urls),
]

handler404 = "postdate.console.shell.not_found"
handler403 = "postdate.console.shell.forbidden"
