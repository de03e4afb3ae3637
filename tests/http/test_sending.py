"""Sends: what is taken, what is answered, what is refused."""

import base64
import json
from typing import Any

import pytest

NOW_MS = 1_790_000_000_000


def refused(api: Any, fields: Any, status: int, code: str) -> Any:
    answer = api.post("topics/orders/messages", fields)
    assert (answer.status, answer.code) == (status, code), answer.json
    return answer


def test_a_send_is_answered_with_its_place_and_its_times(api):
    answer = api.post("topics/orders/messages", {"body": "hello"})
    assert answer.status == 201
    message = answer.json
    assert answer.headers["Location"] == f"/api/v1/messages/{message['id']}"
    assert answer.headers["ETag"] == '"1"'
    assert message["topic"] == "orders"
    assert message["state"] == "ready"
    assert message["kind"] == "immediate"
    assert message["due_at"] == message["created_at"] == "2026-09-21T14:13:20.000Z"
    assert message["due_at_ms"] == message["created_at_ms"] == NOW_MS
    assert "delay_level" not in message


def test_an_id_is_32_lower_case_hex_digits_in_the_layout_of_uuid_7(api):
    message_id = api.send()["id"]
    assert len(message_id) == 32
    assert message_id == message_id.lower()
    assert int(message_id[:12], 16) == NOW_MS
    assert message_id[12] == "7"
    assert message_id[16] in "89ab"


@pytest.mark.parametrize(
    ("fields", "due_ms"),
    [
        ({"delay": "250ms"}, NOW_MS + 250),
        ({"delay": "1h30m"}, NOW_MS + 5_400_000),
        ({"delay": "PT90S"}, NOW_MS + 90_000),
        ({"delay": "2d"}, NOW_MS + 172_800_000),
        ({"delay_ms": 1}, NOW_MS + 1),
        ({"delay_seconds": 90}, NOW_MS + 90_000),
        ({"delay_seconds": 1.1}, NOW_MS + 1_100),
        ({"deliver_at": NOW_MS + 5_000}, NOW_MS + 5_000),
        ({"deliver_at": "2026-09-21T14:14:20Z"}, NOW_MS + 60_000),
        ({"deliver_at": "2026-09-21T16:14:20.5+02:00"}, NOW_MS + 60_500),
        ({"delay_ms": 40 * 86_400_000}, NOW_MS + 40 * 86_400_000),
    ],
)
def test_each_form_of_delay_makes_a_timed_message(api, fields, due_ms):
    message = api.send(**fields)
    assert message["kind"] == "timed"
    assert message["state"] == "scheduled"
    assert message["due_at_ms"] == due_ms


def test_a_delay_level_counts_from_the_store_time(api):
    message = api.send(delay_level=3)
    assert (message["kind"], message["delay_level"]) == ("level", 3)
    assert message["due_at_ms"] == NOW_MS + 10_000


@pytest.mark.parametrize("fields", [{"delay_level": 0}, {"delay_level": None}, {"delay_ms": 0},
                                    {"delay": "0s"}, {"deliver_at": NOW_MS}])  # fmt: skip
def test_no_delay_is_an_immediate_message(api, fields):
    assert api.send(**fields)["kind"] == "immediate"


def test_a_moment_in_the_past_is_delivered_at_once(api):
    message = api.send(deliver_at="2001-01-01T00:00:00Z")
    assert message["kind"] == "immediate"
    assert message["due_at"] == message["created_at"]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"delay_level": 19}, 422, "delay_level_unknown"),
        ({"delay_level": -1}, 422, "delay_level_unknown"),
        ({"delay_level": "3"}, 422, "delay_level_unknown"),
        ({"delay": "5s", "delay_ms": 5}, 400, "conflicting_delay"),
        ({"delay_level": 3, "deliver_at": NOW_MS}, 400, "conflicting_delay"),
        ({"delay": "soon"}, 400, "delay_invalid"),
        ({"delay": 5}, 400, "delay_invalid"),
        ({"delay": ""}, 400, "delay_invalid"),
        ({"delay": "P1Y"}, 400, "delay_invalid"),
        ({"deliver_at": "2026-09-21T14:14:20"}, 400, "delay_invalid"),
        ({"deliver_at": "tomorrow"}, 400, "delay_invalid"),
        ({"deliver_at": "2026-02-30T00:00:00Z"}, 400, "delay_invalid"),
        ({"deliver_at": 1.5}, 400, "delay_invalid"),
        ({"delay_ms": -1}, 422, "delay_out_of_range"),
        ({"delay_seconds": -0.5}, 422, "delay_out_of_range"),
        ({"delay": "-5s"}, 422, "delay_out_of_range"),
        ({"delay": "41d"}, 422, "delay_out_of_range"),
        ({"delay_ms": 10**30}, 422, "delay_out_of_range"),
        ({"deliver_at": 10**18}, 422, "delay_out_of_range"),
        ({"deliver_at": "9999-12-31T23:59:59Z"}, 422, "delay_out_of_range"),
    ],
)
def test_a_delay_that_cannot_be_kept_is_refused_and_nothing_is_sent(api, fields, status, code):
    api.group()
    refused(api, {"body": "x", **fields}, status, code)
    assert api.receive() == []


