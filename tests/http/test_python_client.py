"""The Python client against the server itself, in one process: every shape is one that it sends."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_origin

import httpx
import msgspec
import pytest

from postdate.client import Client, Forbidden, NewMessage, TooLate, Unauthorized
from postdate.client.aio.messages import BulkAction
from postdate.client.bignumbers import decode
from postdate.client.calls import Call
from postdate.client.errors import MessageNotFound
from postdate.wsgi import application
from queues.testing import issue_secret

ROOT = Path(__file__).resolve().parents[2]
NOBODY = "0" * 32


@pytest.fixture
def client(api: Any) -> Iterator[Client]:
    http = httpx.Client(transport=httpx.WSGITransport(app=application))
    with Client("http://testserver", api.secret, http=http) as client:
        yield client
    http.close()


def test_a_message_is_sent_looked_at_moved_cancelled_and_restored(client: Client) -> None:
    sent = client.send("orders", {"order": 7}, delay=timedelta(minutes=30), keys=["order-7"])
    assert (sent.state, sent.kind) == ("scheduled", "timed")
    moved = client.messages.move(sent.id, delay="1h", if_version=sent.version)
    assert moved.due_at_ms - sent.due_at_ms == 30 * 60_000
    assert (moved.body, moved.keys, moved.version) == ({"order": 7}, ["order-7"], 2)
    assert client.messages.cancel(sent.id, reason="paid").outcome == "cancelled"
    assert client.messages.cancel(sent.id).outcome == "already_cancelled"
    assert client.messages.restore(sent.id).state == "scheduled"
    assert [event.event for event in client.messages.get(sent.id).timeline]
    assert client.messages.deliver_now(sent.id).id == sent.id


def test_what_was_sent_as_bytes_is_received_as_bytes(client: Client) -> None:
    client.groups.declare("billing", ["orders"], start_from="earliest")
    client.send("orders", b"\x00\xff", tag="raw", properties={"colour": "red"})
    (message,) = client.group("billing").receive(max_messages=5, lease_seconds=30).messages
    assert (message.content, message.tag) == (b"\x00\xff", "raw")
    assert message.properties == {"colour": "red"}
    assert client.group("billing").lag().leased == 1
    (result,) = client.group("billing").ack([message.receipt])
    assert result.outcome == "acked"
    assert client.group("billing").lag().leased == 0


@pytest.mark.parametrize("odd", ["1e400", "[-1e999]", "7" * 5000])
def test_a_number_that_python_cannot_hold_goes_all_ways_with_its_digits(
    client: Client, odd: str
) -> None:
    client.groups.declare("billing", ["orders"], start_from="earliest")
    group = client.group("billing")
    body = decode(msgspec.json.Decoder(), odd.encode())
    sent = [client.send("orders", one).id for one in (body, "good")]
    messages = group.receive(max_messages=5, lease_seconds=30).messages
    assert [one.content for one in messages if one.id == sent[0]] == [odd.encode()]
    assert sorted(one.id for one in messages) == sorted(sent)
    assert client.messages.get(sent[0]).content == odd.encode()
    group.dead_letter([one.receipt for one in messages])
    assert group.dead_letters.get(sent[0]).content == odd.encode()


def test_a_batch_tells_the_good_from_the_bad(client: Client) -> None:
    messages = [NewMessage(body="a"), NewMessage(body="b", delay="soon"), NewMessage(body="c")]
    results = client.send_many("orders", messages)
    assert [result.stored for result in results] == [True, False, True]
    assert results[1].code == "delay_invalid"


def test_refusals_are_errors_of_their_own(client: Client, api: Any) -> None:
    sent = client.send("orders", "now")
    with pytest.raises(TooLate):
        client.messages.cancel(sent.id)
    with pytest.raises(MessageNotFound):
        client.messages.get(NOBODY)
    http = httpx.Client(transport=httpx.WSGITransport(app=application))
    with http, pytest.raises(Unauthorized):
        Client("http://testserver", "x" * 40, http=http).topics.list()
    secret = issue_secret(name="sender", scopes=("send",))
    http = httpx.Client(transport=httpx.WSGITransport(app=application))
    with http, pytest.raises(Forbidden):
        Client("http://testserver", secret, http=http).topics.list()
    assert api


def test_everything_that_there_is_can_be_looked_at(client: Client) -> None:
    client.topics.declare("orders", queues=4)
    client.groups.declare("billing", ["orders"])
    client.send("orders", "x", delay_level=3)
    assert client.topics.get("orders").queues == 4
    assert [topic.topic for topic in client.topics.list().items] == ["orders"]
    assert client.group("billing").pause().paused
    assert not client.group("billing").resume().paused
    assert [group.group for group in client.groups.list().items] == ["billing"]
    assert client.schedule.levels()[2].pending == 1
    assert client.schedule.wheel().pending == 0
    assert len(client.schedule.loops()) == 3
    assert client.messages.list(state="scheduled", topic="orders").count == 1
    assert len(list(client.messages.iterate(state="scheduled"))) == 1
    assert client.parked.list().items == []
    assert not client.schedule.readiness().ready
    assert client.reports.audit_log(page_size=1).items[0].action
    client.group("billing").delete()
    client.topics.delete("orders", purge=True)
    assert client.topics.list().items == []


# --- the client and the description


class Recorder:
    """A transport that only notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Call[Any]] = []

    def run(self, call: Call[Any]) -> Any:
        self.calls.append(call)
        raise EndOfCall

    text = run


