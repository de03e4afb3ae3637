"""Failed attempts: tried again by RocketMQ's rules or the group's own, and ended."""

import pytest

NOW_MS = 1_790_000_000_000
MINUTE_MS = 60_000
#: What the first to the sixteenth failure waits for (spec 5.1), in seconds.
LEVEL_WAITS_S = [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]


def call(api, verb, *receipts, group="billing", **fields):
    answer = api.post(f"groups/{group}/{verb}", {"receipts": list(receipts), **fields})
    assert answer.status == 200, answer.json
    assert [result["receipt"] for result in answer.json["results"]] == list(receipts)
    return answer.json["results"]


def fail(api, message, verb="retry", **fields):
    (result,) = call(api, verb, message["receipt"], **fields)
    return result


def receive_one(api, **fields):
    (message,) = api.receive(**fields)
    return message


def await_retry(api, clock, result):
    """Let the wall clock come to the next attempt, and receive it."""
    clock.advance(result["next_attempt_at_ms"] - clock.now_ms() - 1)
    api.hand_over_what_is_due()
    assert api.receive() == [], "never early"
    clock.advance(1)
    api.hand_over_what_is_due()
    return receive_one(api)


def test_the_first_retry_comes_after_ten_seconds_and_looks_like_the_message(api, clock):
    api.group()
    sent = api.send(tag="paid", keys=["order-1", "k2"], properties={"a": "b"}, body={"n": 1})
    first = receive_one(api)
    result = fail(api, first, reason="the bank is closed")
    assert (result["outcome"], result["next_attempt_at_ms"]) == ("retrying", NOW_MS + 10_000)
    assert result["next_attempt_at"] == "2026-09-21T14:13:30.000Z"
    second = await_retry(api, clock, result)
    assert second.pop("receipt") != first.pop("receipt")
    changed = {"attempt", "due_at", "due_at_ms", "delivered_at", "delivered_at_ms",
               "lateness_ms", "lease_expires_at", "lease_expires_at_ms"}  # fmt: skip
    assert {name for name in first if first[name] != second[name]} <= changed
    assert second["id"] == sent["id"]
    assert (second["attempt"], second["topic"], second["body"]) == (2, "orders", {"n": 1})
    assert (second["due_at_ms"], second["lateness_ms"]) == (NOW_MS + 10_000, 0)


def test_sixteen_retries_by_the_levels_and_then_the_dead_letters(api, clock):
    api.group()
    api.send()
    message = receive_one(api)
    for number, wait_s in enumerate(LEVEL_WAITS_S):
        assert message["attempt"] == number + 1
        result = fail(api, message, reason=f"failure {number + 1}")
        assert result["next_attempt_at_ms"] - clock.now_ms() == wait_s * 1000
        message = await_retry(api, clock, result)
    assert message["attempt"] == 17
    assert fail(api, message)["outcome"] == "dead"
    clock.advance(10 * 3_600_000)
    api.hand_over_what_is_due()
    assert api.receive() == []
    assert len(api.wiring.store.chains.lookup.letters("billing").units) == 1


def test_a_lease_that_runs_out_is_a_failed_attempt(api, clock):
    api.group()
    api.send()
    first = receive_one(api, lease_seconds=10)
    clock.advance(10_000)
    assert api.expire_leases() == 1
    assert api.receive() == []
    clock.advance(10_000)
    api.hand_over_what_is_due()
    second = receive_one(api)
    assert (second["id"], second["attempt"]) == (first["id"], 2)
    for verb in ("ack", "retry", "dead-letter", "release"):
        assert call(api, verb, first["receipt"])[0]["outcome"] == "expired"
    assert call(api, "ack", second["receipt"])[0]["outcome"] == "acked"


def test_a_late_retry_counts_while_nobody_acted_on_the_end(api, clock):
    api.group()
    api.send()
    message = receive_one(api, lease_seconds=10)
    clock.advance(30_000)
    assert fail(api, message)["outcome"] == "retrying"
    assert api.expire_leases() == 0


def test_a_repeated_retry_answers_as_before_and_starts_no_second_chain(api, clock):
    api.group()
    api.send()
    message = receive_one(api)
    first = fail(api, message)
    clock.advance(3_000)
    assert fail(api, message) == first
    assert fail(api, message, "dead-letter") == first
    await_retry(api, clock, first)
    clock.advance(MINUTE_MS)
    api.hand_over_what_is_due()
    assert api.receive() == []


def test_an_acked_message_is_not_retried_and_a_retried_one_not_acked(api):
    api.group()
    api.send()
    api.send()
    one, two = api.receive()
    assert call(api, "ack", one["receipt"])[0]["outcome"] == "acked"
    assert fail(api, one)["outcome"] == "expired"
    assert fail(api, two)["outcome"] == "retrying"
    assert call(api, "ack", two["receipt"])[0]["outcome"] == "expired"


