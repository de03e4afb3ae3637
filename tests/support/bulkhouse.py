"""Housekeeping for tests of operations: it runs them when a test says so."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queues.services.bulkrunners import bulk_runners
from scheduler.housekeeping.operations import Operations

if TYPE_CHECKING:
    from tests.http.conftest import Api

NOW_MS = 1_790_000_000_000


class House:
    """Housekeeping that runs operations when a test says so."""

    def __init__(self, api: "Api", folder: Path) -> None:
        self.api, self.wiring = api, api.wiring
        self.wiring.runners = {runner.kind: runner for runner in bulk_runners()}
        self.waiting: list[Callable[[], None]] = []
        self.operations = Operations(
            self.wiring.store, folder, threading.Event(), start=self.waiting.append
        )

    def run(self) -> None:
        self.operations.look(self.wiring.clock.now_ms())
        while self.waiting:
            self.waiting.pop(0)()

    def plan(self, verb: str, **request: Any) -> Any:
        answer = self.api.post(f"bulk/{verb}", {"dry_run": True, **request})
        assert answer.status == 200, answer.json
        return answer.json

    def begin(self, verb: str, plan_id: str) -> str:
        answer = self.api.post(f"bulk/{verb}", {"plan_id": plan_id})
        assert answer.status == 202, answer.json
        assert answer.headers["Location"] == f"/api/v1/operations/{answer.json['id']}"
        return str(answer.json["id"])

    def do(self, verb: str, **request: Any) -> Any:
        """Plan and carry out; the finished operation."""
        one = self.begin(verb, self.plan(verb, **request)["plan_id"])
        self.run()
        return self.done(one)

    def done(self, operation_id: str) -> Any:
        told = self.api.get(f"operations/{operation_id}").json
        assert told["done"], told
        return told

    def undo(self, operation_id: str) -> Any:
        answer = self.api.post(f"operations/{operation_id}/undo")
        assert answer.status == 202, answer.json
        self.run()
        return self.done(answer.json["id"])

    def states(self, sent: list[Any]) -> list[str]:
        return [self.api.get(f"messages/{one['id']}").json["state"] for one in sent]

    def dues(self, sent: list[Any]) -> list[int]:
        told = [self.api.get(f"messages/{one['id']}").json["due_at_ms"] for one in sent]
        return [due_ms - NOW_MS for due_ms in told]
