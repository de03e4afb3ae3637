"""Every address with every scope: what the table of scopes says is what happens."""

import re
from typing import Any

import pytest
from django.conf import settings

from queues.api.openapi import openapi_document
from queues.api.scopetable import NO, OPEN, SCOPES, YES, scope_rows, scope_table

PATHS = openapi_document()["paths"]
ROWS = list(scope_rows())
#: Those that need a key; `test_access.py` looks at the others.
KEYED = [row for row in ROWS if OPEN not in row]
#: What API.md gives to `consume`: from receive to dead-letter, retries, dead letters and redrive.
CONSUMING = re.compile(
    r"/groups/{group}/(receive|ack|retry|extend|release|dead-letter|leases|lag|retries|dead-letters)"
)
#: What API.md gives to `send`: send, look at, cancel, move, restore, deliver now.
SENDING = re.compile(r"/messages\b")


def example_body(method: str, path: str) -> Any:
    """A body that gets past the first look."""
    content = PATHS[path][method.lower()].get("requestBody", {}).get("content", {})
    example = content.get("application/json", {}).get("example")
    return {} if path.endswith("/receive") else example  # That one would wait for a message.


def call(api: Any, method: str, path: str, message_id: str = "0" * 32) -> Any:
    names = {"topic": "orders", "group": "billing", "message_id": message_id}
    where = re.sub(r"{(\w+)}", lambda found: names.get(found[1], "0" * 32), path)
    return api.call(method, where, example_body(method, path))


def test_the_committed_table_is_current() -> None:
    committed = (settings.BASE_DIR / "docs/api/scopes.md").read_text()
    assert committed == scope_table(), "run `manage.py write_openapi`"


@pytest.mark.parametrize("row", KEYED, ids=lambda row: f"{row[0]} {row[1]}")
def test_each_scope_opens_what_the_table_says(api: Any, row: tuple[str, ...]) -> None:
    method, path, *words, _ = row
    api.group("billing")
    for scope, word in zip(SCOPES, words, strict=True):
        answer = call(api.as_(scopes=(scope,)), method, path)
        refused = answer.status == 403 and answer.code == "forbidden"
        assert refused == (word == NO), (scope, answer.json)
        assert answer.status not in (401, 500)
    api.secret = None
    assert call(api, method, path).status == 401


@pytest.mark.parametrize("row", [row for row in ROWS if row[-1] in ("403", "404")],
                         ids=lambda row: f"{row[0]} {row[1]}")  # fmt: skip
def test_what_is_outside_the_patterns_is_answered_as_the_table_says(
    api: Any, row: tuple[str, ...]
) -> None:
    method, path, *_, outside = row
    api.group("billing")
    message_id = api.send("orders", delay="1h")["id"]
    answer = call(api.as_(topics=("eu-*",), groups=("eu-*",)), method, path, message_id)
    assert answer.status == int(outside)
    assert answer.code == ("forbidden" if outside == "403" else "message_not_found")
    assert api.get(f"messages/{message_id}").json["version"] == 1
    assert api.get("groups/billing").status == 200


@pytest.mark.parametrize("row", KEYED, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_is_what_the_contract_says(row: tuple[str, ...]) -> None:
    """`inspect` reads everything; what is neither sending nor consuming is `manage`."""
    method, path, *words, _ = row
    allowed = {scope for scope, word in zip(SCOPES, words, strict=True) if word == YES}
    if method == "GET":
        assert "inspect" in allowed
    else:
        assert "inspect" not in allowed
    if CONSUMING.search(path):
        assert "consume" in allowed or path.endswith("/purge")
    elif SENDING.search(path) and "/parked" not in path:
        assert "send" in allowed
    elif method != "GET":
        assert allowed == {"manage"}
