"""`manage.py create_api_key NAME`: issue an API key and print it once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from queues.management.database import needs_database
from queues.management.keyoptions import (
    SCOPES,
    add_limits,
    add_rights,
    expiry_of,
    quotas_of,
)
from queues.problems import Problem
from queues.services.keys import issue_key


class Command(BaseCommand):
    """Issue an API key."""

    help = "Issue an API key and print its secret, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is for")
        add_rights(parser, default="all")
        add_limits(parser)

    @needs_database()
    def handle(self, *args: Any, **options: Any) -> None:
        del args
        try:
            issued = issue_key(
                name=options["name"],
                by="command:create_api_key",
                scopes=options["scope"] or SCOPES,
                topic_patterns=options["topics"] or ["*"],
                group_patterns=options["groups"] or ["*"],
                quotas=quotas_of(options),
                expires_at=expiry_of(options),
            )
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(issued.secret)
