"""Operations, reports, and the audit log."""

from collections.abc import Callable
from typing import Literal

import msgspec

from postdate.client.calls import Call, path_of, without_none
from postdate.client.errors import OperationFailed
from postdate.client.pausing import pause
from postdate.client.shapes.control import (
    AuditPage,
    Operation,
    OperationPage,
    Report,
    ReportPage,
)
from postdate.client.sync.transport import Transport
from postdate.client.writing import Moment, write_moment

_operation = msgspec.json.Decoder(Operation)
_operations = msgspec.json.Decoder(OperationPage)
_report = msgspec.json.Decoder(Report)
_reports = msgspec.json.Decoder(ReportPage)
_audit = msgspec.json.Decoder(AuditPage)

_WELL = "succeeded"


class Operations:
    """Long work that goes on by itself."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, operation_id: str) -> Operation:
        """How far it is."""
        path = path_of("operations", operation_id)
        return self._transport.run(Call(method="GET", path=path, decoder=_operation))

    def list(self, *, page_size: int | None = None, page_token: str | None = None) -> OperationPage:
        """A page of them, newest first."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/operations", decoder=_operations, query=query)
        return self._transport.run(call)

    def abort(self, operation_id: str) -> Operation:
        """Have it stop at its next step."""
        path = path_of("operations", operation_id, "abort")
        call = Call(method="POST", path=path, decoder=_operation, body={})
        return self._transport.run(call)

    def undo(self, operation_id: str) -> Operation:
        """Take back what it did, as an operation of its own."""
        path = path_of("operations", operation_id, "undo")
        call = Call(method="POST", path=path, decoder=_operation, body={})
        return self._transport.run(call)

    def wait(
        self,
        operation_id: str,
        *,
        on_progress: Callable[[Operation], object] | None = None,
        poll_s: float = 0.5,
    ) -> Operation:
        """The operation once it is done; raises `OperationFailed` if it did not succeed."""
        while True:
            operation = self.get(operation_id)
            if on_progress is not None:
                on_progress(operation)
            if operation.done:
                break
            pause(poll_s)
        if operation.state != _WELL:
            raise OperationFailed(operation.id, operation.state, operation.error)
        return operation


class Reports:
    """Lateness reports, and the audit log."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, page_size: int | None = None, page_token: str | None = None) -> ReportPage:
        """A page of finished runs."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/reports", decoder=_reports, query=query)
        return self._transport.run(call)

    def get(self, report_id: str) -> Report:
        """A finished run."""
        path = path_of("reports", report_id)
        return self._transport.run(Call(method="GET", path=path, decoder=_report))

    def export(self, report_id: str, format_: Literal["json", "csv", "html"]) -> str:
        """A finished run as a text of that format."""
        call: Call[None] = Call(
            method="GET",
            path=path_of("reports", report_id),
            decoder=None,
            query={"format": format_},
        )
        return self._transport.text(call)

    def start(
        self,
        report: str = "lateness",
        *,
        from_: Moment | None = None,
        to: Moment | None = None,
        topic: str | None = None,
        time_zone: str | None = None,
    ) -> Operation:
        """Run a report; its operation's `result` holds the `report_id`.

        Hours are told in `time_zone`, such as `Europe/Berlin`.
        """
        body = without_none(
            **{"from": None if from_ is None else write_moment(from_)},
            report=report,
            to=None if to is None else write_moment(to),
            topic=topic,
            time_zone=time_zone,
        )
        call = Call(method="POST", path="/reports", decoder=_operation, body=body)
        return self._transport.run(call)

    def audit_log(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> AuditPage:
        """Who changed what, newest first."""
        query = {"page_size": page_size, "page_token": page_token or None}
        call = Call(method="GET", path="/audit-log", decoder=_audit, query=query)
        return self._transport.run(call)
