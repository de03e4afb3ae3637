"""Groups that pause, begin anew elsewhere, and change what they subscribe to."""

from typing import Any

import pytest

from queues.selectors import control

NOW_MS = 1_790_000_000_000


def receipts(messages: list[Any]) -> dict[str, Any]:
    return {"receipts": [message["receipt"] for message in messages]}


def reset(api: Any, to: Any, **fields: Any) -> Any:
    return api.post("groups/billing/reset", {"to": to, **fields})


def bodies(messages: list[Any]) -> list[Any]:
    return sorted(message["body"] for message in messages)


def test_a_group_begins_anew_at_the_beginning_and_old_receipts_are_expired(api):
    api.group()
    api.send(body="a")
    api.send(body="b")
    first = api.receive()
    api.post("groups/billing/ack", receipts(first[:1]))
    answer = reset(api, "earliest")
    assert answer.status == 200
    assert {"topic": "orders", "queue": 0, "offset": 0} in answer.json["queues"]
    results = api.post("groups/billing/ack", receipts(first)).json["results"]
    assert [result["outcome"] for result in results] == ["expired", "expired"]
    again = api.receive()
    assert bodies(again) == ["a", "b"]
    assert {message["attempt"] for message in again} == {1}


def test_a_group_begins_anew_at_the_end(api):
    api.group()
    api.send(body="a")
    reset(api, "latest")
    assert api.receive() == []
    api.send(body="b")
    assert bodies(api.receive()) == ["b"]


@pytest.mark.parametrize("to", [NOW_MS + 10_000, "2026-09-21T14:13:30Z"])
def test_a_group_begins_anew_at_a_time(api, clock, to):
    api.group()
    for body in "abcd":
        api.send(body=body)
        clock.advance(5_000)
    api.post("groups/billing/ack", receipts(api.receive()))
    assert reset(api, to).status == 200
    assert bodies(api.receive()) == ["c", "d"]


@pytest.mark.parametrize("retries", ["keep", "cancel"])
def test_a_reset_keeps_retries_or_cancels_them(api, clock, retries):
    api.group()
    api.send(body="ready")
    api.post("groups/billing/retry", receipts(api.receive()))
    clock.advance(10_000)
    api.hand_over_what_is_due()
    api.send(body="waiting")
    held = [one for one in api.receive() if one["body"] == "waiting"]
    api.post("groups/billing/retry", receipts(held))
    answer = reset(api, "latest", retries=retries)
    assert answer.json["cancelled_retries"] == (1 if retries == "cancel" else 0)
    clock.advance(10_000)
    api.hand_over_what_is_due()
    came = api.receive()
    assert bodies(came) == (["ready", "waiting"] if retries == "keep" else [])
    assert {message["attempt"] for message in came} <= {2, 3}


def test_retries_of_a_topic_taken_out_go_on(api, clock):
    api.group()
    api.send(body="a")
    api.post("groups/billing/retry", receipts(api.receive()))
    api.group(topic="mail")
    clock.advance(10_000)
    api.hand_over_what_is_due()
    assert bodies(api.receive()) == ["a"]


