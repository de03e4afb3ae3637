"""The audit log."""

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.endpoint import INSPECT, Call, endpoint
from queues.api.shapes.control import AuditEntryAnswer, AuditLog
from queues.api.shapes.messages import PageQuery
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment
from queues.selectors.audit import list_entries

_LISTING = ("audit-log",)


class AuditLogView(ApiView):
    """`/audit-log`."""

    @endpoint(
        "See who changed what",
        scopes=(INSPECT,),
        query=PageQuery,
        gives={200: AuditLog},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        size = page_size_of(call.query.page_size)
        position = read_token(_LISTING, call.query.page_token)
        before = None if position is None else position[0]
        found = list_entries(caller=call.caller, before=before, limit=size + 1)
        page = found[:size]
        token = make_token(_LISTING, [page[-1].pk]) if len(found) > size else ""
        items = []
        for entry in page:
            at_ms = round(entry.at.timestamp() * 1000)
            items.append(
                AuditEntryAnswer(
                    at=format_moment(at_ms),
                    at_ms=at_ms,
                    by=entry.by,
                    action=entry.action,
                    subject=entry.subject,
                    detail=entry.detail,
                    before=entry.before,
                    after=entry.after,
                )
            )
        return answer(AuditLog(items, token))
