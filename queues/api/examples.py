"""Examples in the description: one for each request and answer, made of its schema.

A value is known by its field's name, whatever shape it stands in, so a new shape has an example
from its first day. What a request holds is said by shape where not every field makes sense at once;
otherwise a request shows the fields that it needs. A test holds every example against its schema.
"""

import re
from typing import Any

from queues.codes import Code

_ID = "01a1ff9fc3c37dee8effcfb10dd9c72f"
_MOMENT, _MOMENT_MS = "2026-01-31T09:30:00.000Z", 1769851800000
_RECEIPT = "KAZAzVkNicy0GHioTEJiEAEAAQABAAAA-UUqlb7LFwAE8aD_oQEAAG9yZGVycwAAAAAAAAAA"

#: What a field of this name holds.
_VALUES: dict[str, Any] = {
    "id": _ID,
    "message_id": _ID,
    "operation_id": "5f0c7d3a9b1e4f62a8d9c0b1e2f3a4b5",
    "plan_id": "9c0b1e2f3a4b5f0c7d3a9b1e4f62a8d9",
    "report_id": "a8d9c0b1e2f3a4b55f0c7d3a9b1e4f62",
    "topic": "orders",
    "group": "billing",
    "consumer_id": "billing-1",
    "body": {"order": 7},
    "tag": "order-timeout",
    "keys": ["order-7"],
    "properties": {"region": "eu"},
    "receipt": _RECEIPT,
    "receipts": [_RECEIPT],
    "new_receipt": _RECEIPT,
    "reason": "ValueError: no such order",
    "by": "key:shop",
    "status": 201,
    "version": 1,
    "attempt": 1,
    "attempts": 1,
    "level": 3,
    "delay_level": 3,
    "delay": "10s",
    "delay_ms": 10_000,
    "max_retries": 16,
    "retry_queues": 1,
    "queues": 8,
    "tags": "*",
    "next_page_token": "",
    "holder": "scheduler-1",
    "loop": "levels",
    "action": "topic.change",
    "subject": "orders",
    "before": {"queues": 4},
    "after": {"queues": 8},
    "event": "sent",
    "detail": {},
    "engine": "wheel",
    "name": "store",
    "lateness_ms": 1,
    "step_ms": 3_600_000,
    "count": 42,
    "kind": "timed",
}
#: Requests of which not every field makes sense at once.
_REQUESTS: dict[str, Any] = {
    "SendRequest": {
        "body": {"order": 7, "do": "close if unpaid"},
        "delay": "30m",
        "tag": "order-timeout",
        "keys": ["order-7"],
    },
    "BatchRequest": {
        "messages": [
            {"body": "now"},
            {"body": {"order": 7}, "deliver_at": _MOMENT, "idempotency_key": "order-7-timeout"},
        ]
    },
    "MoveRequest": {"delay": "1h"},
    "TopicRequest": {"queues": 8},
    "GroupRequest": {
        "subscriptions": [{"topic": "orders", "tags": "order-timeout || order-paid"}],
        "max_retries": 16,
        "retry_policy": {"type": "exponential", "initial": "5s", "factor": 2, "max": "2h"},
        "start_from": "latest",
    },
    "ReceiveRequest": {"max_messages": 32, "wait_seconds": 20, "lease_seconds": 60},
    "ExtendRequest": {"receipts": [_RECEIPT], "lease_seconds": 60},
    "ResetRequest": {"to": _MOMENT},
    "BulkRequest": {"filter": {"topic": "orders", "tag": "order-timeout"}, "dry_run": True},
    "BulkMoveRequest": {
        "filter": {"topic": "orders"},
        "to": {"shift": "1h"},
        "dry_run": True,
    },
    "RetryRequest": {"receipts": [_RECEIPT], "reason": "ValueError: no such order"},
    "DeadLetterRequest": {"receipts": [_RECEIPT], "reason": "garbage"},
    "RedriveRequest": {"all": True, "dry_run": True},
    "ReportRequest": {"report": "lateness", "from": _MOMENT, "topic": "orders"},
}
#: Fields that are there in some answers alone.
_SELDOM = frozenset({
    "code", "pointer", "count_at_least", "encoding", "parked_reason", "payload_gone", "paused",
    "undoes", "undone_by", "idempotency_replayed",
})  # fmt: skip
#: A shape within a shape within a shape …: further down nothing is shown.
_DEPTH_MAX = 6
_REF = "#/components/schemas/"


