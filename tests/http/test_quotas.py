"""Quotas of keys: counted by request and by message, told in headers, in every process the same."""

from typing import Any

import pytest

from queues.quotas import Quotas
from queues.services.keys import issue_key


@pytest.fixture
def limited(api: Any) -> Any:
    """The API with a key of these limits."""

    def with_limits(**limits: int) -> Any:
        other = api.as_()
        other.secret = issue_key(name="limited", by="test", quotas=Quotas(**limits)).secret
        return other

    return with_limits


def test_a_key_without_limits_sees_no_header(api: Any) -> None:
    answer = api.get("topics")
    assert "RateLimit" not in answer.headers
    assert "RateLimit-Policy" not in answer.headers


def test_every_request_counts(limited: Any, clock: Any) -> None:
    api = limited(requests_per_second=2, burst_seconds=3)
    for left in range(5, -1, -1):
        answer = api.get("topics")
        assert answer.status == 200
        assert answer.headers["RateLimit-Policy"] == '"requests";q=6;w=3'
        assert answer.headers["RateLimit"].startswith(f'"requests";r={left};t=')
    answer = api.get("topics")
    assert (answer.status, answer.code) == (429, "quota_exceeded")
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["RateLimit"].startswith('"requests";r=0;t=3')
    assert answer.json["retry_after_seconds"] == 1
    clock.advance(1000)
    assert [api.get("topics").status for _ in range(3)] == [200, 200, 429]


def test_a_batch_counts_each_of_its_messages(limited: Any, clock: Any) -> None:
    api = limited(messages_per_second=10, burst_seconds=1)
    batch = {"messages": [{"body": "x"}] * 8}
    assert api.post("topics/orders/messages/batch", batch).status == 200
    answer = api.post("topics/orders/messages/batch", batch)
    assert (answer.status, answer.code) == (429, "quota_exceeded")
    assert "r=2;" in answer.headers["RateLimit"]
    assert api.post("topics/orders/messages", {"body": "x"}).status == 201
    assert api.post("topics/orders/messages", {"body": "x"}).status == 201
    assert api.post("topics/orders/messages", {"body": "x"}).status == 429
    clock.advance(int(answer.headers["Retry-After"]) * 1000)
    assert api.get("messages?state=ready&topic=orders").status != 429, "looking is not sending"


def test_a_refused_send_stores_nothing(limited: Any, api: Any) -> None:
    other = limited(messages_per_day=2)
    assert other.post("topics/orders/messages", {"body": "x", "delay": "1h"}).status == 201
    batch = {"messages": [{"body": "x", "delay": "1h"}] * 2}
    answer = other.post("topics/orders/messages/batch", batch)
    assert answer.status == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 86_400
    assert answer.headers["RateLimit-Policy"] == '"messages-a-day";q=2;w=86400'
    assert api.get("messages?state=scheduled").json["count"] == 1


def test_a_message_that_is_refused_for_itself_does_not_count(limited: Any) -> None:
    api = limited(messages_per_day=1)
    assert api.post("topics/orders/messages", {"body": "x", "delay": "soon"}).status == 400
    assert api.post("topics/orders/messages", {"body": "x"}).status == 201


def test_one_key_does_not_use_anothers(limited: Any) -> None:
    one, other = limited(requests_per_second=1, burst_seconds=1), limited(requests_per_second=1)
    assert one.get("topics").status == 200
    assert one.get("topics").status == 429
    assert other.get("topics").status == 200


def test_a_limited_send_makes_no_query(limited: Any, django_assert_num_queries: Any) -> None:
    api = limited(requests_per_second=100, messages_per_second=100, messages_per_day=1000)
    api.send("orders")
    with django_assert_num_queries(0):
        api.send("orders")
