"""Bulk changes: looked at first, carried out once, true whatever else happens, taken back."""

from pathlib import Path
from typing import Any

import pytest

from queues.services.operations import OperationLeft
from queues.store.bulkchanges import BulkChanges
from queues.store.names import JOURNAL_TOPIC
from queues.store.traces import TRACE_QUEUE_ID
from queues.testing import OwnWiring
from tests.http.conftest import Api
from tests.support.bulkhouse import House
from tests.support.clock import ManualClock

NOW_MS = 1_790_000_000_000
MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def house(api: Api, tmp_path: Path) -> House:
    return House(api, tmp_path / "leases")


def test_a_dry_run_says_what_would_be_cancelled_and_changes_nothing(api: Api, house: House) -> None:
    sent = [api.send(delay=f"{n + 1}m", tag="a" if n % 2 else "b") for n in range(12)]
    api.send("mail", delay="1m")
    seen = house.plan("cancel", filter={"topic": "orders"})
    assert seen["count"] == 12
    assert [one["id"] for one in seen["sample"]] == [one["id"] for one in sent[:10]]
    assert seen["expires_at_ms"] == NOW_MS + 15 * MINUTE
    effect = seen["forecast"]["buckets"]
    assert sum(one["before"] for one in effect) == 12
    assert sum(one["after"] for one in effect) == 0
    assert house.plan("cancel", filter={"tag": "a"})["count"] == 6
    assert house.states(sent) == ["scheduled"] * 12


def test_a_plan_cancels_what_was_looked_at_and_nothing_that_came_later(
    api: Api, house: House
) -> None:
    timed = [api.send(delay=f"{n + 1}m") for n in range(5)]
    levels = [api.send(delay_level=n + 5) for n in range(5)]
    other = api.send("mail", delay="1m")
    plan = house.plan("cancel", filter={"topic": "orders"})
    later = [api.send(delay="1m"), api.send(delay_level=5)]
    one = house.begin("cancel", plan["plan_id"])
    assert one == plan["plan_id"]
    later.append(api.send(delay="2m"))
    house.run()
    told = house.done(one)
    assert (told["state"], told["kind"]) == ("succeeded", "messages.cancel")
    assert told["result"] == {"planned": 10, "changed": 10, "lost": 0}
    assert told["progress"] == {"done": 10, "total": 10}
    assert house.states([*timed, *levels]) == ["cancelled"] * 10
    assert house.states([other, *later]) == ["scheduled"] * 4
    assert api.get(f"messages/{timed[0]['id']}").json["timeline"][-1]["by"] == f"operation:{one}"


