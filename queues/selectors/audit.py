"""The audit log as it is read: newest first."""

from queues.models import AuditEntry


def list_entries(*, before: int | None, limit: int) -> list[AuditEntry]:
    """Entries older than the one with this number, newest first."""
    entries = AuditEntry.objects.order_by("-pk")
    if before is not None:
        entries = entries.filter(pk__lt=before)
    return list(entries[:limit])


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
