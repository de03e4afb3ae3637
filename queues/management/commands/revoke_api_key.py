"""`manage.py revoke_api_key ID`: from now on no process takes the key."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from queues.management.database import needs_database
from queues.services.keys import revoke_key


class Command(BaseCommand):
    """Revoke an API key."""

    help = "Revoke an API key; `list_api_keys` shows their ids."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int)

    @needs_database()
    def handle(self, *args: Any, **options: Any) -> None:
        del args
        if not revoke_key(key_id=options["id"], by="command:revoke_api_key"):
            raise CommandError("There is no such key, or it is revoked already.")
        self.stdout.write(f"Key {options['id']} is revoked.")
