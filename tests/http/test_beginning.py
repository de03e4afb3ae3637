"""Where a group begins: decided once for the queues that are there, and at 0 in those that come."""

from typing import Any

import pytest

from queues.store.consuming import Consuming


def bodies(messages: list[Any]) -> list[Any]:
    return sorted(message["body"] for message in messages)


def latest(api: Any, *topics: str, **fields: Any) -> None:
    """Declare the group as it is declared by default."""
    subscriptions = [{"topic": topic} for topic in topics or ("orders",)]
    answer = api.put("groups/billing", {"subscriptions": subscriptions, **fields})
    assert answer.status in (200, 201), answer.json


@pytest.mark.parametrize("again", [{}, {"max_retries": 3}, {"start_from": "latest"}])
def test_a_group_declared_again_misses_nothing_of_a_topic_made_meanwhile(api, again):
    latest(api)
    api.send(body="a")
    latest(api, **again)
    assert bodies(api.receive()) == ["a"]


def test_a_group_declared_again_misses_nothing_of_a_queue_that_came_later(api):
    api.put("topics/orders", {"queues": 1})
    latest(api)
    api.put("topics/orders", {"queues": 2})
    api.send(body="a", queue=1)
    latest(api)
    assert bodies(api.receive()) == ["a"]


def test_a_topic_taken_in_again_has_its_later_queues_from_their_beginning(api):
    api.put("topics/orders", {"queues": 1})
    latest(api)
    latest(api, "mail")
    api.put("topics/orders", {"queues": 2})
    api.send(body="a", queue=1)
    latest(api, "mail", "orders")
    assert bodies(api.receive()) == ["a"]


def test_a_topic_that_the_group_takes_in_begins_where_the_declaration_says(api):
    latest(api)
    api.send(topic="mail", body="before")
    latest(api, "orders", "mail")
    api.send(topic="mail", body="after")
    assert bodies(api.receive()) == ["after"]


def test_a_group_of_another_mode_begins_where_the_declaration_says(api):
    latest(api)
    api.send(body="before")
    latest(api, mode="broadcasting")
    assert api.receive(consumer_id="one") == []
    latest(api, mode="clustering")
    assert api.receive() == []
    api.send(body="after")
    assert bodies(api.receive()) == ["after"]


def test_a_consumer_of_a_broadcasting_group_misses_nothing_of_a_topic_made_meanwhile(api):
    latest(api, mode="broadcasting")
    api.receive(consumer_id="one")
    api.send(body="a")
    latest(api, mode="broadcasting")
    assert bodies(api.receive(consumer_id="one")) == ["a"]


def test_another_process_says_the_same_of_how_far_groups_are(api, wiring):
    api.group("billing")
    api.group("mail")
    path = f"messages/{api.send()['id']}"
    latest(api)
    api.put("groups/late", {"subscriptions": [{"topic": "orders"}]})
    (message,) = api.receive("mail")
    api.post("groups/mail/ack", {"receipts": [message["receipt"]]})
    api.receive("billing")
    told = api.get(path).json["groups"]

    other = Consuming(wiring.store, b"a secret of thirty-two bytes, ok")
    wiring.consuming, mine = other, wiring.consuming
    try:
        assert api.get(path).json["groups"] == told
    finally:
        wiring.consuming = mine
        other.close()
    assert [(one["group"], one["state"]) for one in told] == [
        ("billing", "leased"),
        ("mail", "acked"),
    ]
