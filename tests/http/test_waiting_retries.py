"""A group's waiting retries: seen on the message, listed, cancelled, moved, tried now."""

import pytest

NOW_MS = 1_790_000_000_000


@pytest.fixture
def message(api):
    """One whose first attempt failed."""
    api.group()
    api.send(tag="paid", keys=["k1"])
    (found,) = api.receive(consumer_id="worker-1")
    fail(api, found, reason="the bank is closed")
    return found


def fail(api, message, **fields):
    body = {"receipts": [message["receipt"]], **fields}
    (result,) = api.post("groups/billing/retry", body).json["results"]
    assert result["outcome"] == "retrying"
    return result


def later(api, clock, delay_ms):
    clock.advance(delay_ms)
    api.hand_over_what_is_due()
    return api.receive()


def group_of(api, message):
    (state,) = api.get(f"messages/{message['id']}").json["groups"]
    return state


def test_a_waiting_retry_is_listed_with_its_failures(api, clock, message):
    clock.advance(5)
    listed = api.get("groups/billing/retries").json
    assert (listed["count"], listed["next_page_token"]) == (1, "")
    (retry,) = listed["items"]
    assert retry == {
        "id": message["id"],
        "topic": "orders",
        "queue": message["queue"],
        "tag": "paid",
        "keys": ["k1"],
        "state": "scheduled",
        "attempt": 2,
        "due_at": "2026-09-21T14:13:30.000Z",
        "due_at_ms": NOW_MS + 10_000,
        "delivered_at": None,
        "delivered_at_ms": None,
        "version": 1,
        "failures": [
            {
                "attempt": 1,
                "at": "2026-09-21T14:13:20.000Z",
                "at_ms": NOW_MS,
                "reason": "the bank is closed",
                "consumer_id": "worker-1",
            }
        ],
    }
    assert api.get(f"groups/billing/retries/{message['id']}").json["body"] == "hello"


def test_many_waiting_retries_are_listed_in_pages_in_due_order(api, clock):
    api.group()
    for _ in range(7):
        api.send()
    for message in api.receive():
        fail(api, message)
        clock.advance(1)
    seen, token = [], ""
    while True:
        page = api.get(f"groups/billing/retries?page_size=3&page_token={token}").json
        seen += [retry["due_at_ms"] for retry in page["items"]]
        token = page["next_page_token"]
        if not token:
            break
    assert seen == [NOW_MS + 10_000 + number for number in range(7)]


def test_a_retry_is_no_message_of_its_topic(api, message):
    assert api.get("messages?state=scheduled").json["items"] == []
    assert api.get("messages?state=scheduled").json["count"] == 0
    assert message["id"]


def test_a_cancelled_retry_never_comes(api, clock, message):
    path = f"groups/billing/retries/{message['id']}"
    assert api.delete(path).json == {"outcome": "cancelled"}
    assert api.delete(path).json == {"outcome": "already_cancelled"}
    assert api.post(f"{path}/deliver-now").code == "message_cancelled"
    assert later(api, clock, 3_600_000) == []
    state = group_of(api, message)
    assert (state["state"], state["next_attempt_at"]) == ("cancelled", None)
    assert api.get("groups/billing/retries").json["count"] == 0


def test_a_moved_retry_comes_at_its_new_time(api, clock, message):
    path = f"groups/billing/retries/{message['id']}"
    assert api.patch(path, {"delay": "1m"}, If_Match='"7"').status == 412
    moved = api.patch(path, {"delay": "1m"}, If_Match='"1"')
    assert (moved.status, moved.headers["ETag"]) == (200, '"2"')
    assert (moved.json["due_at_ms"], moved.json["attempt"]) == (NOW_MS + 60_000, 2)
    assert later(api, clock, 59_999) == []
    (again,) = later(api, clock, 1)
    assert (again["id"], again["attempt"], again["topic"]) == (message["id"], 2, "orders")


def test_a_retry_can_be_tried_now_and_is_too_late_then(api, clock, message):
    path = f"groups/billing/retries/{message['id']}"
    assert api.post(f"{path}/deliver-now").json["due_at_ms"] == NOW_MS
    (again,) = later(api, clock, 0)
    assert again["attempt"] == 2
    for answer in (
        api.delete(path),
        api.patch(path, {"delay": "1m"}),
        api.post(f"{path}/deliver-now"),
    ):
        assert (answer.status, answer.code) == (409, "too_late")
        assert answer.json["delivered_at_ms"] == NOW_MS


