"""A crowded second: from the limit on ever more is refused, and a free time is named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from queues.services.congestion import refusal_chance
from queues.store.slotcounts import SlotCounts

NOW_MS = 1_790_000_000_000
FULL_MS = NOW_MS + 60_500


@pytest.fixture
def crowded(api: Any) -> Any:
    """A limit of five."""
    api.wiring.rules = replace(api.wiring.rules, slot_limit=5)
    return api


def send_at(api: Any, due_ms: int, **more: Any) -> Any:
    body = {"body": "x", "deliver_at": due_ms, **more}
    return api.post("topics/orders/messages", body)


def fill(api: Any, count: int, due_ms: int = FULL_MS) -> list[int]:
    messages = [{"body": "x", "deliver_at": due_ms}] * count
    answer = api.post("topics/orders/messages/batch", {"messages": messages})
    return [result["status"] for result in answer.json["results"]]


def test_without_a_limit_a_second_takes_any_number(api: Any) -> None:
    assert fill(api, 200) == [201] * 200


def test_up_to_the_limit_everything_is_taken_and_at_twice_of_it_nothing(crowded: Any) -> None:
    statuses = [send_at(crowded, FULL_MS).status for _ in range(60)]
    assert statuses[:5] == [201] * 5
    assert 5 <= statuses.count(201) <= 10
    assert set(statuses) == {201, 429}
    assert statuses[-20:].count(429) >= 15


def test_the_refusal_names_the_nearest_free_second(crowded: Any) -> None:
    fill(crowded, 10)
    fill(crowded, 10, FULL_MS - 1_000)
    fill(crowded, 10, FULL_MS + 1_000)
    fill(crowded, 60)
    answer = send_at(crowded, FULL_MS + 100)
    for _ in range(20):
        if answer.status == 429:
            break
        answer = send_at(crowded, FULL_MS + 100)
    assert (answer.status, answer.code) == (429, "slot_congested")
    assert answer.json["nearest_free_at_ms"] in (FULL_MS + 2_100, FULL_MS - 1_900)
    assert answer.json["nearest_free_at"] in answer.json["detail"]
    assert answer.headers["Retry-After"] == "2"
    assert send_at(crowded, answer.json["nearest_free_at_ms"]).status == 201


def test_each_item_of_a_batch_is_answered_for_itself(crowded: Any) -> None:
    messages = [{"body": "x", "deliver_at": FULL_MS}] * 40 + [{"body": "x", "delay": "2h"}]
    answer = crowded.post("topics/orders/messages/batch", {"messages": messages})
    results = answer.json["results"]
    assert [result["status"] for result in results[:5]] == [201] * 5
    assert results[-1]["status"] == 201
    refused = [result for result in results if result["status"] == 429]
    assert 30 <= len(refused) <= 35
    assert {result["code"] for result in refused} == {"slot_congested"}
    assert all(result["nearest_free_at_ms"] != FULL_MS for result in refused)
    assert {result["retry_after_seconds"] for result in refused} == {1}


def test_a_move_into_a_full_second_is_refused_and_changes_nothing(crowded: Any) -> None:
    fill(crowded, 60)
    message = send_at(crowded, NOW_MS + 5_000).json
    path = f"messages/{message['id']}"
    statuses = {crowded.call("PATCH", path, {"deliver_at": FULL_MS + n}).status for n in range(3)}
    assert 429 in statuses
    moved = crowded.call("PATCH", path, {"deliver_at": FULL_MS + 3_000})
    assert (moved.status, moved.json["due_at_ms"]) == (200, FULL_MS + 3_000)


def test_what_waits_there_already_may_move_within_its_second(crowded: Any) -> None:
    message = send_at(crowded, FULL_MS).json
    fill(crowded, 60)
    moved = crowded.call("PATCH", f"messages/{message['id']}", {"deliver_at": FULL_MS + 10})
    assert moved.status == 200


def test_levels_and_immediate_messages_are_not_asked(crowded: Any) -> None:
    for _ in range(15):
        assert crowded.post("topics/orders/messages", {"body": "x"}).status == 201
        assert crowded.post("topics/orders/messages", {"body": "x", "delay_level": 5}).status == 201


def test_the_repeat_of_a_send_is_answered_as_the_first_was(crowded: Any) -> None:
    first = send_at(crowded, FULL_MS, idempotency_key="one")
    fill(crowded, 60)
    again = send_at(crowded, FULL_MS, idempotency_key="one")
    assert (again.status, again.json["id"]) == (201, first.json["id"])
    messages = [{"body": "x", "deliver_at": FULL_MS, "idempotency_key": "one"}]
    batch = crowded.post("topics/orders/messages/batch", {"messages": messages}).json["results"]
    assert (batch[0]["status"], batch[0]["id"]) == (201, first.json["id"])


def test_a_cancel_makes_room_again_within_a_second(crowded: Any) -> None:
    ids = [send_at(crowded, FULL_MS).json["id"] for _ in range(5)]
    fill(crowded, 60)
    for message_id in ids:
        crowded.call("DELETE", f"messages/{message_id}")
    crowded.wiring.clock.advance(1_500)
    slots = crowded.wiring.get_slots()
    now_ms = crowded.wiring.clock.now_ms()
    waiting = crowded.wiring.store.count_waiting("rmq_sys_wheel_timer", 0)
    assert slots.count(slots.slot_of(FULL_MS), now_ms, limit=5) == waiting <= 5


def test_the_fuller_a_slot_the_likelier_a_refusal() -> None:
    chances = [refusal_chance(count, 100) for count in range(250)]
    assert chances[:101] == [0.0] * 101
    assert all(np.diff(chances) >= 0)
    assert chances[150] == pytest.approx(0.5)
    assert chances[200:] == [1.0] * 50


def test_counts_follow_what_arrives_and_are_counted_anew_when_full(api: Any) -> None:
    slots = SlotCounts(api.wiring.store, 86_400_000)
    slot = slots.slot_of(FULL_MS)
    assert slots.count(slot, NOW_MS, limit=5) == 0
    fill(api, 3)
    assert slots.count(slot, NOW_MS, limit=5) == 3
    assert slots.nearest_free(slot, first=slot - 5, last=slot + 5, limit=1) == (slot - 1, slot + 1)
    assert slots.nearest_free(slot, first=slot, last=slot, limit=1) == (None, None)
