"""One message: look, cancel, restore, move, deliver now, park and release."""

import pytest

NOW_MS = 1_790_000_000_000
SCHEDULED = [{"delay": "1m"}, {"delay_level": 5}]
NOBODY = "01a1fd9025917deeaf95889b9234a651"


@pytest.fixture(params=SCHEDULED, ids=["timed", "level"])
def waiting(api, request):
    """A message that is due in a minute."""
    return api.send(keys=["order-1"], tag="paid", properties={"a": "b"}, **request.param)


def outcome(answer):
    return (answer.status, answer.json.get("outcome", answer.json.get("code")))


def test_a_waiting_message_shows_everything_that_is_known(api, waiting):
    answer = api.get(f"messages/{waiting['id']}")
    assert answer.status == 200
    assert answer.headers["ETag"] == '"1"'
    message = answer.json
    assert message["id"] == waiting["id"]
    assert message["state"] == "scheduled"
    assert message["due_at_ms"] == NOW_MS + 60_000
    assert message["delivered_at"] is None
    assert message["lateness_ms"] is None
    assert message["body"] == "hello"
    assert (message["tag"], message["keys"], message["properties"]) == (
        "paid",
        ["order-1"],
        {"a": "b"},
    )
    assert (message["version"], message["reschedules"]) == (1, 0)
    assert message["groups"] == []
    (event,) = message["timeline"]
    assert (event["event"], event["at_ms"], event["by"]) == ("sent", NOW_MS, "key:test")


def test_a_delivered_message_shows_when_and_how_late(api, waiting, clock):
    clock.advance(60_007)
    assert api.hand_over_what_is_due() == 1
    message = api.get(f"messages/{waiting['id']}").json
    assert message["state"] == "ready"
    assert message["delivered_at_ms"] == NOW_MS + 60_007
    assert message["lateness_ms"] == 7
    assert [event["event"] for event in message["timeline"]] == ["sent", "delivered"]


def test_an_immediate_message_is_never_late(api):
    message = api.get(f"messages/{api.send()['id']}").json
    assert (message["state"], message["lateness_ms"]) == ("ready", 0)
    assert message["delivered_at_ms"] == NOW_MS


def test_a_cancelled_message_is_never_delivered(api, waiting, clock):
    api.group()
    assert outcome(api.delete(f"messages/{waiting['id']}")) == (200, "cancelled")
    clock.advance(61_000)
    api.hand_over_what_is_due()
    assert api.receive() == []
    assert api.get(f"messages/{waiting['id']}").json["state"] == "cancelled"


def test_a_second_cancel_says_so(api, waiting):
    api.delete(f"messages/{waiting['id']}")
    assert outcome(api.delete(f"messages/{waiting['id']}")) == (200, "already_cancelled")


def test_a_cancel_keeps_its_reason_and_who(api, waiting):
    api.delete(f"messages/{waiting['id']}?reason=paid")
    event = api.get(f"messages/{waiting['id']}").json["timeline"][-1]
    assert (event["event"], event["by"], event["detail"]["reason"]) == (
        "cancelled",
        "key:test",
        "paid",
    )


def test_a_cancel_after_the_hand_over_is_too_late_and_says_when(api, waiting, clock):
    clock.advance(60_000)
    api.hand_over_what_is_due()
    answer = api.delete(f"messages/{waiting['id']}")
    assert outcome(answer) == (409, "too_late")
    assert answer.json["delivered_at_ms"] == NOW_MS + 60_000


@pytest.mark.parametrize(
    "message_id", [NOBODY, "x", "a" * 33, "A" * 32, "%00", "..", "%F0%9F%98%80"]
)
def test_what_is_no_message_is_404_for_every_verb(api, message_id):
    api.send()
    for answer in (
        api.get(f"messages/{message_id}"),
        api.delete(f"messages/{message_id}"),
        api.post(f"messages/{message_id}/restore"),
        api.post(f"messages/{message_id}/deliver-now"),
        api.patch(f"messages/{message_id}", {"delay": "1s"}),
        api.post(f"parked/{message_id}/release"),
        api.delete(f"parked/{message_id}"),
    ):
        assert outcome(answer) == (404, "message_not_found")


def test_a_restored_message_waits_again_until_its_old_time(api, waiting, clock):
    api.group()
    api.delete(f"messages/{waiting['id']}")
    answer = api.post(f"messages/{waiting['id']}/restore")
    assert (answer.status, answer.json["state"]) == (200, "scheduled")
    assert answer.json["due_at_ms"] == NOW_MS + 60_000
    clock.advance(60_000)
    api.hand_over_what_is_due()
    assert [message["id"] for message in api.receive()] == [waiting["id"]]


def test_what_is_not_cancelled_cannot_be_restored(api, waiting):
    assert outcome(api.post(f"messages/{waiting['id']}/restore")) == (409, "not_cancelled")


