"""What the client repeats, how it reads refusals, and what it never does."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from postdate.client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    NewMessage,
    NotConfigured,
    NotFound,
    Patience,
    QuotaExceeded,
    TooLate,
    UnexpectedAnswer,
)
from postdate.client.errors import InvalidRequest, MessageNotFound
from postdate.client.sync import transport

KEY = "k" * 40
SENT = {
    "id": "0" * 32, "topic": "orders", "queue": 1, "state": "scheduled", "kind": "timed",
    "due_at": "2026-01-31T09:30:00.000Z", "due_at_ms": 1769851800000,
    "created_at": "2026-01-31T09:00:00.000Z", "created_at_ms": 1769850000000, "version": 1,
    "something_new": {"of": "a newer server"},
}  # fmt: skip


def refusal(status: int, code: str, **members: Any) -> httpx.Response:
    headers = {"Retry-After": str(members.pop("retry_after"))} if "retry_after" in members else {}
    document = {"type": f"urn:{code}", "title": code, "status": status, "detail": "d", "code": code}
    return httpx.Response(status, json={**document, "errors": [], **members}, headers=headers)


class Server:
    """Answers from a list, the last one for ever, and remembers what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.asked]


@pytest.fixture
def pauses(monkeypatch: Any) -> list[float]:
    """How long the client would have waited."""
    waited: list[float] = []
    monkeypatch.setattr(transport, "pause", waited.append)
    return waited


@pytest.fixture
def connect(pauses: list[float]) -> Callable[..., tuple[Client, Server]]:
    del pauses

    def to(*answers: httpx.Response | Exception, **options: Any) -> tuple[Client, Server]:
        server = Server(*answers)
        http = httpx.Client(transport=httpx.MockTransport(server))
        return Client("http://postdate.test/", KEY, http=http, **options), server

    return to


def test_a_send_carries_the_key_and_one_idempotency_key_over_all_its_tries(connect, pauses):
    broken = httpx.ReadError("the connection broke")
    client, server = connect(broken, broken, httpx.Response(201, json=SENT))
    sent = client.send("orders", {"order": 7}, delay="30m", keys=["order-7"])
    assert (sent.id, sent.due_at_ms, sent.due_at.year) == ("0" * 32, 1769851800000, 2026)
    assert len(server.asked) == 3
    assert {str(request.url) for request in server.asked} == {
        "http://postdate.test/api/v1/topics/orders/messages"
    }
    assert {request.headers["Authorization"] for request in server.asked} == {f"Bearer {KEY}"}
    assert len({request.headers["Idempotency-Key"] for request in server.asked}) == 1
    assert server.bodies()[0] == {"body": {"order": 7}, "delay": "30m", "keys": ["order-7"]}
    assert len(pauses) == 2
    assert all(0 <= pause <= 5 for pause in pauses)


def test_two_sends_have_different_idempotency_keys(connect):
    client, server = connect(httpx.Response(201, json=SENT))
    client.send("orders", "a")
    client.send("orders", "a")
    client.send("orders", "a", idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in server.asked]
    assert len(set(keys)) == 3
    assert keys[-1] == "mine"


def test_a_move_that_rests_on_a_version_is_not_repeated(connect):
    client, server = connect(httpx.ReadError("broke"))
    with pytest.raises(ConnectionFailed):
        client.messages.move("0" * 32, delay="1h", if_version=1)
    assert len(server.asked) == 1


def test_503_and_429_are_repeated_after_the_time_that_they_name(connect, pauses):
    client, server = connect(
        refusal(503, "store_full", retry_after=10),
        refusal(429, "quota_exceeded", retry_after=2),
        httpx.Response(200, json={"outcome": "cancelled"}),
    )
    assert client.messages.cancel("0" * 32).outcome == "cancelled"
    assert len(server.asked) == 3
    assert 10 <= pauses[0] < 10.1
    assert 2 <= pauses[1] < 2.2


def test_a_time_beyond_the_patience_is_raised_at_once(connect, pauses):
    client, server = connect(refusal(429, "quota_exceeded", retry_after=3600))
    with pytest.raises(QuotaExceeded) as raised:
        client.messages.get("0" * 32)
    assert raised.value.retry_after_s == 3600
    assert (len(server.asked), pauses) == (1, [])


