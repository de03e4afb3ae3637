"""A group as the API shows it, in memory: for tests of consumers without a platform.

A lease lasts until it is settled; `expire` ends one as the server would.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

THEN = {"delivered_at": "2026-01-31T09:30:00.000Z", "delivered_at_ms": 1769851800000}
UNTIL = {"lease_expires_at": "2026-01-31T09:31:00.000Z", "lease_expires_at_ms": 1769851860000}
#: A poll that finds nothing waits so long at most: nobody's time depends on it.
POLL_S = 0.02


class FakeGroup:
    """One group; call it with a request."""

    def __init__(
        self, count: int = 0, *, fail_first: int = 0, bodies: Mapping[str, str] | None = None
    ) -> None:
        self._changed = threading.Condition()
        self._ready: list[tuple[str, int]] = []
        self._leased: dict[str, tuple[str, int]] = {}
        self._receipts = 0
        #: Bodies of messages as JSON, digit by digit; the others have their id.
        self._bodies = bodies or {}
        #: How many of the next requests are answered with 503.
        self.failing = fail_first
        #: What it was told, in order: verb and message, and the rest of the request.
        self.told: list[tuple[str, str]] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.send(*(f"{number:032x}" for number in range(count)))

    def send(self, *ids: str) -> None:
        with self._changed:
            self._ready += [(one, 1) for one in ids]
            self._changed.notify_all()

    def expire(self) -> None:
        """Every lease runs out."""
        with self._changed:
            self._ready += [(one, attempt + 1) for one, attempt in self._leased.values()]
            self._leased.clear()

    def ids(self, verb: str) -> list[str]:
        """Of which messages it was told this."""
        with self._changed:
            return [one for told, one in self.told if told == verb]

    @property
    def leased(self) -> int:
        return len(self._leased)

    def until(self, condition: Callable[["FakeGroup"], bool], within_s: float = 30) -> None:
        """Wait until the condition holds; it may depend on more than this group knows of."""
        give_up_s = time.monotonic() + within_s
        with self._changed:
            while not condition(self):
                assert time.monotonic() < give_up_s, self.told
                self._changed.wait(POLL_S)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rpartition("/")[2]
        asked = json.loads(request.content)
        with self._changed:
            self.requests.append((verb, asked))
            if self.failing:
                self.failing -= 1
                return httpx.Response(503, json={"code": "store_closing"})
            if verb == "receive":
                answer = self._receive(asked)
            else:
                answer = {"results": [self._settle(verb, one) for one in asked["receipts"]]}
            self._changed.notify_all()
        text = json.dumps(answer)
        for one, body in self._bodies.items():
            text = text.replace(f'"body": "{one}"', f'"body": {body}')
        return httpx.Response(200, text=text)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """For an asynchronous client: nothing here waits longer than `POLL_S`."""
        return self(request)

    def _receive(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._changed.wait_for(lambda: bool(self._ready), POLL_S)
        count = asked["max_messages"]
        found, self._ready = self._ready[:count], self._ready[count:]
        return {"messages": [self._lease(one, attempt) for one, attempt in found]}

    def _lease(self, one: str, attempt: int) -> dict[str, Any]:
        receipt = self._receipt(one, attempt)
        message = {"id": one, "topic": "orders", "queue": 0, "body": one, "attempt": attempt}
        return {**message, "receipt": receipt, "keys": [], "properties": {}, **THEN, **UNTIL}

    def _receipt(self, one: str, attempt: int) -> str:
        self._receipts += 1
        receipt = f"r{self._receipts}"
        self._leased[receipt] = (one, attempt)
        return receipt

    def _settle(self, verb: str, receipt: str) -> dict[str, Any]:
        found = self._leased.pop(receipt, None)
        if found is None:
            return {"receipt": receipt, "outcome": "expired"}
        one, attempt = found
        self.told.append((verb, one))
        if verb == "extend":
            new = self._receipt(one, attempt)
            return {"receipt": receipt, "outcome": "extended", "new_receipt": new, **UNTIL}
        if verb == "release":
            self._ready.append((one, attempt))
        words = {"ack": "acked", "retry": "retrying", "dead-letter": "dead", "release": "released"}
        return {"receipt": receipt, "outcome": words[verb]}