@pytest.mark.parametrize(
    "move",
    [{"delay": "2h"}, {"delay_ms": 7_200_000}, {"delay_seconds": 7200}, {"delay_level": 18},
     {"deliver_at": NOW_MS + 7_210_000}],
)  # fmt: skip
def test_a_moved_message_arrives_at_its_new_time_once(api, waiting, clock, move):
    api.group()
    clock.advance(10_000)
    answer = api.patch(f"messages/{waiting['id']}", move)
    assert answer.status == 200
    moved = answer.json
    assert (moved["id"], moved["kind"], moved["version"]) == (waiting["id"], "timed", 2)
    assert moved["due_at_ms"] == NOW_MS + 7_210_000
    assert moved["reschedules"] == 1
    assert answer.headers["ETag"] == '"2"'
    clock.advance(100_000)
    assert api.hand_over_what_is_due() == 0
    clock.advance(7_200_000)
    api.hand_over_what_is_due()
    assert [message["id"] for message in api.receive()] == [waiting["id"]]


def test_a_cancel_of_another_version_is_412(api, waiting):
    path = f"messages/{waiting['id']}"
    api.patch(path, {"delay": "2h"})
    refused = api.delete(path, If_Match='"1"')
    assert (outcome(refused), refused.json["version"]) == ((412, "version_mismatch"), 2)
    assert api.get(path).json["state"] == "scheduled"
    cancelled = [api.delete(path, If_Match='"2"').json["outcome"] for _ in range(2)]
    assert cancelled == ["cancelled", "already_cancelled"]


def test_a_cancel_is_decided_on_its_version_under_the_lock(api, waiting):
    store = api.wiring.store
    store.move(waiting["id"], waiting["due_at_ms"] + 1_000, by="another")
    assert store.cancel(waiting["id"], by="me", expected_version=1).outcome == "version_mismatch"
    assert store.find(waiting["id"]).state == "scheduled"


def test_the_answer_to_a_move_tells_of_it_and_not_of_what_came_after(api, waiting, monkeypatch):
    store = api.wiring.store
    settle, others = store._changes.settle_flush, [waiting["due_at_ms"] + 77_000]

    def settle_late(end):
        settle(end)
        if others:
            store.move(waiting["id"], others.pop(), by="another")

    monkeypatch.setattr(store._changes, "settle_flush", settle_late)
    moved_ms = waiting["due_at_ms"] + 5_000
    answer = api.patch(f"messages/{waiting['id']}", {"deliver_at": moved_ms})
    assert (answer.json["due_at_ms"], answer.json["version"]) == (moved_ms, 2)
    assert answer.headers["ETag"] == '"2"'
    assert sum(told["event"] == "moved" for told in answer.json["timeline"]) == 1
    assert api.get(f"messages/{waiting['id']}").json["version"] == 3


def test_a_move_on_another_version_is_412(api, waiting):
    path = f"messages/{waiting['id']}"
    assert api.patch(path, {"delay": "2h"}, If_Match='"1"').status == 200
    assert outcome(api.patch(path, {"delay": "3h"}, If_Match='"1"')) == (412, "version_mismatch")
    assert outcome(api.patch(path, {"delay": "3h"}, If_Match="rubbish")) == (
        412,
        "version_mismatch",
    )
    assert api.patch(path, {"delay": "3h"}, If_Match='"7", "2"').status == 200
    assert api.patch(path, {"delay": "3h"}, If_Match="*").json["version"] == 4


@pytest.mark.parametrize(
    ("move", "status", "code"),
    [
        ({}, 422, "field_required"),
        ({"delay": "soon"}, 400, "delay_invalid"),
        ({"delay": "1s", "delay_ms": 1}, 400, "conflicting_delay"),
        ({"delay": "41d"}, 422, "delay_out_of_range"),
        ({"delay_level": 99}, 422, "delay_level_unknown"),
        ({"delay_second": 1}, 422, "field_unknown"),
    ],
)
def test_a_move_to_nowhere_is_refused(api, waiting, move, status, code):
    assert outcome(api.patch(f"messages/{waiting['id']}", move)) == (status, code)


def test_a_cancelled_message_cannot_be_moved_or_delivered(api, waiting):
    api.delete(f"messages/{waiting['id']}")
    moved = api.patch(f"messages/{waiting['id']}", {"delay": "1s"})
    assert outcome(moved) == (409, "message_cancelled")
    assert outcome(api.post(f"messages/{waiting['id']}/deliver-now")) == (409, "message_cancelled")


def test_deliver_now_makes_it_due_now(api, waiting, clock):
    api.group()
    clock.advance(1_000)
    answer = api.post(f"messages/{waiting['id']}/deliver-now")
    assert (answer.status, answer.json["due_at_ms"]) == (200, NOW_MS + 1_000)
    api.hand_over_what_is_due()
    (received,) = api.receive()
    assert (received["id"], received["lateness_ms"]) == (waiting["id"], 0)