def test_without_patience_nothing_is_repeated(connect):
    client, server = connect(httpx.ConnectError("refused"), patience=Patience(total_s=0))
    with pytest.raises(ConnectionFailed) as raised:
        client.topics.list()
    assert "ConnectError: refused" in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (409, "too_late", TooLate),
        (404, "message_not_found", MessageNotFound),
        (404, "message_not_found", NotFound),
        (404, "operation_of_a_newer_server", NotFound),
        (422, "delay_out_of_range", InvalidRequest),
    ],
)
def test_a_problem_document_becomes_a_typed_error(connect, status, code, kind):
    client, server = connect(refusal(status, code, delivered_at="2026-01-31T09:30:00.000Z"))
    with pytest.raises(kind) as raised:
        client.messages.deliver_now("0" * 32)
    assert raised.value.code == code
    assert raised.value.members["delivered_at"].startswith("2026")
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [200, 404, 500])
def test_what_is_not_postdate_is_said_to_be_so(connect, status):
    client, _ = connect(httpx.Response(status, text="<html>Welcome to nginx</html>"))
    with pytest.raises(UnexpectedAnswer) as raised:
        client.topics.list()
    assert "nginx" in str(raised.value)


def test_bytes_travel_as_base64_and_names_are_quoted(connect):
    client, server = connect(httpx.Response(201, json=SENT))
    client.send("a/../b c", b"\x00\xff")
    assert server.asked[0].url.raw_path == b"/api/v1/topics/a%2F..%2Fb%20c/messages"
    assert server.bodies()[0] == {"body": "AP8=", "encoding": "base64"}


def test_many_messages_go_in_batches_of_a_thousand_and_of_bounded_size(connect):
    client, server = connect(httpx.Response(200, json={"results": []}))
    client.send_many("orders", [NewMessage(body=str(n)) for n in range(2500)])
    client.send_many("orders", [NewMessage(body="x" * (5 << 20)) for _ in range(3)])
    assert [len(body["messages"]) for body in server.bodies()] == [1000, 1000, 500, 2, 1]
    keys = [one["idempotency_key"] for body in server.bodies() for one in body["messages"]]
    assert len(set(keys)) == 2503


def test_a_batch_says_which_of_its_messages_are_stored(connect):
    results = [{"status": 201, **SENT}, {"status": 422, "code": "delay_invalid", "detail": "?"}]
    client, _ = connect(httpx.Response(200, json={"results": results}))
    stored = [item.stored for item in client.send_many("orders", [NewMessage(body=1)] * 2)]
    assert stored == [True, False]


def test_the_environment_says_where_and_with_which_key(monkeypatch):
    monkeypatch.delenv("POSTDATE_API_KEY", raising=False)
    with pytest.raises(NotConfigured):
        Client()
    monkeypatch.setenv("POSTDATE_API_KEY", KEY)
    monkeypatch.setenv("POSTDATE_URL", "https://postdate.example.com/")
    with Client() as client:
        assert client.url == "https://postdate.example.com"
    monkeypatch.setenv("POSTDATE_URL", "postdate.example.com")
    with pytest.raises(NotConfigured):
        Client()


def test_lists_are_walked_page_by_page(connect):
    item = {**SENT, "reschedules": 0}
    client, server = connect(
        httpx.Response(200, json={"items": [item, item], "next_page_token": "next"}),
        httpx.Response(200, json={"items": [item], "next_page_token": ""}),
    )
    assert len(list(client.messages.iterate(state="scheduled"))) == 3
    assert dict(server.asked[1].url.params) == {"state": "scheduled", "page_token": "next"}


def test_the_asynchronous_client_does_the_same() -> None:
    server = Server(refusal(503, "store_closing", retry_after=0), httpx.Response(201, json=SENT))

    async def send() -> str:
        http = httpx.AsyncClient(transport=httpx.MockTransport(server))
        async with http, AsyncClient("http://postdate.test", KEY, http=http) as client:
            return (await client.send("orders", "x")).id

    assert asyncio.run(send()) == "0" * 32
    assert len(server.asked) == 2
