"""`manage.py create_api_key NAME`: issue an API key and print it once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from queues.problems import Problem
from queues.services.keys import issue_key

_SCOPES = ("send", "consume", "inspect", "manage")


class Command(BaseCommand):
    """Issue an API key."""

    help = "Issue an API key and print its secret, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is for")
        parser.add_argument(
            "--scope", action="append", choices=_SCOPES, help="may be repeated; default: all"
        )
        parser.add_argument("--topics", action="append", help="a pattern; default: *")
        parser.add_argument("--groups", action="append", help="a pattern; default: *")

    def handle(self, *args: Any, **options: Any) -> None:
        del args
        try:
            issued = issue_key(
                name=options["name"],
                by="command:create_api_key",
                scopes=options["scope"] or _SCOPES,
                topic_patterns=options["topics"] or ["*"],
                group_patterns=options["groups"] or ["*"],
            )
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(issued.secret)