def test_a_delay_beyond_the_maximum_names_the_maximum(api):
    answer = refused(api, {"body": "x", "delay": "41d"}, 422, "delay_out_of_range")
    assert answer.json["maximum_ms"] == 40 * 86_400_000
    assert answer.json["maximum"] == "40d"


@pytest.mark.parametrize("body", [None, ""])
def test_a_message_needs_a_body(api, body):
    refused(api, {"body": body}, 400, "body_required")
    refused(api, {}, 400, "body_required")
    refused(api, {"body": "", "encoding": "base64"}, 400, "body_required")


@pytest.mark.parametrize(
    "body",
    ["text", "käse 😀 \u0000", {}, [], 0, False, 1.5, {"a": [1, {"b": None}]}, [None]],
)
def test_a_body_comes_back_in_the_form_that_was_sent(api, body):
    api.group()
    message = api.send(body=body)
    (received,) = api.receive()
    assert received["body"] == body
    assert type(received["body"]) is type(body)
    assert "encoding" not in received
    assert api.get(f"messages/{message['id']}").json["body"] == body


def test_bytes_go_in_and_out_as_base64(api):
    api.group()
    written = base64.b64encode(bytes(range(256))).decode()
    api.send(body=written, encoding="base64")
    (received,) = api.receive()
    assert (received["body"], received["encoding"]) == (written, "base64")


@pytest.mark.parametrize("body", ["not base64!", "AAE", {"a": 1}, "käse"])
def test_a_body_that_is_not_base64_is_refused(api, body):
    refused(api, {"body": body, "encoding": "base64"}, 422, "body_invalid")


def test_the_digits_of_a_json_body_are_kept(api):
    api.group()
    raw = b'{"body": {"price": 1.10, "big": 123456789012345678901234567890, "e": 1e999}}'
    assert api.call("POST", "topics/orders/messages", raw=raw).status == 201
    # Python's own parser makes infinity of 1e999, so the bytes are looked at.
    content = api.call("POST", "groups/billing/receive").content
    assert b'{"price": 1.10, "big": 123456789012345678901234567890, "e": 1e999}' in content


