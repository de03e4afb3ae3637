"""Broadcasting groups over the API: each consumer_id gets every message."""

from typing import Any

import pytest

from queues.selectors.control import get_group
from queues.services.receiving import drop

DAY_MS = 86_400_000


@pytest.fixture
def cache(api: Any) -> Any:
    api.group("cache", mode="broadcasting")
    return api


def receive(api: Any, consumer_id: str, **fields: Any) -> list[Any]:
    return api.receive("cache", consumer_id=consumer_id, **fields)


def receipts(messages: list[Any]) -> dict[str, Any]:
    return {"receipts": [message["receipt"] for message in messages]}


def bodies(messages: list[Any]) -> list[Any]:
    return sorted(message["body"] for message in messages)


def outcomes(answer: Any) -> list[str]:
    assert answer.status == 200
    return [result["outcome"] for result in answer.json["results"]]


def test_each_consumer_gets_every_message(cache):
    for body in "abc":
        cache.send(body=body)
    first, second = receive(cache, "web-1"), receive(cache, "web-2")
    assert bodies(first) == bodies(second) == ["a", "b", "c"]
    assert outcomes(cache.post("groups/cache/ack", receipts(first + second))) == ["acked"] * 6
    assert receive(cache, "web-1") == []


def test_a_consumer_must_say_who_it_is(cache):
    answer = cache.post("groups/cache/receive", {})
    assert (answer.status, answer.code) == (422, "field_required")
    assert answer.json["errors"][0]["pointer"] == "/consumer_id"


def test_a_lease_that_runs_out_comes_to_the_same_consumer_again(cache, clock):
    cache.send(body="a")
    receive(cache, "web-1")
    other = receive(cache, "web-2")
    cache.post("groups/cache/ack", receipts(other))
    clock.advance(60_000)
    (again,) = receive(cache, "web-1")
    assert again["attempt"] == 2
    assert receive(cache, "web-2") == []


def test_a_consumer_begins_by_start_from(api):
    api.group("cache", mode="broadcasting", start_from="latest")
    api.group("archive", mode="broadcasting", start_from="earliest")
    api.send(body="a", queue=0)
    assert api.receive("cache", consumer_id="1") == []
    assert bodies(api.receive("archive", consumer_id="1")) == ["a"]
    api.send(body="b", queue=0)
    assert bodies(api.receive("cache", consumer_id="1")) == ["b"]
    assert api.receive("cache", consumer_id="2") == []


def test_a_topic_that_is_added_begins_for_those_who_are_known(cache):
    receive(cache, "web-1")
    cache.send("mail", body="old")
    subscriptions = [{"topic": "orders"}, {"topic": "mail"}]
    cache.group("cache", mode="broadcasting", subscriptions=subscriptions, start_from="latest")
    cache.send("mail", body="new")
    assert bodies(receive(cache, "web-1")) == ["new"]


def test_a_consumer_that_was_not_seen_for_a_week_is_forgotten(cache, clock, wiring):
    cache.send(body="a")
    receive(cache, "web-1")
    clock.advance(7 * DAY_MS - 1)
    assert wiring.consuming.members.forget_unseen(clock.now_ms()) == 0
    clock.advance(1)
    assert wiring.consuming.members.forget_unseen(clock.now_ms()) == 1
    (again,) = receive(cache, "web-1")
    assert again["attempt"] == 1


def test_a_receipt_is_extended_and_given_back_by_whoever_holds_it(cache):
    cache.send(body="a")
    (held,) = receive(cache, "web-1")
    body = {**receipts([held]), "lease_seconds": 120}
    (extended,) = cache.post("groups/cache/extend", body).json["results"]
    assert extended["outcome"] == "extended"
    assert outcomes(cache.post("groups/cache/ack", receipts([held]))) == ["expired"]
    again = {"receipts": [extended["new_receipt"]]}
    assert outcomes(cache.post("groups/cache/release", again)) == ["released"]
    (message,) = receive(cache, "web-1")
    assert message["attempt"] == 1


@pytest.mark.parametrize("receipt", ["", ".", "x", "0123456789abcdef.", "../x.y", "é.x"])
def test_a_receipt_that_is_none_is_invalid(cache, receipt):
    assert outcomes(cache.post("groups/cache/ack", {"receipts": [receipt]})) == ["invalid"]


