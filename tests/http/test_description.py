"""The server does what `openapi.yaml` says: requests made from it are answered as it says.

The requests come from schemathesis; names in them are those of a topic, a group and messages that
there are, so that they reach what is behind the first look.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from analytics.services.reports import keep_result, request_report
from postdate.wsgi import application
from queues.api.openapi import openapi_document
from queues.services.operations import begin

CHECKS = [
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


schema = schemathesis.openapi.from_dict(openapi_document())
schema.app = application


@pytest.fixture
def known(api: Any) -> dict[str, str]:
    """What a path may name."""
    api.group("billing")
    return {
        "topic": "orders",
        "group": "billing",
        "message_id": api.send(delay="1h")["id"],
        "report_id": finished_report(),
        "operation_id": begin("test", {}, by="test", now_ms=api.wiring.clock.now_ms()).id,
    }


def finished_report() -> str:
    """A report that a run made."""
    begun = request_report(
        report="lateness", from_ms=0, to_ms=1, topic=None, by="test", now_ms=1_790_000_000_000
    )
    sample = Path(__file__).parents[1] / "data" / "reports" / "lateness.json"
    keep_result(begun.run_id, json.loads(sample.read_text()))
    return begun.run_id


@schema.parametrize()
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
def test_every_answer_is_as_described(case: Any, api: Any, known: dict[str, str]) -> None:
    for name in case.path_parameters or {}:
        case.path_parameters[name] = known[name]
    response = case.call(headers={"Authorization": f"Bearer {api.secret}"})
    assert response.status_code < 500 or case.path == "/readyz"
    case.validate_response(response, checks=CHECKS)