def test_after_the_hand_over_every_change_is_too_late(api, waiting, clock):
    clock.advance(60_000)
    api.hand_over_what_is_due()
    path = f"messages/{waiting['id']}"
    assert outcome(api.patch(path, {"delay": "1s"})) == (409, "too_late")
    assert outcome(api.post(f"{path}/deliver-now")) == (409, "too_late")


# --- parked


@pytest.fixture
def parked(waiting, wiring):
    """A message that an operator has to look at."""
    for topic, queue_id in (("SCHEDULE_TOPIC_XXXX", 4), ("rmq_sys_wheel_timer", 0)):
        wiring.store.park(topic, queue_id, 0, reason="the topic was deleted")
    return waiting


def test_a_parked_message_is_listed_with_its_reason(api, parked):
    answer = api.get("parked")
    assert answer.json["count"] == 1
    (message,) = answer.json["items"]
    assert (message["id"], message["state"]) == (parked["id"], "parked")
    assert message["parked_reason"] == "the topic was deleted"


def test_a_released_message_goes_on(api, parked, clock):
    api.group()
    answer = api.post(f"parked/{parked['id']}/release")
    assert (answer.status, answer.json["state"]) == (200, "scheduled")
    clock.advance(60_000)
    api.hand_over_what_is_due()
    assert [message["id"] for message in api.receive()] == [parked["id"]]
    assert api.get("parked").json["items"] == []


def test_a_parked_message_can_be_cancelled(api, parked):
    assert outcome(api.delete(f"parked/{parked['id']}")) == (200, "cancelled")
    assert api.get("parked").json["items"] == []


def test_a_move_releases_a_parked_message(api, parked):
    answer = api.patch(f"messages/{parked['id']}", {"delay": "5m"})
    assert (answer.status, answer.json["state"]) == (200, "scheduled")


def test_what_is_not_parked_cannot_be_released(api, waiting):
    assert outcome(api.post(f"parked/{waiting['id']}/release")) == (409, "not_parked")
    assert outcome(api.delete(f"parked/{waiting['id']}")) == (409, "not_parked")


def test_parked_messages_are_listed_by_pages_also_when_one_goes_in_between(api, wiring):
    sent = [api.send(delay="1m")["id"] for _ in range(5)]
    for offset in range(5):
        wiring.store.park("rmq_sys_wheel_timer", 0, offset, reason="the topic was deleted")
    first = api.get("parked?page_size=2").json
    assert [one["id"] for one in first["items"]] == sent[:2]
    api.post(f"parked/{sent[1]}/release")
    rest = api.get(f"parked?page_token={first['next_page_token']}").json
    assert [one["id"] for one in rest["items"]] == sent[2:]


# --- the message itself is gone


def damage(wiring, offset):
    """Flip a byte of the body of the timed message at an offset of its holding queue."""
    unit = wiring.store.read_units("rmq_sys_wheel_timer", 0, offset, 1)[0]
    with (wiring.store.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(int(unit["log_offset"]) + 90)
        file.write(b"\xff")


def test_a_cancelled_message_that_is_gone_cannot_be_restored(api, wiring):
    sent = api.send(delay="1m", tag="paid")
    api.delete(f"messages/{sent['id']}?reason=paid")
    damage(wiring, 0)
    path = f"messages/{sent['id']}"
    assert outcome(api.post(f"{path}/restore")) == (410, "payload_gone")
    assert outcome(api.delete(path)) == (200, "already_cancelled")
    assert outcome(api.patch(path, {"delay": "1m"})) == (409, "message_cancelled")
    assert outcome(api.post(f"{path}/deliver-now")) == (409, "message_cancelled")
    told = api.get(path).json
    assert (told["state"], told["body"], told["payload_gone"]) == ("cancelled", None, True)
    assert (told["topic"], told["due_at_ms"]) == ("orders", sent["due_at_ms"])
    assert told["created_at_ms"] == sent["created_at_ms"]
    assert told["timeline"][-1]["detail"] == {"reason": "paid"}


def test_a_message_that_was_damaged_while_it_waited_is_parked_with_the_reason(api, wiring, clock):
    sent, whole = api.send(delay="1m"), api.send(delay="1m")
    damage(wiring, 0)
    clock.advance(60_000)
    assert api.hand_over_what_is_due() == 1
    wiring.store.park("rmq_sys_wheel_timer", 0, 0, reason="the record is damaged")
    (listed,) = api.get("parked").json["items"]
    path = f"messages/{sent['id']}"
    told = api.get(path).json
    for one in (listed, told):
        assert (one["id"], one["state"], one["payload_gone"]) == (sent["id"], "parked", True)
        assert one["parked_reason"] == "the record is damaged"
    assert told["body"] is None
    assert outcome(api.post(f"parked/{sent['id']}/release")) == (410, "payload_gone")
    assert outcome(api.patch(path, {"delay": "1m"})) == (410, "payload_gone")
    assert outcome(api.delete(f"parked/{sent['id']}")) == (200, "cancelled")
    assert api.get("parked").json["items"] == []
    assert api.get(f"messages/{whole['id']}").json["state"] == "ready"
