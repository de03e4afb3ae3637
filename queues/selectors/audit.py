"""The audit log as it is read: newest first."""

from itertools import islice

from queues.access import Caller
from queues.models import AuditEntry

#: What an entry is about, by the first word of its action: a topic or a group.
_TOPICS = frozenset({"topic"})
_GROUPS = frozenset({"group", "deadletter"})


def list_entries(*, caller: Caller, before: int | None, limit: int) -> list[AuditEntry]:
    """Entries older than the one with this number that the caller may see, newest first."""
    entries = AuditEntry.objects.order_by("-pk")
    if before is not None:
        entries = entries.filter(pk__lt=before)
    if caller.topics.takes_all and caller.groups.takes_all:
        return list(entries[:limit])
    seen = (entry for entry in entries.iterator(chunk_size=200) if _may_see(entry, caller))
    return list(islice(seen, limit))


def _may_see(entry: AuditEntry, caller: Caller) -> bool:
    """What a limited key did is its own; of the rest it sees what is about its topics or groups."""
    if entry.by == caller.by:
        return True
    detail = entry.detail or {}
    about = entry.action.partition(".")[0]
    named = [
        (caller.topics, entry.subject if about in _TOPICS else detail.get("topic")),
        (caller.groups, entry.subject if about in _GROUPS else detail.get("group")),
    ]
    known = [patterns.allow(name) for patterns, name in named if isinstance(name, str)]
    return bool(known) and all(known)


def search_entries(
    *, before: int | None, limit: int, by: str = "", action: str = "", subject: str = ""
) -> list[AuditEntry]:
    """Entries whose parts hold these words, newest first; an empty word holds anywhere."""
    entries = AuditEntry.objects.order_by("-pk")
    if before is not None:
        entries = entries.filter(pk__lt=before)
    if by:
        entries = entries.filter(by__icontains=by)
    if action:
        entries = entries.filter(action__icontains=action)
    if subject:
        entries = entries.filter(subject__icontains=subject)
    return list(entries[:limit])