class EndOfCall(Exception):
    """Nothing is answered."""


def recorded_calls(monkeypatch: Any) -> list[Call[Any]]:
    """One call of every method of the client."""
    recorder = Recorder()
    with Client("http://testserver", "k" * 40) as client:
        group = client.group("GROUP")
        owners = [client.messages, client.bulk, client.parked, client.topics, client.groups,
                  client.schedule, client.operations, client.reports, group, group.retries,
                  group.dead_letters, client._sending]  # fmt: skip
        for owner in owners:
            monkeypatch.setattr(owner, "_transport", recorder)
            for name in dir(owner):
                if (
                    not name.startswith("_")
                    and callable(getattr(owner, name))
                    and name != "iterate"
                ):
                    call_anyhow(getattr(owner, name))
        for action in get_args(BulkAction):
            with pytest.raises(EndOfCall):
                client.bulk.plan(action, {})
    return recorder.calls


def call_anyhow(method: Any) -> None:
    message = NewMessage(body="x")
    fitting = {
        "send": ("TOPIC", message), "send_many": ("TOPIC", [message]), "declare": ("NAME", []),
        "reset": ("latest",), "plan": ("cancel", {}), "start": ("cancel", "plan"),
        "ack": (["r"],), "retry": (["r"],), "release": (["r"],), "dead_letter": (["r"],),
    }  # fmt: skip
    name = method.__name__
    arguments: dict[str, Any] = {"lease_seconds": 60} if name == "extend" else {}
    parts = {"extend": (["r"],), "export": ("ID", "csv"), "redrive": (["ID"],)} | fitting
    if method.__qualname__.startswith("Parked.release"):
        parts["release"] = ("ID",)
    if method.__qualname__ == "DeadLetters.export":
        parts["export"] = ("csv",)
    if method.__qualname__ == "Topics.declare":
        parts["declare"] = ("NAME",)
    if method.__qualname__ == "Reports.start":
        parts["start"] = ()
    needs = [
        one
        for one in method.__annotations__
        if one in ("message_id", "operation_id", "report_id", "name")
    ]
    with pytest.raises(EndOfCall):
        method(*parts.get(name, ("ID",) * len(needs)), **arguments)


def described() -> dict[str, Any]:
    text = (ROOT / "openapi.yaml").read_bytes()
    document: dict[str, Any] = msgspec.yaml.decode(text)
    return document


#: What the description has and a client does not need.
NOT_FOR_CLIENTS = {
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/readyz"),  # it has, but not below /api/v1
    ("GET", "/api/v1/openapi.json"),
}


def test_every_address_of_the_description_has_a_method_in_the_client(monkeypatch: Any) -> None:
    calls = [(call.method, f"/api/v1{call.path}") for call in recorded_calls(monkeypatch)]
    missing = []
    for path, methods in described()["paths"].items():
        fits = re.compile(re.sub(r"{\w+}", "[^/]+", path))
        for method in methods:
            asked = (method.upper(), path)
            if asked in NOT_FOR_CLIENTS:
                continue
            if not any(asked[0] == one and fits.fullmatch(where) for one, where in calls):
                missing.append(asked)
    assert missing == []


def test_every_field_that_the_client_needs_is_in_the_description(monkeypatch: Any) -> None:
    document = described()
    wrong = []
    for call in recorded_calls(monkeypatch):
        if call.decoder is not None:
            found = [
                missing_in(document, call.decoder.type, one) for one in answers_of(document, call)
            ]
            if found and all(found):  # It is what one of the good answers is read as.
                wrong += [f"{call.method} {call.path}: {one}" for one in found[0]]
    assert wrong == []


def answers_of(document: dict[str, Any], call: Call[Any]) -> list[dict[str, Any]]:
    """The schemas of its good answers; none: the description does not have this address yet."""
    found = []
    for path, methods in document["paths"].items():
        fits = re.compile(re.sub(r"{\w+}", "[^/]+", path))
        if call.method.lower() in methods and fits.fullmatch(f"/api/v1{call.path}"):
            for status, response in methods[call.method.lower()]["responses"].items():
                content = response.get("content", {})
                if status < "300" and "application/json" in content:
                    found.append(content["application/json"]["schema"])
    return found


def missing_in(document: dict[str, Any], shape: Any, schema: dict[str, Any]) -> list[str]:
    """Fields that the client cannot do without, and that the schema does not promise."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if get_origin(shape) is list:
        return missing_in(document, get_args(shape)[0], schema.get("items", {}))
    if (
        not (isinstance(shape, type) and issubclass(shape, msgspec.Struct))
        or "properties" not in schema
    ):
        return []
    found = []
    for field in msgspec.structs.fields(shape):
        if field.encode_name in schema["properties"]:
            found += missing_in(document, field.type, schema["properties"][field.encode_name])
        elif field.required:
            found.append(f"{shape.__name__}.{field.name}")
    return found
