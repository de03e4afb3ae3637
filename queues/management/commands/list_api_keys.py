"""`manage.py list_api_keys`: every API key without its secret."""

from typing import Any

from django.core.management.base import BaseCommand

from queues.selectors.keys import list_keys


class Command(BaseCommand):
    """List API keys."""

    help = "List API keys: id, first characters, name, scopes, patterns, last use, revocation."

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        for key in list_keys():
            used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
            state = "revoked" if key.revoked_at else used
            self.stdout.write(
                f"{key.pk:>5}  {key.prefix}…  {key.name}  scopes={','.join(key.scopes)}  "
                f"topics={','.join(key.topic_patterns)}  groups={','.join(key.group_patterns)}  "
                f"{state}"
            )
