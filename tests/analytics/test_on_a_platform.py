"""A report of a running platform, over the log that it wrote itself."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.platforms import await_that, client_of, running_platform

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]
#: Spark starts cold, at the lowest priority, on whatever machine this is.
REPORT_S = 900


@pytest.mark.usefixtures("java")
def test_a_platform_reports_on_what_it_did(tmp_path: Path) -> None:
    with running_platform(tmp_path) as running, client_of(running) as client:

        def call(method: str, path: str, body: object = None, status: int = 200) -> Any:
            statuses = (status, 201) if method == "PUT" else (status,)
            return client.expect(method, f"/api/v1/{path}", body, statuses=statuses).body

        call("PUT", "topics/orders", {"queues": 2})
        group = {"subscriptions": [{"topic": "orders"}], "start_from": "earliest"}
        call("PUT", "groups/billing", group)
        bodies = [{"body": "x", "delay_level": 1}, {"body": "y", "delay_ms": 800}] * 5
        for body in bodies:
            call("POST", "topics/orders/messages", body, status=201)
        far = call("POST", "topics/orders/messages", {"body": "z", "delay": "1h"}, status=201)
        call("DELETE", f"messages/{far['id']}")
        received: list[str] = []

        def all_received() -> bool:
            asked = {"max_messages": 32, "wait_seconds": 1}
            messages = call("POST", "groups/billing/receive", asked)["messages"]
            received.extend(one["receipt"] for one in messages)
            return len(received) == len(bodies)

        await_that(all_received, within_s=120, what="ten messages are received")
        call("POST", "groups/billing/ack", {"receipts": received})
        operation = call("POST", "reports", {}, status=202)

        def finished() -> Any:
            found = call("GET", f"operations/{operation['id']}")
            return found if found["done"] else None

        done = await_that(finished, within_s=REPORT_S, what="the report is made")
        assert done["state"] == "succeeded", done
        report = call("GET", f"reports/{done['result']['report_id']}")
        totals = report["totals"]
        assert (totals["delivered"], totals["early"], totals["cancelled"]) == (10, 0, 1)
        assert {(row["topic"], row["kind"]) for row in report["rows"]} == {
            ("orders", "level"),
            ("orders", "timed"),
        }
        assert sum(one["n"] for one in report["pickup"]["totals"]) == len(bodies)
        assert sum(one["n"] for one in report["end_to_end"]["totals"]) == len(bodies)
        assert report["log"]["damaged"] == 0
    # Its processes are gone; so is every one of Spark's.
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in listed.stdout
