"""Django app: analytics."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """Reports over what was delivered; the room is named, capability E fills it."""

    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"