def test_a_receipt_of_one_consumer_is_none_of_another(cache):
    cache.send(body="a")
    (first,), (second,) = receive(cache, "web-1"), receive(cache, "web-2")
    digits = second["receipt"].partition(".")[0]
    forged = f"{digits}.{first['receipt'].partition('.')[2]}"
    assert outcomes(cache.post("groups/cache/ack", {"receipts": [forged]})) == ["invalid"]


def test_what_fails_is_dropped_for_its_consumer_and_counted(cache, wiring):
    message = cache.send(body="a")
    (held,), (other,) = receive(cache, "web-1"), receive(cache, "web-2")
    found = drop(group=get_group("cache"), receipts=[held["receipt"], "x"], reason="broken")
    assert found == ["dropped", "invalid"]
    assert wiring.store.counters()["dropped"] == 1
    states = {
        one["consumer_id"]: one["state"]
        for one in cache.get(f"messages/{message['id']}").json["groups"]
    }
    assert states == {"web-1": "dropped", "web-2": "leased"}
    assert outcomes(cache.post("groups/cache/ack", receipts([other]))) == ["acked"]


def test_lag_and_leases_say_whose_they_are(cache):
    cache.send(body="a")
    receive(cache, "web-1")
    cache.send(body="b")
    receive(cache, "web-2", max_messages=1)
    lag = cache.get("groups/cache/lag").json["queues"]
    told = {
        name: [
            sum(queue[key] for queue in lag if queue["consumer_id"] == name)
            for key in ("ready", "leased")
        ]
        for name in ("web-1", "web-2")
    }
    assert told == {"web-1": [1, 1], "web-2": [1, 1]}
    leases = cache.get("groups/cache/leases").json
    assert leases["count"] == 2
    assert sorted(one["consumer_id"] for one in leases["items"]) == ["web-1", "web-2"]
    page = cache.get("groups/cache/leases?page_size=1").json
    rest = cache.get(f"groups/cache/leases?page_token={page['next_page_token']}").json
    assert len(page["items"]) == len(rest["items"]) == 1
    assert page["items"] != rest["items"]


def test_a_reset_is_for_all_its_consumers(cache):
    cache.send(body="a")
    held = [*receive(cache, "web-1"), *receive(cache, "web-2")]
    cache.post("groups/cache/ack", receipts(held))
    cache.post("groups/cache/reset", {"to": "earliest"})
    assert bodies(receive(cache, "web-1")) == bodies(receive(cache, "web-2")) == ["a"]


def test_the_mode_changes_once_nothing_is_leased_and_begins_anew(cache):
    cache.send(body="a")
    held = receive(cache, "web-1")
    body = {"subscriptions": [{"topic": "orders"}], "start_from": "earliest"}
    assert cache.put("groups/cache", body).code == "group_in_flight"
    cache.post("groups/cache/ack", receipts(held))
    assert cache.put("groups/cache", body).status == 200
    assert bodies(cache.receive("cache")) == ["a"]


def test_a_group_that_broadcast_meanwhile_does_not_get_its_old_retries_again(api, clock):
    api.group()
    api.send(body="a")
    api.post("groups/billing/retry", receipts(api.receive()))
    clock.advance(10_000)
    api.hand_over_what_is_due()
    api.post("groups/billing/ack", receipts(api.receive()))
    api.group(mode="broadcasting")
    api.group(start_from="latest")
    assert api.receive() == []


def test_a_group_made_anew_knows_no_consumer_of_before(cache):
    cache.send(body="a")
    held = receive(cache, "web-1")
    assert cache.delete("groups/cache").code == "not_empty"
    assert cache.delete("groups/cache?purge=true").status == 204
    cache.group("cache", mode="broadcasting")
    assert outcomes(cache.post("groups/cache/ack", receipts(held))) == ["expired"]
    assert bodies(receive(cache, "web-1")) == ["a"]


def test_too_many_consumers_are_refused(cache, monkeypatch):
    monkeypatch.setattr("queues.store.members.MEMBERS_MAX", 1)
    receive(cache, "web-1")
    answer = cache.post("groups/cache/receive", {"consumer_id": "web-2"})
    assert (answer.status, answer.code) == (422, "out_of_bounds")
