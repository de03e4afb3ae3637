"""The server does what `openapi.yaml` says: requests made from it are answered as it says.

The requests come from schemathesis, right ones and wrong ones. In most of them the names are those
of a topic, a group and messages that there are, so that they reach what is behind the first look.
A few of each address are tried here; `FUZZ_CASES=300` tries many more, and each time others.
"""

import json
import os
import random
from copy import deepcopy
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
#: Cases of each address.
CASES = int(os.environ.get("FUZZ_CASES", "8"))
#: Of so many cases one keeps the names that it was made with.
STRANGE_NAMES = 4


# A copy: what schemathesis does with it is its own affair.
schema = schemathesis.openapi.from_dict(deepcopy(openapi_document()))
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
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
def test_every_answer_is_as_described(case: Any, api: Any, known: dict[str, str]) -> None:
    parts = case.path_parameters or {}
    # Decided by the case itself, so that a failing one fails again.
    if random.Random(repr(parts)).randrange(STRANGE_NAMES):
        parts.update({name: known[name] for name in parts if name in known})
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_seconds"), int | float):
        case.body = {**case.body, "wait_seconds": 0}  # A right one, and nobody waits for it.
    response = case.call(headers={"Authorization": f"Bearer {api.secret}"})
    assert response.status_code < 500 or case.path == "/readyz"
    case.validate_response(response, checks=CHECKS)
