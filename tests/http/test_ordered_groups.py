"""Ordered groups over the API."""

from typing import Any

import pytest

from queues.selectors.control import get_group


@pytest.fixture
def ordered(api: Any) -> Any:
    api.put("topics/orders", {"queues": 1})
    api.group(ordered=True)
    return api


def receipts(messages: list[Any]) -> dict[str, Any]:
    return {"receipts": [message["receipt"] for message in messages]}


def test_a_group_may_be_ordered(ordered):
    assert ordered.get("groups/billing").json["ordered"] is True


def test_messages_of_a_sharding_key_come_one_after_the_other(ordered):
    for body, key in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        ordered.send(body=body, sharding_key=key)
    first = ordered.receive()
    assert [message["body"] for message in first] == ["a1", "b1"]
    assert ordered.receive() == []
    ordered.post("groups/billing/ack", receipts(first[:1]))
    assert [message["body"] for message in ordered.receive()] == ["a2"]


def test_a_retry_blocks_its_key_and_the_answer_to_retry_says_until_when(ordered, clock):
    for body in ("a1", "a2"):
        ordered.send(body=body, sharding_key="a")
    held = ordered.receive()
    (result,) = ordered.post("groups/billing/retry", receipts(held)).json["results"]
    assert result["outcome"] == "retrying"
    assert ordered.receive() == []
    clock.advance(10_000)
    ordered.hand_over_what_is_due()
    (again,) = ordered.receive()
    assert (again["body"], again["attempt"]) == ("a1", 2)
    ordered.post("groups/billing/ack", receipts([again]))
    assert [message["body"] for message in ordered.receive()] == ["a2"]


def test_delayed_messages_of_a_key_come_one_after_the_other(ordered, clock):
    ordered.send(body="late", sharding_key="a", delay="2s")
    ordered.send(body="soon", sharding_key="a", delay="1s")
    clock.advance(3_000)
    ordered.hand_over_what_is_due()
    came = []
    while messages := ordered.receive():
        came += [message["body"] for message in messages]
        assert len(messages) == 1
        ordered.post("groups/billing/ack", receipts(messages))
    assert sorted(came) == ["late", "soon"]


def test_an_ordered_broadcasting_group_keeps_the_order_for_each_consumer(api):
    api.put("topics/orders", {"queues": 1})
    api.group("cache", mode="broadcasting", ordered=True)
    for body in ("a1", "a2"):
        api.send(body=body, sharding_key="a")
    (one,) = api.receive("cache", consumer_id="1")
    (two,) = api.receive("cache", consumer_id="2")
    assert one["body"] == two["body"] == "a1"
    api.post("groups/cache/dead-letter", receipts([one]))
    (next_one,) = api.receive("cache", consumer_id="1")
    assert next_one["body"] == "a2"
    assert api.receive("cache", consumer_id="2") == []


def test_what_fails_in_a_broadcasting_group_is_dropped(api):
    api.group("cache", mode="broadcasting")
    api.send(body="a")
    for verb in ("retry", "dead-letter"):
        held = api.receive("cache", consumer_id=verb)
        (result,) = api.post(f"groups/cache/{verb}", receipts(held)).json["results"]
        assert result["outcome"] == "dropped"
        assert api.receive("cache", consumer_id=verb) == []


def test_order_changes_once_nothing_is_leased(ordered):
    ordered.send(sharding_key="a")
    held = ordered.receive()
    body = {"subscriptions": [{"topic": "orders"}]}
    assert ordered.put("groups/billing", body).code == "group_in_flight"
    ordered.post("groups/billing/ack", receipts(held))
    assert ordered.put("groups/billing", body).json["ordered"] is False
    ordered.send(body=1, sharding_key="a")
    ordered.send(body=2, sharding_key="a")
    assert len(ordered.receive()) == 2


def test_a_poll_does_not_turn_while_its_keys_are_blocked(ordered, wiring):
    ordered.send(body="a1", sharding_key="a")
    ordered.send(body="a2", sharding_key="a")
    (held,) = ordered.receive()
    assert ordered.receive() == []
    group = wiring.consuming
    sources = get_group("billing").sources
    assert not group.outlook("billing", sources, wiring.clock.now_ms()).ready
    ordered.post("groups/billing/ack", receipts([held]))
    assert group.outlook("billing", sources, wiring.clock.now_ms()).ready


def test_a_receipt_that_ended_its_message_answers_the_same_again(ordered):
    first = ordered.send(body="a", sharding_key="k")["id"]
    ordered.send(body="b", sharding_key="k")
    (message,) = ordered.receive()
    assert message["id"] == first

    def end():
        body = {"receipts": [message["receipt"]], "reason": "no"}
        answer = ordered.post("groups/billing/dead-letter", body)
        return [one["outcome"] for one in answer.json["results"]]

    assert end() == ["dead"]
    assert len(ordered.receive()) == 1, "the next of its key"
    assert end() == ["dead"]