def test_what_has_no_retry_is_not_found(api, message):
    api.group("mail")
    for path in (f"groups/mail/retries/{message['id']}", f"groups/billing/retries/{'0' * 32}"):
        for method in ("GET", "DELETE"):
            assert api.call(method, path).code == "message_not_found"


def test_the_message_tells_how_far_each_group_is(api, clock, message):
    state = group_of(api, message)
    assert (state["state"], state["attempts"]) == ("retrying", 1)
    assert state["next_attempt_at_ms"] == NOW_MS + 10_000
    assert [failure["reason"] for failure in state["failures"]] == ["the bank is closed"]
    planned = [(one["attempt"], one["delay_ms"]) for one in state["planned_attempts"]]
    assert planned[:2] == [(3, 30_000), (4, 60_000)]
    assert planned[-1] == (17, 7_200_000)
    clock.advance(10_000)
    api.hand_over_what_is_due()
    assert group_of(api, message)["state"] == "ready"
    (again,) = api.receive()
    state = group_of(api, message)
    assert (state["state"], state["attempts"]) == ("leased", 2)
    assert state["planned_attempts"][0] == {"attempt": 3, "delay_ms": 30_000}
    api.post("groups/billing/ack", {"receipts": [again["receipt"]]})
    state = group_of(api, message)
    assert (state["state"], state["attempts"]) == ("acked", 2)
    assert "planned_attempts" not in state
    timeline = api.get(f"messages/{message['id']}").json["timeline"]
    assert [event["event"] for event in timeline] == ["sent", "retried", "retry_delivered"]
    assert timeline[1]["detail"] == {
        "group": "billing",
        "attempt": 1,
        "reason": "the bank is closed",
        "consumer_id": "worker-1",
        "due_ms": NOW_MS + 10_000,
    }


def test_a_dead_message_says_so(api, message):
    api.delete(f"groups/billing/retries/{message['id']}")
    other = api.send()
    (found,) = api.receive()
    api.post("groups/billing/dead-letter", {"receipts": [found["receipt"]], "reason": "no"})
    state = group_of(api, other)
    assert (state["state"], state["attempts"]) == ("dead", 1)
    events = [event["event"] for event in api.get(f"messages/{other['id']}").json["timeline"]]
    assert events == ["sent", "died"]


def test_the_lag_counts_what_is_retried_and_dead(api, message):
    api.send()
    (found,) = api.receive()
    api.post("groups/billing/dead-letter", {"receipts": [found["receipt"]]})
    lag = api.get("groups/billing/lag").json
    assert (lag["retrying"], lag["dead"]) == (1, 1)
    assert message["id"]


def test_a_group_with_retries_is_deleted_only_on_purpose_and_leaves_nothing(api, clock, message):
    answer = api.delete("groups/billing")
    assert (answer.status, answer.code) == (409, "not_empty")
    assert answer.json["counts"] == {"leased": 0, "retrying": 1, "dead": 0}
    api.send()
    (found,) = api.receive()
    api.post("groups/billing/dead-letter", {"receipts": [found["receipt"]]})
    assert api.delete("groups/billing").json["counts"]["dead"] == 1
    assert api.delete("groups/billing?purge=true").status == 204
    api.put("groups/billing", {"subscriptions": [{"topic": "orders"}]})
    assert later(api, clock, 3_600_000) == []
    lag = api.get("groups/billing/lag").json
    assert (lag["retrying"], lag["dead"]) == (0, 0)
    assert message["id"]


def test_what_a_deleted_group_had_delivered_is_not_inherited(api, clock, message):
    clock.advance(10_000)
    api.hand_over_what_is_due()
    assert api.delete("groups/billing").status == 204
    api.put("groups/billing", {"subscriptions": [{"topic": "orders"}]})
    assert api.receive() == []
    assert message["id"]


def test_a_key_outside_the_groups_pattern_is_refused(api, message):
    limited = api.as_(groups=("mail-*",))
    assert limited.get("groups/billing/retries").code == "forbidden"
    assert limited.delete(f"groups/billing/retries/{message['id']}").code == "forbidden"


def test_a_group_that_tries_again_keeps_its_mode(api, clock, message):
    changed = {"subscriptions": [{"topic": "orders"}], "mode": "broadcasting"}
    for _ in range(2):  # While the retry waits, and while it is ready.
        answer = api.put("groups/billing", changed)
        assert (answer.status, answer.code) == (409, "group_in_flight")
        clock.advance(10_000)
        api.hand_over_what_is_due()
    (again,) = api.receive()
    api.post("groups/billing/ack", {"receipts": [again["receipt"]]})
    assert api.put("groups/billing", changed).status == 200
    assert again["id"] == message["id"]
