"""`manage.py write_openapi`: write `openapi.yaml` anew from the endpoints."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.api.openapi import openapi_yaml


class Command(BaseCommand):
    """Write the OpenAPI document."""

    help = "Write openapi.yaml from the endpoints; a test keeps the two in step."

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        path = settings.BASE_DIR / "openapi.yaml"
        path.write_bytes(openapi_yaml())
        self.stdout.write(f"{path} is written.")
