"""The audit log as it is read: newest first."""

from queues.models import AuditEntry


def list_entries(*, before: int | None, limit: int) -> list[AuditEntry]:
    """Entries older than the one with this number, newest first."""
    entries = AuditEntry.objects.order_by("-pk")
    if before is not None:
        entries = entries.filter(pk__lt=before)
    return list(entries[:limit])
