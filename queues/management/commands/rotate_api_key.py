"""`manage.py rotate_api_key ID`: a new secret; the old one is taken for a while longer."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from queues.management.database import needs_database
from queues.management.keyoptions import overlap_of
from queues.problems import Problem
from queues.services.keys import rotate_key


class Command(BaseCommand):
    """Rotate an API key."""

    help = "Give an API key a new secret and print it, once; `list_api_keys` shows the ids."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument(
            "--overlap", default="24h", help="how long the old secret is still taken; default: 24h"
        )

    @needs_database()
    def handle(self, *args: Any, **options: Any) -> None:
        del args
        overlap = overlap_of(options["overlap"])
        try:
            issued = rotate_key(key_id=options["id"], by="command:rotate_api_key", overlap=overlap)
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(issued.secret)
