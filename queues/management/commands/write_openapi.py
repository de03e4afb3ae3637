"""`manage.py write_openapi`: write `openapi.yaml` and the scopes anew from the endpoints."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from queues.api.openapi import openapi_yaml
from queues.api.scopetable import scope_table


class Command(BaseCommand):
    """Write the OpenAPI document and the table of scopes."""

    help = "Write openapi.yaml and docs/api/scopes.md from the endpoints; tests keep them in step."

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        for name, content in (
            ("openapi.yaml", openapi_yaml()),
            ("docs/api/scopes.md", scope_table().encode()),
        ):
            path = settings.BASE_DIR / name
            path.write_bytes(content)
            self.stdout.write(f"{path} is written.")
