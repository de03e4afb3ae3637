"""Idempotency keys: a send that is repeated is stored once and answered as the first was."""

from typing import Any

import pytest

DAY_MS = 86_400_000


def send(api: Any, key: str, **fields: Any) -> Any:
    body = {"body": "hello", **fields}
    return api.call("POST", "topics/orders/messages", body, Idempotency_Key=key)


def batch(api: Any, *messages: Any) -> Any:
    answer = api.post("topics/orders/messages/batch", {"messages": list(messages)})
    assert answer.status == 200
    return answer.json["results"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"delay": "90s"},
        {"delay_level": 3, "tag": "paid", "keys": ["7"], "properties": {"a": "b"}},
        {"deliver_at": "2026-10-01T00:00:00Z", "queue": 2},
        {"sharding_key": "customer 7"},
    ],
)
def test_a_repeat_is_answered_as_the_first_was(api, clock, fields):
    first = send(api, "order 7", **fields)
    clock.advance(5_000)
    again = send(api, "order 7", **fields)
    assert (first.status, again.status) == (201, 201)
    assert again.json == first.json
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["ETag"] == '"1"'
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


def test_a_repeat_is_not_received_twice(api):
    api.group()
    for _ in range(3):
        send(api, "a")
    assert len(api.receive()) == 1


def test_a_repeat_of_a_cancelled_message_does_not_bring_it_back(api):
    message_id = send(api, "a", delay="1h").json["id"]
    api.delete(f"messages/{message_id}")
    assert send(api, "a", delay="1h").json["id"] == message_id
    assert api.get(f"messages/{message_id}").json["state"] == "cancelled"


@pytest.mark.parametrize("fields", [{"body": "bye"}, {"delay": "91s"}, {"tag": "x"}, {"queue": 1}])
def test_the_same_key_with_another_payload_is_refused(api, fields):
    send(api, "a")
    answer = send(api, "a", **fields)
    assert (answer.status, answer.code) == (422, "idempotency_key_reused")
    assert answer.json["errors"][0]["parameter"] == "Idempotency-Key"


def test_a_refused_send_keeps_no_key(api):
    assert send(api, "a", body="").status == 400
    assert send(api, "a").status == 201


def test_a_key_is_known_for_a_day(api, clock):
    first = send(api, "a")
    clock.advance(DAY_MS - 1)
    assert send(api, "a").json == first.json
    clock.advance(1)
    assert send(api, "a").json["id"] != first.json["id"]


def test_keys_are_of_their_topic(api):
    first = send(api, "a").json
    other = api.call("POST", "topics/other/messages", {"body": "hello"}, Idempotency_Key="a")
    assert "Idempotency-Replayed" not in other.headers
    assert other.json["id"] != first["id"]


def test_a_topic_made_anew_knows_no_key_of_before(api, clock):
    send(api, "a")
    api.delete("topics/orders")
    clock.advance(1)
    api.put("topics/orders", {})
    assert "Idempotency-Replayed" not in send(api, "a").headers


def test_a_field_serves_as_well_as_the_header(api):
    first = api.send(idempotency_key="a")
    assert send(api, "a").json == first
    assert send(api, "a", idempotency_key="a").json == first
    answer = send(api, "a", idempotency_key="b")
    assert (answer.status, answer.code) == (422, "idempotency_key_invalid")


@pytest.mark.parametrize("key", ["", "a" * 256, "ä"])
def test_a_key_that_cannot_be_one_is_refused(api, key):
    answer = send(api, key)
    assert (answer.status, answer.code) == (422, "idempotency_key_invalid")


def test_a_message_as_large_as_allowed_has_room_for_its_key(api):
    fields = {
        "keys": [f"{n:02}" + "k" * 250 for n in range(32)],
        "properties": {"p" * 100: "v" * 16_000},
        "sharding_key": "s" * 255,
        "tag": "t" * 255,
        "delay": "1h",
    }
    assert send(api, "k" * 255, **fields).status == 201
    assert "Idempotency-Replayed" in send(api, "k" * 255, **fields).headers


def test_the_items_of_a_batch_have_keys_of_their_own(api):
    api.group()
    items = [
        {"body": 1, "idempotency_key": "a"},
        {"body": 2},
        {"body": ""},
        {"body": 3, "idempotency_key": "b"},
    ]
    first = batch(api, *items)
    assert [result["status"] for result in first] == [201, 201, 400, 201]
    again = batch(api, *items)
    assert [result.get("idempotency_replayed") for result in again] == [True, None, None, True]
    assert [again[number]["id"] for number in (0, 3)] == [first[number]["id"] for number in (0, 3)]
    assert sorted(message["body"] for message in api.receive()) == [1, 2, 2, 3]


def test_a_key_that_comes_twice_in_a_batch_is_sent_once(api):
    one, two, three = batch(
        api,
        {"body": 1, "idempotency_key": "a"},
        {"body": 1, "idempotency_key": "a"},
        {"body": 2, "idempotency_key": "a"},
    )
    assert two == {**one, "idempotency_replayed": True}
    assert (three["code"], three["pointer"]) == (
        "idempotency_key_reused",
        "/messages/2/idempotency_key",
    )


def test_a_single_send_repeats_an_item_of_a_batch(api):
    (item,) = batch(api, {"body": "hello", "idempotency_key": "a"})
    assert send(api, "a").json["id"] == item["id"]


def test_the_key_is_not_shown_to_consumers(api):
    api.group()
    send(api, "a", properties={"mine": "1"})
    (message,) = api.receive()
    assert message["properties"] == {"mine": "1"}