def test_tag_keys_and_properties_come_back(api):
    api.group()
    api.send(tag="paid", keys=["order-1", "käse"], properties={"colour": "red", "größe": "9"})
    (received,) = api.receive()
    assert received["tag"] == "paid"
    assert received["keys"] == ["order-1", "käse"]
    assert received["properties"] == {"colour": "red", "größe": "9"}


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"delay_second": 5}, "field_unknown", "/delay_second"),
        ({"a/b~c": 5}, "field_unknown", "/a~1b~0c"),
        ({"tag": 5}, "field_invalid", "/tag"),
        ({"tag": "a|b"}, "tag_invalid", "/tag"),
        ({"tag": "a b"}, "tag_invalid", "/tag"),
        ({"tag": "*"}, "tag_invalid", "/tag"),
        ({"tag": ""}, "tag_invalid", "/tag"),
        ({"tag": "a\x00"}, "tag_invalid", "/tag"),
        ({"keys": ["a", "b c"]}, "key_invalid", "/keys/1"),
        ({"keys": [""]}, "key_invalid", "/keys/0"),
        ({"keys": "a"}, "field_invalid", "/keys"),
        ({"keys": ["a", 1]}, "field_invalid", "/keys/1"),
        ({"keys": ["k"] * 33}, "out_of_bounds", "/keys"),
        ({"keys": ["ж" * 255] * 32}, "out_of_bounds", "/keys"),
        ({"properties": {"KEYS": "x"}}, "property_reserved", "/properties/KEYS"),
        ({"properties": {"PD_DUE": "1"}}, "property_reserved", "/properties/PD_DUE"),
        ({"properties": {"DELAY": "1"}}, "property_reserved", "/properties/DELAY"),
        ({"properties": {"a": "\x01"}}, "property_invalid", "/properties/a"),
        ({"properties": {"a": "\x00"}}, "property_invalid", "/properties/a"),
        ({"properties": {" ": "a"}}, "property_invalid", "/properties/ "),
        ({"properties": {"a": 1}}, "field_invalid", "/properties"),
        ({"properties": {"a": "x" * 16_384}}, "properties_too_large", "/properties"),
        ({"properties": {str(n): "x" for n in range(129)}}, "properties_too_large", "/properties"),
        ({"encoding": "gzip"}, "field_invalid", "/encoding"),
        ({"queue": 8}, "queue_unknown", "/queue"),
        ({"queue": -1}, "queue_unknown", "/queue"),
        ({"queue": True}, "field_invalid", "/queue"),
        ({"queue": 1, "sharding_key": "a"}, "queue_conflict", "/queue"),
        ({"sharding_key": "\x02"}, "key_invalid", "/sharding_key"),
        ({"body": "x" * (4 * 1024 * 1024 + 1)}, "body_too_large", "/body"),
        ({"idempotency_key": " a"}, "idempotency_key_invalid", "/idempotency_key"),
        ({"idempotency_key": "ä"}, "idempotency_key_invalid", "/idempotency_key"),
        ({"idempotency_key": "a" * 256}, "idempotency_key_invalid", "/idempotency_key"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_refused_with_its_pointer(api, fields, code, pointer):
    answer = refused(api, {"body": "x", **fields}, 422, code)
    assert answer.pointers == [pointer]


def test_a_body_of_4_mib_is_taken(api):
    assert api.send(body="x" * (4 * 1024 * 1024))["state"] == "ready"


def test_128_properties_of_16_kib_are_taken(api):
    api.group()
    properties = {f"{n:03}": "x" * 120 for n in range(128)}
    api.send(properties=properties)
    assert api.receive()[0]["properties"] == properties


def test_null_means_absent(api):
    message = api.send(tag=None, keys=None, properties=None, delay=None, queue=None, encoding=None)
    assert message["kind"] == "immediate"


def test_a_queue_can_be_chosen(api):
    assert api.send(queue=7)["queue"] == 7


def test_one_sharding_key_is_one_queue(api):
    assert len({api.send(sharding_key="order-1")["queue"] for _ in range(5)}) == 1


def test_without_a_queue_the_queues_take_turns(api):
    assert {api.send()["queue"] for _ in range(8)} == set(range(8))


@pytest.mark.parametrize("name", ["a%b", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "TBW102", "%RETRY%g"])
def test_a_system_name_is_no_topic(api, name):
    answer = api.post(f"topics/{name.replace('%', '%25')}/messages", {"body": "x"})
    assert (answer.status, answer.code) == (422, "name_reserved")


@pytest.mark.parametrize("name", ["a b", "a.b", "ä", "x" * 128, "a\x00b", "<script>", "a\n"])
def test_a_name_of_odd_characters_is_no_topic(api, name):
    from urllib.parse import quote  # noqa: PLC0415

    answer = api.post(f"topics/{quote(name)}/messages", {"body": "x"})
    assert (answer.status, answer.code) == (422, "name_invalid")


def test_an_unknown_topic_is_made_where_that_is_on(api):
    api.send("new-topic")
    assert api.get("topics/new-topic").json["queues"] == 8


def test_an_unknown_topic_is_404_where_it_is_off(api, wiring):
    from dataclasses import replace  # noqa: PLC0415

    wiring.rules = replace(wiring.rules, auto_create_topics=False)
    refused(api, {"body": "x"}, 404, "topic_not_found")


def test_a_level_above_the_table_can_be_clamped_as_rocketmq_does(api, wiring):
    from dataclasses import replace  # noqa: PLC0415

    wiring.rules = replace(wiring.rules, clamp_levels=True)
    assert api.send(delay_level=99)["delay_level"] == 18


# --- batches


def batch(api: Any, *messages: Any) -> Any:
    return api.post("topics/orders/messages/batch", {"messages": list(messages)})


def test_a_batch_answers_for_each_message_and_stores_the_good_ones(api):
    api.group()
    answer = batch(
        api,
        {"body": "first"},
        {"body": ""},
        {"body": "x", "delay_second": 1},
        {"body": "x", "delay": "1h", "delay_ms": 1},
        "rubbish",
        {"body": "last", "delay_level": 1},
    )
    assert answer.status == 200
    results = answer.json["results"]
    assert [result["status"] for result in results] == [201, 400, 422, 400, 422, 201]
    assert [result.get("code") for result in results] == [
        None, "body_required", "field_unknown", "conflicting_delay", "field_invalid", None,
    ]  # fmt: skip
    assert results[2]["pointer"] == "/messages/2/delay_second"
    assert results[5]["kind"] == "level"
    assert [message["id"] for message in api.receive()] == [results[0]["id"]]


def test_a_batch_of_a_thousand_is_stored_in_order(api):
    api.put("topics/orders", {"queues": 1})
    api.group()
    results = batch(api, *({"body": n} for n in range(1000))).json["results"]
    assert len({result["id"] for result in results}) == 1000
    received = []
    while messages := api.receive(max_messages=256):
        received += messages
    assert [message["body"] for message in received] == list(range(1000))


@pytest.mark.parametrize("messages", [[], [{"body": "x"}] * 1001])
def test_a_batch_has_1_to_1000_messages(api, messages):
    answer = batch(api, *messages)
    assert (answer.status, answer.code) == (422, "out_of_bounds")


def test_a_batch_of_rubbish_stores_nothing(api):
    assert [r["status"] for r in batch(api, 1, None, [], "x").json["results"]] == [422] * 4


def test_an_idempotency_key_on_a_batch_is_400(api):
    body = json.dumps({"messages": [{"body": "x"}]}).encode()
    answer = api.call("POST", "topics/orders/messages/batch", raw=body, Idempotency_Key="a")
    assert (answer.status, answer.code) == (400, "idempotency_key_on_batch")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"body": ""}, "body_required"),
        ({"body": "x", "delay": "41d"}, "delay_out_of_range"),
        ({"body": "x", "delay": "soon"}, "delay_invalid"),
        ({"body": "x", "queue": 99}, "queue_unknown"),
        ({"body": "x", "tag": "a||b"}, "tag_invalid"),
        ({"body": "x", "idempotency_key": ""}, "idempotency_key_invalid"),
    ],
)
def test_a_refused_send_makes_no_topic(api, message, code):
    assert api.post("topics/new/messages", message).code == code
    (result,) = api.post("topics/new/messages/batch", {"messages": [message]}).json["results"]
    assert result["code"] == code
    assert api.get("topics/new").status == 404