def test_a_group_does_not_begin_with_the_messages_of_a_topic_of_before(api, clock):
    api.send(body="old")
    api.delete("topics/orders")
    clock.advance(1)
    api.put("topics/orders", {})
    api.group()
    reset(api, "earliest")
    assert api.receive() == []


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({}, "field_required", "/to"),
        ({"to": "soon"}, "field_invalid", "/to"),
        ({"to": "2026-09-21T14:13:30"}, "field_invalid", "/to"),
        ({"to": "latest", "retries": "forget"}, "field_invalid", "/retries"),
        ({"to": "latest", "queue": 1}, "field_unknown", "/queue"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(api, fields, code, pointer):
    api.group()
    answer = api.post("groups/billing/reset", fields)
    assert (answer.status, answer.code) == (422, code)
    assert answer.json["errors"][0]["pointer"] == pointer


def test_a_reset_of_an_unknown_group_is_404_and_needs_the_right_to_manage(api):
    assert reset(api, "latest").code == "group_not_found"
    api.group()
    assert reset(api.as_(scopes=("consume",)), "latest").status == 403


def test_a_reset_is_audited(api):
    api.group()
    reset(api, "earliest")
    (entry, *_) = api.get("audit-log").json["items"]
    assert (entry["action"], entry["subject"]) == ("group.reset", "billing")
    assert entry["detail"]["to"] == "earliest"


@pytest.mark.parametrize("woken", [True, False], ids=["woken", "its time is up"])
def test_a_poll_that_waits_as_its_group_is_paused_says_so(api, wiring, woken):
    api.group()

    def pause_meanwhile(*_: Any) -> bool:
        api.post("groups/billing/pause")
        return woken

    wiring.watch.wait = pause_meanwhile
    answer = api.post("groups/billing/receive", {"wait_seconds": 20})
    assert answer.json == {"messages": [], "paused": True}


def test_what_a_poll_waits_for_is_known_to_be_changed(api, wiring):
    api.group()
    sources = control.get_group("billing").sources
    is_changed = wiring.watch.is_changed
    assert not is_changed("billing", sources)
    assert not is_changed("billing@1f", sources), "one of its consumers"
    api.group(max_retries=3)
    assert not is_changed("billing", sources)
    api.group(topic="mail")
    assert is_changed("billing", sources)
    api.group()
    api.post("groups/billing/pause")
    assert is_changed("billing", sources)
    api.post("groups/billing/resume")
    assert not is_changed("billing", sources)
    api.delete("groups/billing")
    assert is_changed("billing", sources)


def test_a_paused_group_still_extends_and_goes_on_when_it_is_resumed(api):
    api.group()
    api.send(body="a", queue=0)
    api.send(body="b", queue=0)
    (first,) = api.receive(max_messages=1)
    api.post("groups/billing/pause")
    (extended,) = api.post(
        "groups/billing/extend", {**receipts([first]), "lease_seconds": 60}
    ).json["results"]
    assert extended["outcome"] == "extended"
    assert api.receive() == []
    api.post("groups/billing/resume")
    assert bodies(api.receive()) == ["b"]


def test_a_topic_taken_out_and_in_again_goes_on_where_it_stood(api):
    api.group()
    for body in "abc":
        api.send(body=body, queue=0)
    api.post("groups/billing/ack", receipts(api.receive(max_messages=1)))
    (held,) = api.receive(max_messages=1)
    api.group(topic="mail")
    assert api.receive() == []
    outcomes = api.post("groups/billing/ack", receipts([held])).json["results"]
    assert outcomes[0]["outcome"] == "acked"
    api.send(body="d", queue=0)
    api.group(start_from="latest")
    assert bodies(api.receive()) == ["c", "d"]


def test_another_tag_counts_from_where_the_group_stands(api):
    api.group(subscriptions=[{"topic": "orders", "tags": "a"}])
    for tag in "ab":
        api.send(body=f"{tag}1", tag=tag, queue=0)
    assert bodies(api.receive()) == ["a1"]
    api.group(subscriptions=[{"topic": "orders", "tags": "b"}])
    for tag in "ab":
        api.send(body=f"{tag}2", tag=tag, queue=0)
    assert bodies(api.receive()) == ["b2"]


def test_a_queue_with_as_many_leases_as_it_may_says_so(api, monkeypatch):
    monkeypatch.setattr("queues.store.handout.LEASES_MAX", 2)
    monkeypatch.setattr("queues.store.consuming.LEASES_MAX", 2)
    api.group()
    for _ in range(3):
        api.send(queue=0)
    held = api.receive()
    assert len(held) == 2
    answer = api.post("groups/billing/receive", {})
    assert answer.json == {"messages": [], "full": [{"topic": "orders", "queue": 0}]}
    api.post("groups/billing/ack", receipts(held[:1]))
    assert len(api.receive()) == 1


def test_the_lag_of_a_filter_is_an_estimate_beyond_what_may_be_looked_at(api, monkeypatch):
    monkeypatch.setattr("queues.store.lag.RECEIVE_UNITS_MAX", 10)
    api.group(subscriptions=[{"topic": "orders", "tags": "a"}])
    for number in range(30):
        api.send(tag="ab"[number % 2], queue=0)
    lag = api.get("groups/billing/lag").json
    assert lag["ready_exact"] is False
    assert sum(queue["ready"] for queue in lag["queues"]) == 15


def test_a_slow_queue_does_not_hold_back_the_others(api, wiring):
    api.put("topics/orders", {"queues": 4})
    api.group()
    for queue in range(4):
        for _ in range(3):
            api.send(queue=queue)
    place = next(one for one in wiring.consuming._ledgers.places("billing") if one.queue_id == 1)
    with wiring.consuming._ledgers.use(place) as ledger:
        assert ledger.try_hold()
        came = [message["queue"] for message in api.receive()]
        ledger.release()
    assert sorted(came) == [0, 0, 0, 2, 2, 2, 3, 3, 3]


def test_a_queue_with_much_shares_with_those_with_little(api):
    api.group()
    for _ in range(40):
        api.send(queue=0)
    for queue in (1, 2):
        api.send(queue=queue)
    came = [message["queue"] for _ in range(4) for message in api.receive(max_messages=8)]
    assert {1, 2} <= set(came)


def fail_twice(api: Any, verb: str) -> str:
    """Fail a message, begin anew, fail it again; its id."""
    api.group()
    message_id: str = api.send(body="a")["id"]
    for _ in range(2):
        api.post(f"groups/billing/{verb}", receipts(api.receive()))
        reset(api, "earliest")
    return message_id


def test_a_cancel_after_a_reset_cancels_all_retries_of_the_message(api, clock):
    message_id = fail_twice(api, "retry")
    assert len(api.get("groups/billing/retries").json["items"]) == 2
    for outcome in ("cancelled", "already_cancelled"):
        answer = api.delete(f"groups/billing/retries/{message_id}")
        assert answer.json["outcome"] == outcome
    assert api.get("groups/billing/retries").json["items"] == []
    reset(api, "latest")
    clock.advance(60_000)
    api.hand_over_what_is_due()
    assert api.receive() == []


def test_a_reset_and_a_purge_cancel_all_retries_of_a_message(api, clock):
    fail_twice(api, "retry")
    assert reset(api, "latest", retries="cancel").json["cancelled_retries"] == 2
    api.delete("groups/billing?purge=true")
    fail_twice(api, "retry")
    api.delete("groups/billing?purge=true")
    api.group(start_from="latest")
    clock.advance(60_000)
    api.hand_over_what_is_due()
    assert api.receive() == []


def test_a_message_that_dies_again_after_a_reset_is_one_dead_letter(api):
    message_id = fail_twice(api, "dead-letter")
    letters = api.get("groups/billing/dead-letters").json["items"]
    assert [letter["id"] for letter in letters] == [message_id]
    api.delete(f"groups/billing/dead-letters/{message_id}")
    assert api.get("groups/billing/dead-letters").json["items"] == []
