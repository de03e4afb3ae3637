"""Operations as they are looked at: one, a page of them, and those that nobody has finished."""

from queues.access import Caller
from queues.codes import Code
from queues.models import Operation
from queues.problems import Problem

#: Operations that one look of housekeeping takes up at the most; the others are seen by the next.
UNFINISHED_MAX = 1000
#: Rows that one page reads at the most to find those that a limited key may see.
_READ_MAX = 10_000


def get_operation(operation_id: str, *, caller: Caller | None = None) -> Operation:
    """The operation; raises `operation_not_found`, also for one outside the caller's patterns."""
    found = Operation.objects.filter(pk=operation_id[:32]).first()
    if found is None or found.id != operation_id or not _may_see(found, caller):
        raise Problem(Code.OPERATION_NOT_FOUND, f"There is no operation {operation_id[:64]!r}.")
    return found


def list_operations(
    *, caller: Caller | None = None, kind: str | None = None, state: str | None = None,
    before: str | None = None, limit: int,
) -> list[Operation]:  # fmt: skip
    """Operations newest first, from behind the one named `before`."""
    rows = Operation.objects.order_by("-id")
    if kind is not None:
        rows = rows.filter(kind=kind)
    if state is not None:
        rows = rows.filter(state=state)
    if before is not None:
        rows = rows.filter(id__lt=before)
    found: list[Operation] = []
    for row in rows[:_READ_MAX].iterator(chunk_size=200):
        if _may_see(row, caller):
            found.append(row)
            if len(found) == limit:
                break
    return found


def unfinished_operations() -> list[Operation]:
    """What is queued or was begun, oldest first."""
    unfinished = (Operation.State.QUEUED, Operation.State.RUNNING)
    return list(Operation.objects.filter(state__in=unfinished).order_by("id")[:UNFINISHED_MAX])


def is_finished(row: Operation) -> bool:
    """Whether it came to a final state."""
    return row.state in Operation.FINAL


def _may_see(row: Operation, caller: Caller | None) -> bool:
    """What a limited key began is its own; of the rest it sees what names its topics or groups."""
    if caller is None or row.by == caller.by:
        return True
    if caller.topics.takes_all and caller.groups.takes_all:
        return True
    named = [(caller.topics, row.request.get("topic")), (caller.groups, row.request.get("group"))]
    known = [patterns.allow(name) for patterns, name in named if isinstance(name, str)]
    return bool(known) and all(known)
