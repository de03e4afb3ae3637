"""The addresses of reports, under `/api/v1/`."""

from django.urls import path

from analytics.api.views import OneReportView, ReportsView

app_name = "analytics_api"

urlpatterns = [
    path("reports", ReportsView.as_view(), name="reports"),
    path("reports/<str:report_id>", OneReportView.as_view(), name="report"),
]
