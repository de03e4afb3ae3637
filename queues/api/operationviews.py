"""Operations: look at long work, stop it, take it back."""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.endpoint import CONSUME, INSPECT, MANAGE, SEND, Call, endpoint
from queues.api.shapes.messages import NoFields
from queues.api.shapes.operations import (
    OperationAnswer,
    OperationError,
    OperationList,
    OperationProgress,
    OperationQuery,
)
from queues.api.telling import moment_or_none
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment
from queues.selectors.operations import get_operation, is_finished, list_operations
from queues.services.operations import abort_operation, is_undoable, undo_operation

if TYPE_CHECKING:
    from queues.models import Operation


class OperationsView(ApiView):
    """`/operations`."""

    @endpoint(
        "List operations",
        scopes=(INSPECT,),
        query=OperationQuery,
        gives={200: OperationList},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        query: OperationQuery = call.query
        size = page_size_of(query.page_size)
        listing = ["operations", query.kind, query.state]
        position = read_token(listing, query.page_token)
        found = list_operations(
            caller=call.caller,
            kind=query.kind,
            state=query.state,
            before=None if position is None else position[0],
            limit=size + 1,
        )
        page = found[:size]
        token = make_token(listing, [page[-1].id]) if len(found) > size else ""
        return answer(OperationList([tell_operation(row) for row in page], token))


class OneOperationView(ApiView):
    """`/operations/{id}`."""

    @endpoint(
        "See how far an operation is",
        scopes=(INSPECT, MANAGE, SEND, CONSUME),
        gives={200: OperationAnswer},
        codes=(Code.OPERATION_NOT_FOUND,),
    )
    def get(self, call: Call, operation_id: str) -> HttpResponse:
        return answer(tell_operation(get_operation(operation_id, caller=call.caller)))


class AbortView(ApiView):
    """`/operations/{id}/abort`."""

    @endpoint(
        "Stop an operation",
        scopes=(MANAGE,),
        takes=NoFields,
        body_optional=True,
        gives={200: OperationAnswer},
        codes=(Code.OPERATION_NOT_FOUND, Code.OPERATION_FINISHED),
    )
    def post(self, call: Call, operation_id: str) -> HttpResponse:
        get_operation(operation_id, caller=call.caller)
        row = abort_operation(operation_id=operation_id, by=call.caller.by)
        return answer(tell_operation(row))


class UndoView(ApiView):
    """`/operations/{id}/undo`."""

    @endpoint(
        "Take back what an operation did",
        scopes=(MANAGE,),
        takes=NoFields,
        body_optional=True,
        gives={202: OperationAnswer},
        codes=(Code.OPERATION_NOT_FOUND, Code.OPERATION_UNFINISHED, Code.NOT_UNDOABLE),
    )
    def post(self, call: Call, operation_id: str) -> HttpResponse:
        get_operation(operation_id, caller=call.caller)
        row = undo_operation(operation_id=operation_id, by=call.caller.by, now_ms=call.now_ms)
        return accepted(row)


def accepted(row: "Operation") -> HttpResponse:
    """The 202 that long work answers with."""
    headers = {"Location": f"/api/v1/operations/{row.id}"}
    return answer(tell_operation(row), status=202, headers=headers)


def tell_operation(row: "Operation") -> OperationAnswer:
    """An operation as the API shows it."""
    created_ms, finished_ms = _ms(row.created_at), _ms(row.finished_at)
    return OperationAnswer(
        id=row.id,
        kind=row.kind,
        state=row.state,  # type: ignore[arg-type]
        done=is_finished(row),
        error=None if row.error is None else msgspec.convert(row.error, OperationError),
        progress=OperationProgress(row.done, row.total),
        result=row.result,
        abort_asked=row.abort_asked,
        undoable=is_undoable(row),
        undo_of=row.undo_of or None,
        undone_by=row.undone_by or None,
        by=row.by,
        created_at=format_moment(created_ms or 0),
        created_at_ms=created_ms or 0,
        finished_at=moment_or_none(finished_ms),
        finished_at_ms=finished_ms,
    )


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