def test_the_first_change_of_a_store_that_has_only_traces_is_carried_out(
    api: Api, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = api.wiring.store
    monkeypatch.setattr(api.wiring.consuming, "tracer", store.traces)
    api.group()
    api.send()
    assert len(api.post("groups/billing/receive", {}).json["messages"]) == 1
    assert store.queue_ids(JOURNAL_TOPIC) == (TRACE_QUEUE_ID,)
    sent = [api.send(delay="1h") for _ in range(3)]
    one = house.begin("cancel", house.plan("cancel", filter={"topic": "orders"})["plan_id"])
    house.run()
    assert house.done(one)["state"] == "succeeded"
    assert house.states(sent) == ["cancelled"] * 3


def test_a_plan_runs_once(api: Api, house: House) -> None:
    api.send(delay="1m")
    plan_id = house.plan("cancel", filter={"topic": "orders"})["plan_id"]
    house.begin("cancel", plan_id)
    again = api.post("bulk/cancel", {"plan_id": plan_id})
    assert (again.status, again.code, again.json["operation_id"]) == (409, "plan_used", plan_id)


def test_a_filter_for_a_kind_means_what_the_message_says_of_itself(api: Api, house: House) -> None:
    level, timed = api.send(delay_level=5), api.send(delay="1m")
    api.delete(f"messages/{level['id']}")
    api.post(f"messages/{level['id']}/restore")
    assert house.plan("cancel", filter={"kind": "timed"})["count"] == 1
    plan = house.plan("cancel", filter={"kind": "level"})
    assert plan["count"] == 1
    house.begin("cancel", plan["plan_id"])
    house.run()
    assert house.states([level, timed]) == ["cancelled", "scheduled"]


def test_a_plan_lives_a_quarter_of_an_hour(api: Api, house: House, clock: ManualClock) -> None:
    sent = [api.send(delay="1h")]
    plan_id = house.plan("cancel", filter={"topic": "orders"})["plan_id"]
    clock.advance(15 * MINUTE)
    late = api.post("bulk/cancel", {"plan_id": plan_id})
    assert (late.status, late.code) == (410, "plan_expired")
    assert house.states(sent) == ["scheduled"]


def test_a_plan_belongs_to_its_verb_and_to_who_made_it(api: Api, house: House) -> None:
    api.send(delay="1h")
    plan_id = house.plan("cancel", filter={"topic": "orders"})["plan_id"]
    for caller, verb in ((api, "restore"), (api.as_(scopes=("manage",)), "cancel")):
        answer = caller.post(f"bulk/{verb}", {"plan_id": plan_id})
        assert (answer.status, answer.code) == (404, "plan_not_found")
    assert api.post("bulk/cancel", {"plan_id": "0" * 32}).code == "plan_not_found"


@pytest.mark.parametrize(
    ("verb", "request_", "status", "code"),
    [
        ("cancel", {}, 422, "filter_required"),
        ("cancel", {"filter": {}, "dry_run": True}, 422, "filter_required"),
        ("cancel", {"filter": {"topic": None}, "dry_run": True}, 422, "filter_required"),
        ("cancel", {"filter": {"state": "scheduled"}, "dry_run": True}, 422, "filter_required"),
        ("cancel", {"filter": {"topic": "orders"}}, 422, "plan_required"),
        ("cancel", {"filter": {"topic": "a", "state": "ready"}}, 422, "filter_unsupported"),
        ("cancel", {"filter": {"kind": "immediate"}}, 422, "filter_unsupported"),
        ("cancel", {"filter": {"due_after": "noon"}}, 400, "delay_invalid"),
        ("cancel", {"filter": {"topics": "a"}}, 422, "field_unknown"),
        ("cancel", {"filter": {"topic": "a"}, "to": {"delay": "1m"}}, 422, "field_unknown"),
        ("cancel", {"plan_id": "0" * 32, "dry_run": True}, 422, "field_invalid"),
        ("reschedule", {"filter": {"topic": "a"}, "dry_run": True}, 422, "field_required"),
        ("reschedule", {"filter": {"topic": "a"}, "dry_run": True, "to": {}},
         422, "field_required"),
        ("reschedule", {"filter": {"topic": "a"}, "dry_run": True,
                        "to": {"delay": "1m", "shift": "1m"}}, 400, "conflicting_delay"),
        ("reschedule", {"filter": {"topic": "a"}, "dry_run": True, "to": {"shift": "later"}},
         400, "delay_invalid"),
        ("reschedule", {"filter": {"topic": "a"}, "dry_run": True, "to": {"delay": "41d"}},
         422, "delay_out_of_range"),
    ],
)  # fmt: skip
def test_what_is_no_bulk_change_is_refused(
    api: Api, verb: str, request_: Any, status: int, code: str
) -> None:
    answer = api.post(f"bulk/{verb}", request_)
    assert (answer.status, answer.code) == (status, code)


def test_bulk_changes_need_manage_and_stay_inside_the_keys_topics(api: Api, house: House) -> None:
    mine, other = api.send(delay="1m"), api.send("mail", delay="1m")
    look = {"filter": {"due_after": NOW_MS}, "dry_run": True}
    assert api.as_(scopes=("send",)).post("bulk/cancel", look).status == 403
    limited = api.as_(topics=("orders",))
    assert limited.post("bulk/cancel", {**look, "filter": {"topic": "mail"}}).status == 403
    seen = limited.post("bulk/cancel", look).json
    assert seen["count"] == 1
    assert limited.post("bulk/cancel", {"plan_id": seen["plan_id"]}).status == 202
    house.run()
    assert house.states([mine, other]) == ["cancelled", "scheduled"]


def test_a_window_a_key_and_a_tag_narrow_a_bulk_change(api: Api, house: House) -> None:
    sent = [api.send(delay=f"{n + 1}m", tag="x", keys=[f"k{n % 3}", "all"]) for n in range(9)]
    level = api.send(delay_level=6, tag="x", keys=["k0"])
    window = {"due_after": NOW_MS + 2 * MINUTE, "due_before": NOW_MS + 4 * MINUTE}
    assert house.do("cancel", filter=window)["result"]["changed"] == 3
    assert house.do("cancel", filter={"key": "k0"})["result"]["changed"] == 3
    assert house.do("cancel", filter={"key": "all", "tag": "y"})["result"]["changed"] == 0
    assert house.do("cancel", filter={"tag": "x", "kind": "timed"})["result"]["changed"] == 4
    assert house.states([*sent, level]) == ["cancelled"] * 10


def test_a_shift_moves_each_message_by_as_much_once(api: Api, house: House) -> None:
    sent = [api.send(delay=f"{n + 1}m") for n in range(3)] + [api.send(delay_level=9)]
    seen = house.plan("reschedule", filter={"topic": "orders"}, to={"shift": "10m"})
    effect = {one["start_ms"] - NOW_MS: one for one in seen["forecast"]["buckets"]}
    assert sum(one["after"] for one in effect.values()) == 4
    one = house.begin("reschedule", seen["plan_id"])
    house.run()
    assert house.done(one)["result"]["changed"] == 4
    assert house.dues(sent) == [11 * MINUTE, 12 * MINUTE, 13 * MINUTE, 15 * MINUTE]
    assert {api.get(f"messages/{one['id']}").json["kind"] for one in sent} == {"timed"}
    back = house.undo(one)
    assert back["result"]["changed"] == 4
    assert house.dues(sent) == [MINUTE, 2 * MINUTE, 3 * MINUTE, 5 * MINUTE]
    assert api.get(f"messages/{sent[3]['id']}").json["kind"] == "level"
    assert [api.get(f"messages/{one['id']}").json["version"] for one in sent] == [3] * 4


def test_moving_to_a_time_or_by_a_delay_counts_from_the_carrying_out(
    api: Api, house: House, clock: ManualClock
) -> None:
    one, other = api.send(delay="1h"), api.send("mail", delay="1h")
    house.do("reschedule", filter={"topic": "orders"}, to={"deliver_at": NOW_MS + 5 * MINUTE})
    plan = house.plan("reschedule", filter={"topic": "mail"}, to={"delay": "10m"})
    clock.advance(MINUTE)
    house.begin("reschedule", plan["plan_id"])
    house.run()
    assert house.dues([one, other]) == [5 * MINUTE, 11 * MINUTE]
    earlier = house.do("reschedule", filter={"topic": "mail"}, to={"shift": "-1h"})
    assert earlier["result"]["changed"] == 1
    assert house.dues([other]) == [MINUTE]
    api.hand_over_what_is_due()
    assert house.states([one, other]) == ["scheduled", "ready"]


def test_deliver_now_delivers_and_cannot_be_undone(api: Api, house: House) -> None:
    sent = [api.send(delay="1h") for _ in range(3)]
    told = house.do("deliver-now", filter={"topic": "orders"})
    assert api.hand_over_what_is_due() == 3
    assert house.states(sent) == ["ready"] * 3
    assert {api.get(f"messages/{one['id']}").json["lateness_ms"] for one in sent} == {0}
    refused = api.post(f"operations/{told['id']}/undo")
    assert (refused.status, refused.code) == (409, "not_undoable")


def test_a_bulk_cancel_is_undone_but_for_what_others_did_since(api: Api, house: House) -> None:
    sent = [api.send(delay=f"{n + 1}m") for n in range(4)]
    before = api.send(delay="1m")
    api.delete(f"messages/{before['id']}")
    told = house.do("cancel", filter={"topic": "orders"})
    api.post(f"messages/{sent[0]['id']}/restore")
    api.delete(f"messages/{sent[0]['id']}")
    back = house.undo(told["id"])
    assert back["result"] == {"changed": 3, "lost": 0, "gone": 0}
    assert house.states([*sent, before]) == ["cancelled", *["scheduled"] * 3, "cancelled"]
    assert house.dues(sent[1:]) == [2 * MINUTE, 3 * MINUTE, 4 * MINUTE]


def test_restore_takes_the_cancelled_and_its_undo_cancels_them_again(
    api: Api, house: House, clock: ManualClock
) -> None:
    sent = [api.send(delay=f"{n + 1}m") for n in range(4)]
    waits = api.send(delay="1m")
    for one in sent:
        api.delete(f"messages/{one['id']}")
    clock.advance(90_000)
    plan = house.plan("restore", filter={"topic": "orders"})
    assert (plan["count"], len(plan["sample"])) == (4, 4)
    api.delete(f"messages/{waits['id']}")
    one = house.begin("restore", plan["plan_id"])
    house.run()
    assert house.done(one)["result"]["changed"] == 4
    # What was cancelled after the look stays so; what was past due is due now.
    assert house.states([*sent, waits]) == ["scheduled"] * 4 + ["cancelled"]
    assert house.dues(sent) == [90_000, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE]
    assert api.hand_over_what_is_due() == 1
    back = house.undo(one)
    assert back["result"]["changed"] == 3
    assert house.states(sent) == ["ready"] + ["cancelled"] * 3


def test_what_was_moved_since_the_look_is_left_alone_what_was_renewed_is_not(
    api: Api, house: House, wiring: OwnWiring
) -> None:
    sent = [api.send(delay=f"{n + 10}m") for n in range(4)]
    plan = house.plan("cancel", filter={"topic": "orders"})
    api.patch(f"messages/{sent[0]['id']}", {"delay": "20m"})
    api.delete(f"messages/{sent[1]['id']}")
    api.post(f"messages/{sent[1]['id']}/restore")
    retention = wiring.store._retention
    queue = wiring.store.outlook.queue("rmq_sys_wheel_timer", 0)
    retention._renew_one(queue, 2, 0, NOW_MS)
    one = house.begin("cancel", plan["plan_id"])
    house.run()
    assert house.done(one)["result"]["changed"] == 2
    assert house.states(sent) == ["scheduled", "scheduled", "cancelled", "cancelled"]
    moved = api.send("mail", delay="1h")
    told = house.do("reschedule", filter={"topic": "mail"}, to={"shift": "1h"})
    end = wiring.store.queue_bounds("rmq_sys_wheel_timer", 0).max_offset
    retention._renew_one(queue, end - 1, 0, NOW_MS)
    assert house.undo(told["id"])["result"]["changed"] == 1
    assert house.dues([moved]) == [HOUR]


@pytest.mark.parametrize("verb", ["cancel", "reschedule", "restore"])
def test_an_operation_that_died_half_way_does_the_rest_and_nothing_twice(
    api: Api, house: House, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    sent = [api.send(delay=f"{n + 1}h") for n in range(7)]
    if verb == "restore":
        for one in sent:
            api.delete(f"messages/{one['id']}")
    to = {"to": {"shift": "1h"}} if verb == "reschedule" else {}
    plan = house.plan(verb, filter={"topic": "orders"}, **to)
    monkeypatch.setattr("queues.services.bulkrunners.BULK_RECORDS_MAX", 2)
    holds = []
    name = "cancel" if verb == "cancel" else "hold_again"
    change = getattr(BulkChanges, name)

    def dying(self: BulkChanges, units: Any, *rest: Any, **named: Any) -> Any:
        done = change(self, units, *rest, **named)
        holds.append(len(units))
        if len(holds) in (2, 3):
            raise OperationLeft
        return done

    monkeypatch.setattr(BulkChanges, name, dying)
    one = house.begin(verb, plan["plan_id"])
    for _ in range(3):
        house.run()
        clock.advance(5_000)
    told = house.done(one)
    assert told["result"] == {"planned": 7, "changed": 7, "lost": 0}
    assert sum(holds) == 7
    dues = [(n + 2 if verb == "reschedule" else n + 1) * HOUR for n in range(7)]
    assert house.dues(sent) == dues
    assert set(house.states(sent)) == {"cancelled" if verb == "cancel" else "scheduled"}
    monkeypatch.setattr(BulkChanges, name, change)
    assert house.undo(one)["result"]["changed"] == 7
    assert house.dues(sent) == [(n + 1) * HOUR for n in range(7)]


def test_an_abort_stops_between_two_holds_and_what_was_done_is_undone(
    api: Api, house: House, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [api.send(delay=f"{n + 1}h") for n in range(6)]
    plan = house.plan("cancel", filter={"topic": "orders"})
    monkeypatch.setattr("queues.services.bulkrunners.BULK_RECORDS_MAX", 2)
    change = BulkChanges.cancel

    def aborting(self: BulkChanges, units: Any, **named: Any) -> Any:
        api.post(f"operations/{plan['plan_id']}/abort")
        clock.advance(1_000)
        return change(self, units, **named)

    monkeypatch.setattr(BulkChanges, "cancel", aborting)
    one = house.begin("cancel", plan["plan_id"])
    house.run()
    told = house.done(one)
    assert (told["state"], told["result"]["changed"]) == ("aborted", 2)
    assert house.states(sent).count("cancelled") == 2
    assert house.undo(one)["result"]["changed"] == 2
    assert house.states(sent) == ["scheduled"] * 6


def test_who_is_faster_wins_and_the_others_are_left_alone(
    api: Api, house: House, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [api.send(delay="1m") for _ in range(3)]
    plan = house.plan("cancel", filter={"topic": "orders"})
    change = BulkChanges.cancel

    def late(self: BulkChanges, units: Any, **named: Any) -> Any:
        api.patch(f"messages/{sent[0]['id']}", {"delay": "2h"})
        clock.advance(MINUTE)
        assert api.hand_over_what_is_due() == 2
        return change(self, units, **named)

    monkeypatch.setattr(BulkChanges, "cancel", late)
    one = house.begin("cancel", plan["plan_id"])
    house.run()
    assert house.done(one)["result"] == {"planned": 3, "changed": 0, "lost": 3}
    assert house.states(sent) == ["scheduled", "ready", "ready"]