class Examples:
    """Examples over the shapes of one description."""

    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components

    def of_request(self, schema: dict[str, Any]) -> Any:
        """An example of a request: what was chosen for its shape, else what it needs."""
        named = self._named(schema)
        chosen = _REQUESTS.get(str(schema.get("$ref", "")).removeprefix(_REF))
        if chosen is not None:
            return chosen
        needed = named.get("required", [])
        fields = named.get("properties", {})
        return {name: self._of(fields[name], name, 0) for name in needed}

    def of_answer(self, schema: dict[str, Any]) -> Any:
        """An example of an answer, with every field."""
        return self._of(schema, "", 0)

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            found: dict[str, Any] = self._components[schema["$ref"].removeprefix(_REF)]
            return found
        return schema

    def _of(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        schema = self._named(schema)
        for choices in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
            if choices:
                known = _VALUES.get(name)
                return known if known in choices else choices[0]
        if "anyOf" in schema:
            return self._of_any(schema["anyOf"], name, depth)
        match schema.get("type"):
            case "object":
                return self._of_object(schema, name, depth)
            case "array":
                known = _VALUES.get(name)
                shown = isinstance(known, list)
                return known if shown else [self._of(schema.get("items", {}), name, depth + 1)]
            case "string":
                return _text(name)
            case "integer" | "number":
                return _number(name, schema)
            case "boolean":
                return name in ("done", "ready", "ok", "ready_exact")
        return _VALUES.get(name)

    def _of_any(self, choices: list[dict[str, Any]], name: str, depth: int) -> Any:
        real = [one for one in choices if one != {"type": "null"}]
        return self._of(real[0], name, depth) if real and depth < _DEPTH_MAX else None

    def _of_object(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        if "properties" not in schema:
            known = _VALUES.get(name)
            return known if isinstance(known, dict) else {}
        # What only a refused item or an estimate shows stands not beside what the others show.
        needed = set(schema.get("required", []))
        return {
            field: self._of(found, field, depth + 1)
            for field, found in schema["properties"].items()
            if field in needed or field not in _SELDOM
        }


def _text(name: str) -> str:
    if name.endswith(("_at", "_time")) or name in ("at", "start", "since", "until", "from", "to"):
        return _MOMENT
    known = _VALUES.get(name)
    return known if isinstance(known, str) else name.replace("_", " ")


def _number(name: str, schema: dict[str, Any]) -> int | float:
    known = _VALUES.get(name)
    if isinstance(known, int | float) and not isinstance(known, bool):
        return known
    if name.endswith(("_at_ms", "_time_ms")) or name in ("at_ms", "start_ms", "since_ms"):
        return _MOMENT_MS
    least = schema.get("minimum", 0)
    return least if isinstance(least, int | float) else 0


def add_examples(document: dict[str, Any]) -> None:
    """Give every part of an address, every request and every answer of a document its example."""
    examples = Examples(document["components"]["schemas"])
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["example"] = str(_VALUES.get(parameter["name"], parameter["name"]))
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content["example"] = examples.of_request(content["schema"])
            for status, response in operation["responses"].items():
                _add_to_response(examples, response, refused=status >= "400")


def _add_to_response(examples: Examples, response: dict[str, Any], *, refused: bool) -> None:
    for media_type, content in response.get("content", {}).items():
        if media_type == "application/json":
            content["example"] = examples.of_answer(content["schema"])
        elif refused:
            words = re.findall(r"`(\w+)`", response["description"])
            content["examples"] = {word: {"value": _problem(word)} for word in words}


def _problem(word: str) -> dict[str, Any]:
    code = next(code for code in Code if code.word == word)
    return {
        "type": f"urn:postdate:problem:{word}",
        "title": code.title,
        "status": code.status,
        "detail": f"{code.title}.",
        "code": word,
        "errors": [],
    }
