"""The audit log: every change of the control plane leaves an entry in the same transaction."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from queues import wires
from queues.models import AuditEntry


def record_change(
    *,
    by: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Leave an entry, and have every process read the control plane again once it is committed.

    `before` and `after` are the thing itself, or of a change only what differs.
    """
    AuditEntry.objects.create(
        at=now(),
        by=by,
        action=action,
        subject=subject[:255],
        detail=dict(detail or {}),
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
    )
    transaction.on_commit(lambda: wires.wiring().get_store().raise_generation())


def note_action(
    *, by: str, action: str, subject: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Leave an entry for what a person did to messages; the control plane did not change."""
    AuditEntry.objects.create(
        at=now(), by=by, action=action, subject=subject[:255], detail=dict(detail or {})
    )


def now() -> datetime:
    """The time of the store's clock, as the database takes it."""
    return datetime.fromtimestamp(wires.wiring().get_clock().now_ms() / 1000, UTC)
