"""Django app: analytics."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """Reports over what was delivered, their schedules and their pages."""

    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"
