"""`manage.py change_api_key ID`: other rights, limits or expiry, from now on, in every process."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from queues.management.database import needs_database
from queues.management.keyoptions import add_limits, add_rights, expiry_of, quotas_of
from queues.problems import Problem
from queues.selectors.keys import quotas_of_key
from queues.services.keys import change_key


class Command(BaseCommand):
    """Change an API key."""

    help = "Change what an API key may; what is not named stays, and a limit of 0 is no limit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int)
        add_rights(parser, default="as it is")
        add_limits(parser)
        parser.add_argument("--never-expires", action="store_true")

    @needs_database()
    def handle(self, *args: Any, **options: Any) -> None:
        del args
        try:
            key = change_key(
                key_id=options["id"],
                by="command:change_api_key",
                scopes=options["scope"],
                topic_patterns=options["topics"],
                group_patterns=options["groups"],
                quotas=quotas_of(options, quotas_of_key(options["id"])),
                expires_at=expiry_of(options),
                never_expires=options["never_expires"],
            )
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(f"Key {key.pk} is changed.")
