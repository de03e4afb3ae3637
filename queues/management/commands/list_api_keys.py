"""`manage.py list_api_keys`: every API key without its secret."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from queues.management.database import needs_database
from queues.selectors.keys import list_keys, quotas_of

if TYPE_CHECKING:
    from queues.models import ApiKey


class Command(BaseCommand):
    """List API keys."""

    help = "List API keys: id, first characters, name, scopes, patterns, last use, revocation."

    @needs_database()
    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        for key in list_keys():
            used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
            if key.expires_at:
                used += f"  expires {key.expires_at:%Y-%m-%d %H:%M}"
            if key.previous_until:
                used += f"  old secret until {key.previous_until:%Y-%m-%d %H:%M}"
            limits = "".join(f"  {name}={value}" for name, value in _limits(key))
            state = "revoked" if key.revoked_at else used + limits
            self.stdout.write(
                f"{key.pk:>5}  {key.prefix}…  {key.name}  scopes={','.join(key.scopes)}  "
                f"topics={','.join(key.topic_patterns)}  groups={','.join(key.group_patterns)}  "
                f"{state}"
            )


def _limits(key: "ApiKey") -> list[tuple[str, int]]:
    """What is limited, by name."""
    limits = asdict(quotas_of(key))
    burst_s = limits.pop("burst_seconds")
    found = [(name, value) for name, value in limits.items() if value is not None]
    return [*found, ("burst_seconds", burst_s)] if found else []
