"""Receiving and acknowledging."""

import threading
import time

import pytest

NOW_MS = 1_790_000_000_000


def ack(api, *receipts, group="billing"):
    answer = api.post(f"groups/{group}/ack", {"receipts": list(receipts)})
    assert answer.status == 200, answer.json
    assert [result["receipt"] for result in answer.json["results"]] == list(receipts)
    return [result["outcome"] for result in answer.json["results"]]


def test_a_received_message_says_all_about_itself(api, clock):
    api.group()
    sent = api.send(delay="10s", tag="paid", keys=["order-1"], properties={"a": "b"})
    clock.advance(10_002)
    api.hand_over_what_is_due()
    (message,) = api.receive(lease_seconds=30)
    receipt = message.pop("receipt")
    assert receipt
    assert message == {
        "id": sent["id"],
        "topic": "orders",
        "queue": sent["queue"],
        "body": "hello",
        "tag": "paid",
        "keys": ["order-1"],
        "properties": {"a": "b"},
        "attempt": 1,
        "due_at": "2026-09-21T14:13:30.000Z",
        "due_at_ms": NOW_MS + 10_000,
        "delivered_at": "2026-09-21T14:13:30.002Z",
        "delivered_at_ms": NOW_MS + 10_002,
        "lateness_ms": 2,
        "lease_expires_at": "2026-09-21T14:14:00.002Z",
        "lease_expires_at_ms": NOW_MS + 40_002,
    }


def test_a_leased_message_is_handed_to_nobody_else(api):
    api.group()
    api.send()
    assert len(api.receive()) == 1
    assert api.receive() == []


def test_an_acked_message_never_comes_again(api, clock):
    api.group()
    api.send()
    (message,) = api.receive()
    assert ack(api, message["receipt"]) == ["acked"]
    clock.advance(61_000)
    assert api.receive() == []
    assert ack(api, message["receipt"]) == ["acked"], "a repeated ack is acked"


def test_every_group_gets_every_message(api):
    api.group("billing")
    api.group("mail")
    sent = api.send()
    for group in ("billing", "mail"):
        (message,) = api.receive(group)
        assert message["id"] == sent["id"]


@pytest.mark.parametrize("tags", ["paid", "open || paid"])
def test_a_group_gets_the_tags_that_it_subscribes_to(api, tags):
    api.put(
        "groups/billing",
        {"subscriptions": [{"topic": "orders", "tags": tags}], "start_from": "earliest"},
    )
    api.send(tag="closed")
    paid = api.send(tag="paid")
    api.send()
    assert [message["id"] for message in api.receive()] == [paid["id"]]


def test_latest_begins_with_what_comes_after_the_group(api):
    api.send(body="before")
    api.put("groups/billing", {"subscriptions": [{"topic": "orders"}]})
    api.send(body="after")
    assert [message["body"] for message in api.receive()] == ["after"]


def test_earliest_begins_with_what_was_there(api):
    api.send(body="before")
    api.group(start_from="earliest")
    assert [message["body"] for message in api.receive()] == ["before"]


def test_a_group_may_subscribe_before_its_topic_is_made(api):
    api.put("groups/billing", {"subscriptions": [{"topic": "orders"}]})
    api.send()
    assert len(api.receive()) == 1


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"max_messages": 0}, "out_of_bounds", "/max_messages"),
        ({"max_messages": 257}, "out_of_bounds", "/max_messages"),
        ({"max_messages": "1"}, "field_invalid", "/max_messages"),
        ({"wait_seconds": -1}, "out_of_bounds", "/wait_seconds"),
        ({"wait_seconds": 21}, "out_of_bounds", "/wait_seconds"),
        ({"lease_seconds": 9}, "out_of_bounds", "/lease_seconds"),
        ({"lease_seconds": 43_201}, "out_of_bounds", "/lease_seconds"),
        ({"consumer_id": ""}, "out_of_bounds", "/consumer_id"),
        ({"consumer_id": "a\x00"}, "out_of_bounds", "/consumer_id"),
        ({"max_message": 1}, "field_unknown", "/max_message"),
    ],
)
def test_a_receive_out_of_bounds_is_refused(api, fields, code, pointer):
    api.group()
    answer = api.post("groups/billing/receive", fields)
    assert (answer.status, answer.code, answer.pointers) == (422, code, [pointer])


def test_a_receive_brings_as_many_as_asked_for_at_most(api):
    api.group()
    api.post("topics/orders/messages/batch", {"messages": [{"body": "x"}] * 300})
    assert len(api.receive()) == 32
    assert len(api.receive(max_messages=256)) == 256
    assert len(api.receive(max_messages=256)) == 12


def test_a_receive_is_cut_at_16_mib_of_bodies(api):
    api.put("topics/orders", {"queues": 1})
    api.group()
    for _ in range(5):
        api.send(body="x" * (4 << 20))
    first = api.receive()
    assert 1 <= len(first) <= 4
    assert len(first) + len(api.receive()) == 5


