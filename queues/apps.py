"""The Django application of topics, groups and messages."""

from importlib import import_module
from typing import cast

from django.apps import AppConfig
from django.conf import settings

from queues import wires


class QueuesConfig(AppConfig):
    """Plugs the project's wiring in once the applications are loaded."""

    name = "queues"
    verbose_name = "Queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        wires.plug_in(cast(wires.Wiring, import_module(settings.POSTDATE_WIRING)))
