"""Operations: long work that a request begins, housekeeping carries out, and anybody can watch.

An operation is a row. `begin` writes it and raises the control generation, which housekeeping looks
at four times a second; it then claims the row by compare-and-set and runs it in a thread. Who runs
it holds a kernel lock meanwhile (`scheduler.housekeeping.operations`), so a row that is `running`
and unlocked belongs to nobody: its process died, and the next look takes it up again.

States: `queued` → `running` → `succeeded` | `failed` | `aborted`, and `queued` → `aborted`.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import OperationalError, transaction

from queues import wires
from queues.codes import Code
from queues.limits import OPERATIONS_FORGOTTEN_MAX
from queues.models import Operation
from queues.problems import Problem
from queues.selectors.operations import get_operation
from queues.services.audit import now, record_change
from queues.store.errors import DiskFull, LedgerBusy, StoreClosing, StoreFull
from queues.wires import OperationRunner, UndoableRunner

logger = logging.getLogger(__name__)

#: Progress is written, and an abort heard of, this often.
PROGRESS_MS = 500
#: An operation that was taken up so often without getting on is given up: it kills who runs it.
CLAIMS_MAX = 20
_UNDO = ".undo"
#: What passes: the operation stays as it is, and is taken up again.
_PASSING = (OperationalError, StoreFull, DiskFull, LedgerBusy)


class OperationLeft(Exception):
    """This process stops; another takes the operation up again."""


def begin(
    kind: str, request: dict[str, Any], *, by: str, now_ms: int, total: int | None = None,
    operation_id: str | None = None,
) -> Operation:  # fmt: skip
    """Have an operation carried out; housekeeping claims it within a second.

    A request that names its `topic` or `group` is visible to keys with those patterns. One that is
    begun under the same `operation_id` twice raises Django's `IntegrityError`.
    """
    with transaction.atomic():
        return _create(kind, request, by=by, now_ms=now_ms, total=total, operation_id=operation_id)


def _create(
    kind: str, request: dict[str, Any], *, by: str, now_ms: int, total: int | None,
    undo_of: str = "", operation_id: str | None = None,
) -> Operation:  # fmt: skip
    row = Operation.objects.create(
        id=operation_id or new_id(now_ms), kind=kind, request=request, total=total, by=by,
        created_at=now(), undo_of=undo_of,
    )  # fmt: skip
    record_change(by=by, action="operation.begin", subject=row.id, detail={"kind": kind})
    return row


def new_id(now_ms: int) -> str:
    """32 hex digits that sort by time (UUIDv7's order, without its marks)."""
    return f"{now_ms:012x}{wires.wiring().get_store().disk.random_bytes(10).hex()}"


def runner_of(row: Operation) -> OperationRunner | None:
    """What carries it, or takes it back."""
    return wires.wiring().get_runners().get(row.kind.removesuffix(_UNDO))


def is_undoable(row: Operation) -> bool:
    """Whether its work can be taken back once it is finished."""
    return not row.undo_of and isinstance(runner_of(row), UndoableRunner)


def abort_operation(*, operation_id: str, by: str) -> Operation:
    """Stop it at its next step, or before its first; raises `operation_finished`."""
    queued = Operation.objects.filter(pk=operation_id, state=Operation.State.QUEUED)
    if queued.update(state=Operation.State.ABORTED, abort_asked=True, finished_at=now()):
        _note_abort(operation_id, by)
    else:
        running = Operation.objects.filter(pk=operation_id, state=Operation.State.RUNNING)
        if running.filter(abort_asked=False).update(abort_asked=True):
            _note_abort(operation_id, by)
    row = get_operation(operation_id)
    if row.state in (Operation.State.SUCCEEDED, Operation.State.FAILED):
        raise Problem(Code.OPERATION_FINISHED, f"It is {row.state}.")
    return row


def _note_abort(operation_id: str, by: str) -> None:
    record_change(by=by, action="operation.abort", subject=operation_id)


def undo_operation(*, operation_id: str, by: str, now_ms: int) -> Operation:
    """Take a finished operation back: the operation that does it, the same one when asked again.

    Raises `operation_unfinished`, `not_undoable`. An undoing that failed or was aborted can be
    asked for once more.
    """
    with transaction.atomic():
        row = get_operation(operation_id)
        if not is_undoable(row):
            raise Problem(Code.NOT_UNDOABLE, f"What {row.kind} did cannot be taken back.")
        if row.state not in Operation.FINAL:
            raise Problem(Code.OPERATION_UNFINISHED, f"It is {row.state}; abort it first.")
        before = Operation.objects.filter(pk=row.undone_by).first()
        if before is not None and before.state not in (
            Operation.State.FAILED,
            Operation.State.ABORTED,
        ):
            return before
        undoing = _create(
            row.kind + _UNDO, row.request, by=by, now_ms=now_ms, total=row.done, undo_of=row.id
        )
        mine = Operation.objects.filter(pk=row.id, undone_by=row.undone_by)
        if mine.update(undone_by=undoing.id):
            return undoing
        transaction.set_rollback(True)
    return get_operation(get_operation(operation_id).undone_by)


def forget_operations(now_ms: int, kept_ms: int) -> int:
    """Forget what finished before that time, a bounded number; returns how many.

    What is just being taken back stays until that is done.
    """
    before = datetime.fromtimestamp((now_ms - kept_ms) / 1000, UTC)
    undoing = Operation.objects.exclude(state__in=Operation.FINAL).exclude(undo_of="")
    old = (
        Operation.objects.filter(state__in=Operation.FINAL, finished_at__lt=before)
        .exclude(pk__in=undoing.values("undo_of"))
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    forgotten = list(old[:OPERATIONS_FORGOTTEN_MAX])
    if forgotten:
        Operation.objects.filter(pk__in=forgotten).delete()
    return len(forgotten)


class WrittenProgress:
    """The progress of a row, written now and then."""

    def __init__(self, operation_id: str, is_stopping: Callable[[], bool]) -> None:
        self._row = Operation.objects.filter(pk=operation_id)
        self._is_stopping = is_stopping
        self._looked_ms: int | None = None
        self._aborted = False
        self._told: dict[str, int] = {}

    def report(self, done: int, total: int | None = None) -> None:
        """Say how much is done."""
        self._told["done"] = done
        if total is not None:
            self._told["total"] = total
        self._look()

    @property
    def aborted(self) -> bool:
        """Whether someone asked to stop."""
        self._look()
        return self._aborted

    @property
    def was_aborted(self) -> bool:
        """Whether the runner was told to stop."""
        return self._aborted

    @property
    def told(self) -> dict[str, int]:
        """What the runner last said."""
        return self._told

    def _look(self) -> None:
        if self._is_stopping():
            raise OperationLeft
        monotonic_ms = wires.wiring().get_clock().monotonic_ms()
        if self._looked_ms is not None and monotonic_ms - self._looked_ms < PROGRESS_MS:
            return
        self._looked_ms = monotonic_ms
        try:
            fields: dict[str, Any] = {**self._told, "touched_at": now()}
            if self._told:
                fields["claims"] = 0
            self._row.update(**fields)
            self._aborted = bool(self._row.values_list("abort_asked", flat=True).first())
        except OperationalError:
            # A database that is away for a moment ends no work: the next look tries again.
            logger.warning("The progress of an operation could not be written.", exc_info=True)


def claim(operation_id: str) -> Operation | None:
    """Take it up (its lock is held); None when it is finished, or was given up just now."""
    for state in (Operation.State.QUEUED, Operation.State.RUNNING):
        row = Operation.objects.filter(pk=operation_id, state=state).first()
        if row is None:
            continue
        if row.claims >= CLAIMS_MAX:
            error = {"code": "given_up", "detail": f"It was taken up {row.claims} times in vain."}
            _finish(row, Operation.State.FAILED, error=error)
            return None
        mine = Operation.objects.filter(pk=operation_id, state=state, claims=row.claims)
        if mine.update(state=Operation.State.RUNNING, claims=row.claims + 1, touched_at=now()):
            return row
    return None


def carry_out(operation_id: str, *, is_stopping: Callable[[], bool]) -> bool:
    """Run the operation to its end, its lock being held; whether it came to one."""
    row = claim(operation_id)
    if row is None:
        return True
    progress = WrittenProgress(row.id, is_stopping)
    try:
        result = _run(row, progress)
    except (OperationLeft, StoreClosing):
        return False
    except _PASSING:
        logger.warning("Operation %s (%s) is tried again.", row.id, row.kind, exc_info=True)
        Operation.objects.filter(pk=row.id).update(claims=row.claims)  # Nobody died of it.
        return False
    except Problem as problem:
        error = {"code": problem.code.word, "detail": problem.detail}
        _finish(row, Operation.State.FAILED, error=error, told=progress.told)
        return True
    except Exception as error:
        logger.exception("Operation %s (%s) failed.", row.id, row.kind)
        told = {"code": Code.INTERNAL_ERROR.word, "detail": f"{type(error).__name__}: {error}"}
        _finish(row, Operation.State.FAILED, error=told, told=progress.told)
        return True
    state = Operation.State.ABORTED if progress.was_aborted else Operation.State.SUCCEEDED
    _finish(row, state, result=result, told=progress.told)
    return True


def _run(row: Operation, progress: WrittenProgress) -> dict[str, Any]:
    runner = runner_of(row)
    if runner is None:
        raise Problem(Code.INTERNAL_ERROR, f"This version knows no operation {row.kind}.")
    if not row.undo_of:
        return runner.run(row.request, progress)
    if not isinstance(runner, UndoableRunner):
        raise Problem(Code.NOT_UNDOABLE)
    undone = get_operation(row.undo_of)
    return runner.undo(undone.request, undone.result or {}, progress)


def _finish(
    row: Operation, state: str, *, result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None, told: dict[str, int] | None = None,
) -> None:  # fmt: skip
    """Write how it ended, by compare-and-set."""
    Operation.objects.filter(pk=row.id).exclude(state__in=Operation.FINAL).update(
        state=state, result=result, error=error, finished_at=now(), touched_at=now(), **told or {}
    )
