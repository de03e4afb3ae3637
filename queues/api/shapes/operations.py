"""The shapes of operations: long work that answers 202."""

from typing import Any, Literal

from msgspec import Struct

OperationState = Literal["queued", "running", "succeeded", "failed", "aborted"]


class OperationProgress(Struct):
    """How far an operation is; the total is null until it is known."""

    done: int
    total: int | None


class OperationError(Struct):
    """Why an operation failed."""

    code: str
    detail: str


class OperationAnswer(Struct, kw_only=True):
    """Long work, and how far it is."""

    id: str
    kind: str
    state: OperationState
    #: It came to a final state.
    done: bool
    error: OperationError | None
    progress: OperationProgress
    result: dict[str, Any] | None
    #: Someone asked it to stop.
    abort_asked: bool
    #: It can be taken back once it is done.
    undoable: bool
    #: The operation that this one takes back, and the one that takes this one back.
    undo_of: str | None
    undone_by: str | None
    by: str
    created_at: str
    created_at_ms: int
    finished_at: str | None
    finished_at_ms: int | None


class OperationList(Struct):
    """A page of operations, newest first."""

    items: list[OperationAnswer]
    next_page_token: str


class OperationQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which operations to list."""

    kind: str | None = None
    state: OperationState | None = None
    page_size: str | None = None
    page_token: str | None = None
