"""The Django application of the scheduler."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings

from scheduler import groups


class SchedulerConfig(AppConfig):
    """Plugs the project's groups in once the applications are loaded."""

    name = "scheduler"
    verbose_name = "Scheduler"

    def ready(self) -> None:
        groups.plug_in(lambda: import_module(settings.POSTDATE_WIRING).get_groups())
