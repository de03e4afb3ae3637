"""Consumers as they are looked at: who asks for a group's messages, and what each holds."""

from collections import Counter
from dataclasses import dataclass

from queues.models import SeenConsumer
from queues.store.leases import Lease


@dataclass(frozen=True, slots=True)
class Consumer:
    """Someone who receives for a group."""

    #: "" for one that does not name itself.
    consumer_id: str
    #: The key, as the audit log names it; "" where it was not noted.
    by: str
    #: When it last asked for messages or got one, ms.
    seen_ms: int
    #: Messages that it holds now.
    holds: int


def list_consumers(group: str, leases: list[Lease], *, limit: int) -> list[Consumer]:
    """Who was seen within the day or holds something, newest first."""
    held = Counter(lease.consumer_id or "" for lease in leases)
    newest: dict[str, int] = {}
    for lease in leases:
        name = lease.consumer_id or ""
        newest[name] = max(newest.get(name, 0), lease.since_ms)
    found = []
    for row in SeenConsumer.objects.filter(group=group).order_by("-seen_at")[:limit]:
        seen_ms = round(row.seen_at.timestamp() * 1000)
        # Two keys of one name share what it holds: it is shown with the one seen last.
        since_ms = newest.pop(row.consumer_id, 0)
        holds = held.pop(row.consumer_id, 0)
        found.append(Consumer(row.consumer_id, row.by, max(seen_ms, since_ms), holds))
    found += [Consumer(name, "", since_ms, held[name]) for name, since_ms in newest.items()]
    return sorted(found, key=lambda one: (-one.seen_ms, one.consumer_id))[:limit]


def last_seen_ms(groups: list[str]) -> dict[str, int]:
    """When a consumer of each group was last seen; groups without one are not in it."""
    rows = SeenConsumer.objects.filter(group__in=groups).values_list("group", "seen_at")
    found: dict[str, int] = {}
    for group, seen_at in rows:
        found[group] = max(found.get(group, 0), round(seen_at.timestamp() * 1000))
    return found