def test_an_idempotent_send_makes_its_topic_and_is_answered_again(api):
    sent = [
        api.post("topics/new/messages", {"body": "x", "idempotency_key": "1"}) for _ in range(2)
    ]
    assert [one.status for one in sent] == [201, 201]
    assert sent[0].json["id"] == sent[1].json["id"]
    assert sent[1].headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    "delay", ["1000000000000000d", "99999999999999999999d", "PT9999999999999999S"]
)
def test_a_delay_beyond_all_measure_is_out_of_range(api, delay):
    refused(api, {"body": "x", "delay": delay}, 422, "delay_out_of_range")


def test_an_item_of_a_batch_is_told_the_maximum(api):
    long, high = batch(api, {"body": "x", "delay": "41d"}, {"body": "x", "delay_level": 99}).json[
        "results"
    ]
    assert (long["maximum"], long["maximum_ms"]) == ("40d", 40 * 86_400_000)
    assert high["maximum"] == 18


@pytest.mark.parametrize(
    "path", ["topics/orders/messages?delay=1h", "topics/orders/messages/batch?x"]
)
def test_an_unknown_parameter_is_refused_and_nothing_is_sent(api, path):
    answer = api.post(path, {"body": "x"} if "batch" not in path else {"messages": [{"body": "x"}]})
    assert (answer.status, answer.code) == (422, "field_unknown")
    assert api.get("topics/orders").status == 404
