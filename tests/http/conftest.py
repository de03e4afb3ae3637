"""The API over a store of each test's own, with a clock that stands still."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from queues import wires
from queues.selectors import control
from queues.services import keyuse, sightings
from queues.store import Sizes, Store, StoreSettings
from queues.testing import OwnWiring, issue_secret
from tests.support.clock import ManualClock
from tests.support.visiting import Console

SMALL = StoreSettings(
    sizes=Sizes(
        segment_bytes=16 << 20,
        consume_queue_units=4096,
        index_slots=1024,
        index_entries=20_000,
        timer_log_bytes=1 << 20,
        timer_window_slots=3600,
    ),
    ballast_bytes=1 << 16,
)


@dataclass
class Answer:
    """What came back."""

    status: int
    json: Any
    headers: Any
    content: bytes = b""

    @property
    def code(self) -> str:
        return self.json["code"]

    @property
    def pointers(self) -> list[str]:
        return [error.get("pointer", error.get("parameter")) for error in self.json["errors"]]


class Api:
    """A client with a key."""

    def __init__(self, wiring: OwnWiring, secret: str | None) -> None:
        self.wiring, self.secret = wiring, secret
        self._client = Client(raise_request_exception=True)

    def call(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret is not None:
            named.setdefault("Authorization", f"Bearer {self.secret}")
        response = self._client.generic(
            method,
            path if path.startswith("/") else f"/api/v1/{path}",
            sent,
            content_type="application/json",
            headers=named,
        )
        content = response.content
        assert response.status_code == 204 or b"<html" not in content.lower()
        parsed = json.loads(content) if content and "json" in response["Content-Type"] else None
        if response.status_code >= 400:
            assert response["Content-Type"] == "application/problem+json"
            assert parsed["status"] == response.status_code
        return Answer(response.status_code, parsed, response.headers, content)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("PUT", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self.call("DELETE", path, **headers)

    def send(self, topic: str = "orders", **fields: Any) -> Any:
        answer = self.post(f"topics/{topic}/messages", {"body": "hello", **fields})
        assert answer.status == 201, answer.json
        return answer.json

    def group(self, name: str = "billing", topic: str = "orders", **fields: Any) -> Any:
        body = {"subscriptions": [{"topic": topic}], "start_from": "earliest", **fields}
        answer = self.put(f"groups/{name}", body)
        assert answer.status in (200, 201), answer.json
        return answer.json

    def receive(self, group: str = "billing", **fields: Any) -> list[Any]:
        answer = self.post(f"groups/{group}/receive", fields)
        assert answer.status == 200, answer.json
        return answer.json["messages"]

    def as_(self, **limits: Any) -> "Api":
        """The same API with a key of fewer rights."""
        return Api(self.wiring, issue_secret(name="limited", **limits))

    def expire_leases(self) -> int:
        """Do what housekeeping does with leases that ran out."""
        return self.wiring.consuming.expire(self.wiring.clock.now_ms())

    def hand_over_what_is_due(self) -> int:
        """Do what the loops do: hand over whatever is due by the clock."""
        store = self.wiring.store
        handed = 0
        for topic in ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"):
            for queue_id in store.queue_ids(topic):
                end = store.queue_bounds(topic, queue_id).max_offset
                found = store.schedule(topic, queue_id, 0, end)
                due = (found.settled == 0) & (found.due_ms <= self.wiring.clock.now_ms())
                offsets = np.flatnonzero(due) + found.start
                handed += store.hand_over(topic, queue_id, offsets).handed
        return handed


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_790_000_000_000)


@pytest.fixture
def wiring(
    tmp_path: Path,
    clock: ManualClock,
    db: None,  # noqa: ARG001 (keys are rows)
    monkeypatch: Any,
) -> Iterator[OwnWiring]:
    before = wires.wiring()
    own = OwnWiring(Store.open(tmp_path / "store", SMALL, clock=clock), clock)
    wires.plug_in(own)
    control.cache.forget()
    for noted in (keyuse.uses, sightings.sightings):
        monkeypatch.setattr(noted, "_start", lambda _: None)
        monkeypatch.setattr(noted, "_noted", {})
        monkeypatch.setattr(noted, "_unwritten", {})
    yield own
    wires.plug_in(before)
    control.cache.forget()
    own.close()


@pytest.fixture(autouse=True)
def commits_at_once(monkeypatch: Any) -> None:
    """In a test's transaction nothing commits: what waits for that is done at once."""
    monkeypatch.setattr(transaction, "on_commit", lambda work, **_: work())


@pytest.fixture
def api(wiring: OwnWiring) -> Api:
    return Api(wiring, issue_secret())


@pytest.fixture
def console(api: Api) -> Console:
    """An administrator's browser."""
    return Console(api, User.objects.create_superuser("ada", password="lovelace"))