@pytest.mark.parametrize(
    ("fields", "wait_ms"),
    [
        ({"delay_level": 1}, 1_000),
        ({"delay_level": 0}, 10_000),
        ({"delay": "250ms"}, 250),
        ({"delay": "3h"}, 3 * 3_600_000),
    ],
)
def test_a_consumer_may_choose_the_delay(api, clock, fields, wait_ms):
    api.group()
    api.send()
    result = fail(api, receive_one(api), **fields)
    assert result["next_attempt_at_ms"] == NOW_MS + wait_ms
    assert await_retry(api, clock, result)["attempt"] == 2


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"delay_level": 19}, 422, "delay_level_unknown"),
        ({"delay": "soon"}, 400, "delay_invalid"),
        ({"delay": "41d"}, 422, "delay_out_of_range"),
        ({"delay": "1s", "delay_level": 1}, 400, "conflicting_delay"),
        ({"reason": "x" * 1001}, 422, "out_of_bounds"),
        ({"reasons": "x"}, 422, "field_unknown"),
    ],
)
def test_what_cannot_be_asked_for_changes_nothing(api, fields, status, code):
    api.group()
    api.send()
    message = receive_one(api)
    answer = api.post("groups/billing/retry", {"receipts": [message["receipt"]], **fields})
    assert (answer.status, answer.code) == (status, code)
    assert call(api, "ack", message["receipt"])[0]["outcome"] == "acked"


def test_level_minus_one_and_dead_letter_end_the_attempts_at_once(api):
    api.group()
    api.send()
    api.send()
    one, two = api.receive()
    assert fail(api, one, delay_level=-1)["outcome"] == "dead"
    assert fail(api, two, "dead-letter", reason="no such order")["outcome"] == "dead"
    letters = api.wiring.store.chains.lookup.letters("billing")
    assert letters.died_ms.tolist() == [NOW_MS, NOW_MS]


@pytest.mark.parametrize(
    ("policy", "waits_ms"),
    [
        ({"type": "exponential", "initial": "5s", "factor": 2, "max": "15s"},
         [5_000, 10_000, 15_000, 15_000]),
        ({"type": "custom", "delays": ["100ms", "2s"]}, [100, 2_000, 2_000, 2_000]),
    ],
)  # fmt: skip
def test_a_group_may_have_a_policy_of_its_own(api, clock, policy, waits_ms):
    api.group(retry_policy=policy, max_retries=4)
    api.send()
    message = receive_one(api)
    for wait_ms in waits_ms:
        result = fail(api, message)
        assert result["next_attempt_at_ms"] - clock.now_ms() == wait_ms
        message = await_retry(api, clock, result)
    assert fail(api, message, delay="1s")["outcome"] == "dead", "no delay gives more retries"


def test_without_retries_the_first_failure_is_the_end(api):
    api.group(max_retries=0)
    api.send()
    assert fail(api, receive_one(api))["outcome"] == "dead"


def test_the_retry_topic_has_as_many_queues_as_the_group_asks_for(api, clock):
    api.group(retry_queues=3)
    for _ in range(30):
        api.send(queue=0)
    call(api, "retry", *(message["receipt"] for message in api.receive()))
    clock.advance(10_000)
    api.hand_over_what_is_due()
    assert list(api.wiring.store.queue_ids("%RETRY%billing")) == [0, 1, 2]
    assert len(api.receive()) == 30


def test_a_waiting_retry_survives_its_groups_change_of_subscription(api, clock):
    api.group()
    api.send()
    fail(api, receive_one(api))
    api.group(topic="mail")
    clock.advance(10_000)
    api.hand_over_what_is_due()
    assert receive_one(api)["topic"] == "orders"


def test_the_message_itself_stays_as_it_was(api, clock):
    api.group()
    sent = api.send()
    before = api.get(f"messages/{sent['id']}").json
    result = fail(api, receive_one(api))
    await_retry(api, clock, result)
    after = api.get(f"messages/{sent['id']}").json
    same = {"state", "topic", "queue", "due_at_ms", "delivered_at_ms", "lateness_ms", "version"}
    assert {name: before[name] for name in same} == {name: after[name] for name in same}
    assert api.delete(f"messages/{sent['id']}").code == "too_late"


def test_a_broadcasting_group_drops_what_failed(api, clock):
    api.group(mode="broadcasting")
    api.send()
    api.send()
    one, two = api.receive(consumer_id="web-1")
    assert fail(api, one, reason="it broke")["outcome"] == "dropped"
    assert fail(api, two, "dead-letter")["outcome"] == "dropped"
    clock.advance(MINUTE_MS)
    api.hand_over_what_is_due()
    assert api.receive(consumer_id="web-1") == []
    assert len(api.receive(consumer_id="web-2")) == 2, "it is dropped for that consumer alone"