@pytest.mark.parametrize("receipt", ["", "x", "a" * 500, "käse", "\x00", "===="])
def test_a_receipt_that_is_none_is_invalid(api, receipt):
    api.group()
    assert ack(api, receipt) == ["invalid"]


def test_a_receipt_of_another_group_or_forged_is_invalid(api):
    api.group("billing")
    api.group("mail")
    api.send()
    (message,) = api.receive("billing")
    receipt = message["receipt"]
    assert ack(api, receipt, group="mail") == ["invalid"]
    forged = receipt[:-2] + ("AA" if receipt[-2:] != "AA" else "BB")
    assert ack(api, forged) == ["invalid"]
    assert ack(api, forged, receipt, receipt) == ["invalid", "acked", "acked"]


@pytest.mark.parametrize("receipts", [[], ["x"] * 1001])
def test_an_ack_has_1_to_1000_receipts(api, receipts):
    api.group()
    answer = api.post("groups/billing/ack", {"receipts": receipts})
    assert (answer.status, answer.code) == (422, "out_of_bounds")


def test_a_message_says_how_far_each_group_is_with_it(api, clock):
    api.group("billing")
    api.group("mail")
    api.put(
        "groups/open", {"subscriptions": [{"topic": "orders", "tags": "open"}],
                        "start_from": "earliest"}
    )  # fmt: skip
    path = f"messages/{api.send(tag='paid')['id']}"
    api.put("groups/late", {"subscriptions": [{"topic": "orders"}]})

    def groups():
        states = api.get(path).json["groups"]
        return {one["group"]: (one["state"], one["attempts"]) for one in states}

    assert groups() == {"billing": ("ready", 0), "mail": ("ready", 0)}
    (message,) = api.receive("billing", lease_seconds=10)
    assert groups() == {"billing": ("leased", 1), "mail": ("ready", 0)}
    (leased, _) = api.get(path).json["groups"]
    delay_ms = leased["planned_attempts"][0]["delay_ms"]
    assert leased["next_attempt_at_ms"] == NOW_MS + 10_000 + delay_ms
    ack(api, message["receipt"])
    assert groups()["billing"] == ("acked", 1)
    api.receive("mail", lease_seconds=10)
    clock.advance(10_000)
    assert groups()["mail"] == ("ready", 1)


def test_the_last_attempt_of_a_group_has_no_next_one(api):
    api.group("billing", max_retries=0)
    path = f"messages/{api.send()['id']}"
    api.receive("billing", lease_seconds=10)
    (leased,) = api.get(path).json["groups"]
    assert (leased["state"], leased["next_attempt_at_ms"]) == ("leased", None)
    assert leased["next_attempt_at"] is None


def test_a_broadcast_message_comes_again_when_its_lease_ends(api):
    api.group("news", mode="broadcasting")
    api.receive("news", consumer_id="one", lease_seconds=10)
    path = f"messages/{api.send()['id']}"
    assert api.receive("news", consumer_id="one", lease_seconds=10)
    (leased,) = api.get(path).json["groups"]
    assert leased["next_attempt_at_ms"] == NOW_MS + 10_000


def test_the_lag_counts_what_is_ready_and_what_is_leased(api):
    api.put("topics/orders", {"queues": 2})
    api.group()
    for queue in (0, 0, 0, 1):
        api.send(queue=queue)
    api.receive(max_messages=1)
    lag = api.get("groups/billing/lag").json
    assert (lag["retrying"], lag["dead"], lag["ready_exact"]) == (0, 0, True)
    assert sum(queue["ready"] for queue in lag["queues"]) == 3
    assert sum(queue["leased"] for queue in lag["queues"]) == 1
    assert {queue["topic"] for queue in lag["queues"]} == {"orders"}
    oldest = [queue["oldest_ready_at_ms"] for queue in lag["queues"] if queue["ready"]]
    assert set(oldest) == {NOW_MS}


def test_a_long_poll_gets_a_message_as_soon_as_it_is_ready(api, wiring):
    api.group()
    api.send()
    api.receive()
    got = []

    def poll():
        from django.db import connection  # noqa: PLC0415

        try:
            from queues.selectors.control import cache  # noqa: PLC0415
            from queues.services.receiving import receive  # noqa: PLC0415

            group = cache.current().groups["billing"]
            got.extend(
                receive(group=group, max_messages=1, wait_ms=10_000, lease_ms=60_000).deliveries
            )
        finally:
            connection.close()

    thread = threading.Thread(target=poll)
    thread.start()
    deadline = time.monotonic() + 10
    while not wiring.watch._state.waiting and time.monotonic() < deadline:
        time.sleep(0.005)
    sent_at = time.monotonic()
    api.send(body="now")
    thread.join(10)
    assert len(got) == 1
    assert time.monotonic() - sent_at < 5


def test_a_poll_that_finds_no_place_to_wait_answers_at_once(api, wiring):
    from dataclasses import replace  # noqa: PLC0415

    wiring.rules = replace(wiring.rules, polls_max=0)
    api.group()
    assert api.receive(wait_seconds=20) == []
