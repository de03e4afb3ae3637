"""Reports: list, ask for, read as JSON, CSV or HTML."""

from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpResponse

from analytics.api.shapes import (
    ReportAnswer,
    ReportList,
    ReportQuery,
    ReportRange,
    ReportRequest,
    ReportSummary,
)
from analytics.files import report_csv, report_html
from analytics.models import ReportRun
from analytics.selectors import reports as selectors
from analytics.services import reports as services
from queues.api.answers import answer, raw_answer
from queues.api.endpoint import INSPECT, MANAGE, Call, endpoint
from queues.api.operationviews import accepted
from queues.api.shapes.messages import PageQuery
from queues.api.shapes.operations import OperationAnswer
from queues.api.telling import moment_or_none
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment, parse_moment
from queues.problems import Problem
from queues.selectors.operations import get_operation


class ReportsView(ApiView):
    """`/reports`."""

    @endpoint(
        "List finished reports",
        scopes=(INSPECT,),
        query=PageQuery,
        gives={200: ReportList},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        size = page_size_of(call.query.page_size)
        position = read_token(["reports"], call.query.page_token)
        before = None if position is None else position[0]
        found = selectors.list_reports(before=before, limit=size + 1, topics=call.caller.topics)
        page = found[:size]
        token = make_token(["reports"], [page[-1].id]) if len(found) > size else ""
        return answer(ReportList([tell_summary(run) for run in page], token))

    @endpoint(
        "Have a report made",
        scopes=(MANAGE,),
        takes=ReportRequest,
        body_optional=True,
        gives={202: OperationAnswer},
        codes=(Code.OUT_OF_BOUNDS, Code.NAME_INVALID, Code.NAME_RESERVED),
    )
    def post(self, call: Call) -> HttpResponse:
        wanted: ReportRequest = call.body
        if wanted.topic or not call.caller.topics.takes_all:
            call.caller.require_topic(wanted.topic or "*")
        begun = services.request_report(
            report=wanted.report,
            from_ms=_moment(wanted.from_, "/from"),
            to_ms=_moment(wanted.to, "/to"),
            topic=wanted.topic,
            by=call.caller.by,
            now_ms=call.now_ms,
            zone=wanted.time_zone or "UTC",
        )
        return accepted(get_operation(begun.operation_id))


class OneReportView(ApiView):
    """`/reports/{id}`."""

    @endpoint(
        "Read a report",
        scopes=(INSPECT,),
        query=ReportQuery,
        gives={200: ReportAnswer},
        forms=("text/csv", "text/html"),
        codes=(Code.REPORT_NOT_FOUND,),
    )
    def get(self, call: Call, report_id: str) -> HttpResponse:
        run = selectors.get_report(report_id)
        if not call.caller.topics.takes_all and not (
            run.topic and call.caller.topics.allow(run.topic)
        ):
            raise Problem(Code.REPORT_NOT_FOUND, "There is no such finished report.")
        if call.query.format == "csv":
            return raw_answer(
                report_csv(run), "text/csv; charset=utf-8", headers=_named(run, "csv")
            )
        if call.query.format == "html":
            return raw_answer(report_html(run), "text/html; charset=utf-8")
        return answer(tell_report(run))


def _named(run: ReportRun, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{run.report}-{run.id}.{ending}"'}


def _moment(given: str | int | None, pointer: str) -> int | None:
    if given is None:
        return None
    at_ms = parse_moment(given)
    if at_ms is None:
        detail = "Write RFC 3339 with a zone, or milliseconds since 1970."
        raise Problem(Code.FIELD_INVALID, detail, pointer=pointer)
    return at_ms


def tell_summary(run: ReportRun) -> ReportSummary:
    """A report without what it says."""
    return ReportSummary(**_head(run))


def tell_report(run: ReportRun) -> ReportAnswer:
    """A whole report."""
    told = dict(run.result or {})
    for name in ("report", "topic", "zone", "range"):
        told.pop(name, None)
    told.setdefault("tracing", True)
    told["rows"] = [selectors.row_values(row) for row in selectors.rows_of(run)]
    head = msgspec.to_builtins(tell_summary(run))
    return msgspec.convert({**told, **head}, ReportAnswer)


def _head(run: ReportRun) -> dict[str, Any]:
    created_ms, finished_ms = _ms(run.created_at), _ms(run.finished_at)
    return {
        "id": run.id,
        "report": run.report,
        "topic": run.topic or None,
        "time_zone": run.time_zone,
        "range": ReportRange(
            from_=format_moment(run.from_ms),
            from_ms=run.from_ms,
            to=format_moment(run.to_ms),
            to_ms=run.to_ms,
        ),
        "created_at": format_moment(created_ms or 0),
        "created_at_ms": created_ms or 0,
        "finished_at": moment_or_none(finished_ms),
        "finished_at_ms": finished_ms,
        "operation_id": run.operation_id,
        "by": run.by,
    }


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
