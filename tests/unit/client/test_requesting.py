"""Requests of calls: what is built at once is what httpx would have built."""

import httpx
import pytest

from postdate.client.addressing import Address
from postdate.client.calls import Call
from postdate.client.requesting import Requests

ADDRESS = Address("http://127.0.0.1:8000/below", "key")
CALLS = [
    Call(method="GET", path="/topics", decoder=None),
    Call(method="GET", path="/topics", decoder=None, query={"limit": 5, "after": None, "q": "ä b"}),
    Call(method="POST", path="/topics/a%2Fb", decoder=None, body={"queues": 8}),
    Call(method="POST", path="/messages", decoder=None, body=[], headers={"Idempotency-Key": "1"}),
    Call(method="POST", path="/receive", decoder=None, body={}, wait_s=20.0),
    Call(method="GET", path="/readyz", decoder=None),
]


def requests(http: httpx.Client, *, own: bool) -> Requests:
    return Requests(ADDRESS, http, timeout_s=10.0, own=own)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_a_request_of_our_own_client_is_what_httpx_builds(call: Call[None]) -> None:
    with httpx.Client(cookies={"route": "two"}) as http:
        ours, theirs = (requests(http, own=own).of(call) for own in (True, False))

    assert (ours.method, ours.url, ours.content) == (theirs.method, theirs.url, theirs.content)
    assert sorted(ours.headers.multi_items()) == sorted(theirs.headers.multi_items())
    assert ours.headers["cookie"] == "route=two"
    assert ours.extensions == theirs.extensions


def test_one_call_s_headers_are_not_those_of_the_next() -> None:
    with httpx.Client() as http:
        made = requests(http, own=True)
        made.of(CALLS[3])

        assert "Idempotency-Key" not in made.of(CALLS[2]).headers


def test_what_callers_set_on_their_own_client_holds() -> None:
    with httpx.Client(headers={"X-Team": "billing"}, params={"v": "2"}) as http:
        made = requests(http, own=False)
        http.headers["X-Team"] = "orders"
        request = made.of(CALLS[0])

    assert request.headers["X-Team"] == "orders"
    assert request.headers["Authorization"] == "Bearer key"
    assert request.url.params["v"] == "2"
