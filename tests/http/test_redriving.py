"""Redrive: dead letters are tried again, each once, whatever happens in between."""

import pytest

from queues.services.operations import carry_out
from queues.services.redriving import RedriveRunner, _Run

NOW_MS = 1_790_000_000_000


def outcomes(api, body):
    answer = api.post("groups/billing/dead-letters/redrive", body)
    assert answer.status == 200, answer.json
    return [result["outcome"] for result in answer.json["results"]]


def settle(api, verb, *messages, **fields):
    body = {"receipts": [message["receipt"] for message in messages], **fields}
    return [one["outcome"] for one in api.post(f"groups/billing/{verb}", body).json["results"]]


def letter_of(api, message_id):
    return api.get(f"groups/billing/dead-letters/{message_id}").json


@pytest.fixture
def dead(api, clock):
    """The ids of three dead letters."""
    api.group(max_retries=1)
    ids = [api.send(tag="a", keys=[f"k{number}"])["id"] for number in range(3)]
    settle(api, "dead-letter", *api.receive(), reason="no stock")
    clock.advance(60_000)
    return sorted(ids)


def test_a_redriven_message_comes_at_once_with_attempts_from_one(api, dead):
    assert outcomes(api, {"ids": dead[:1]}) == ["redriven"]
    (message,) = api.receive()
    assert (message["id"], message["attempt"], message["topic"]) == (dead[0], 1, "orders")
    assert (message["tag"], message["properties"], message["body"]) == ("a", {}, "hello")
    assert (message["due_at_ms"], message["lateness_ms"]) == (NOW_MS + 60_000, 0)


def test_the_dead_letter_stays_marked(api, dead):
    outcomes(api, {"ids": dead[:1]})
    letter = letter_of(api, dead[0])
    assert (letter["redriven_at_ms"], letter["redriven_by"]) == (NOW_MS + 60_000, "key:test")
    assert letter["died_at_ms"] == NOW_MS
    assert api.get("groups/billing/lag").json["dead"] == 2
    (state,) = api.get(f"messages/{dead[0]}").json["groups"]
    assert (state["state"], state["attempts"]) == ("ready", 0)


def test_an_id_is_driven_once_unless_it_is_asked_for_again(api, dead):
    assert outcomes(api, {"ids": [dead[0], "0" * 32, "rubbish"]}) == [
        "redriven", "not_found", "not_found",
    ]  # fmt: skip
    assert outcomes(api, {"ids": dead[:1]}) == ["in_progress"]
    assert outcomes(api, {"ids": dead[:1], "again": True}) == ["in_progress"]
    (message,) = api.receive()
    assert outcomes(api, {"ids": dead[:1]}) == ["in_progress"]
    assert settle(api, "ack", message) == ["acked"]
    assert outcomes(api, {"ids": dead[:1]}) == ["already_redriven"]
    assert outcomes(api, {"ids": dead[:1], "again": True}) == ["redriven"]
    assert len(api.receive()) == 1


@pytest.mark.parametrize("which", [{"all": True}, {"filter": {"topic": "orders"}}])
def test_all_and_filters_drive_what_is_marked_when_asked_for_again(api, dead, which):
    outcomes(api, {"ids": dead[:1]})
    settle(api, "ack", *api.receive())
    asked = {**which, "again": True}
    dry = api.post("groups/billing/dead-letters/redrive", {**asked, "dry_run": True}).json
    assert dry["count"] == 3
    assert outcomes(api, asked) == ["redriven"] * 3
    assert sorted(message["id"] for message in api.receive()) == dead


def test_all_and_filters_skip_what_is_marked(api, dead):
    outcomes(api, {"ids": dead[:1]})
    assert outcomes(api, {"filter": {"key": "k1"}}) in (["redriven"], [])
    outcomes(api, {"all": True})
    assert outcomes(api, {"all": True}) == []
    assert sorted(message["id"] for message in api.receive()) == dead


def test_a_dry_run_changes_nothing(api, dead):
    body = {"filter": {"reason": "no stock"}, "dry_run": True}
    answer = api.post("groups/billing/dead-letters/redrive", body).json
    assert answer["count"] == 3
    assert sorted(letter["id"] for letter in answer["sample"]) == dead
    assert api.receive() == []
    outcomes(api, {"ids": dead[:1]})
    assert api.post("groups/billing/dead-letters/redrive", body).json["count"] == 2


def test_a_redriven_message_is_retried_as_any_other_and_keeps_its_lineage(api, clock, dead):
    outcomes(api, {"ids": dead[:1]})
    settle(api, "retry", *api.receive(), reason="still none")
    assert outcomes(api, {"ids": dead[:1]}) == ["in_progress"]
    clock.advance(10_000)
    api.hand_over_what_is_due()
    (message,) = api.receive()
    assert message["attempt"] == 2
    assert settle(api, "retry", message, reason="never") == ["dead"]
    letter = letter_of(api, dead[0])
    assert (letter["failure_count"], letter["reason"]) == (2, "never")
    assert [failure["reason"] for failure in letter["failures"]] == ["still none", "never"]
    (death,) = letter["lineage"]
    assert (death["died_at_ms"], death["attempts"], death["reason"]) == (NOW_MS, 1, "no stock")
    assert (death["redriven_at_ms"], death["redriven_by"]) == (NOW_MS + 60_000, "key:test")
    assert letter["redriven_at"] is None
    listed = api.get("groups/billing/dead-letters").json
    assert sorted(one["id"] for one in listed["items"]) == dead, "it replaced the former one"
    assert outcomes(api, {"ids": dead[:1]}) == ["redriven"]
    events = [event["event"] for event in api.get(f"messages/{dead[0]}").json["timeline"]]
    assert events == [
        "sent", "died", "redriven", "retried", "retry_delivered", "died", "redriven",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"messages_per_second": 0}, "/messages_per_second"),
        ({"messages_per_second": 1e9}, "/messages_per_second"),
        ({"stop_after_failures": 0}, "/stop_after_failures"),
        ({"ids": ["0" * 32] * 1001, "all": None}, "/ids"),
    ],
)
def test_what_is_out_of_bounds_is_refused(api, fields, pointer):
    api.group()
    answer = api.post("groups/billing/dead-letters/redrive", {"all": True, **fields})
    assert (answer.status, answer.code) == (422, "out_of_bounds")
    assert answer.pointers == [pointer]


@pytest.fixture
def running(api):
    """Operations are carried out when the test says so."""
    api.wiring.runners["deadletters.redrive"] = RedriveRunner()

    def run(body, *, stop_at=None):
        answer = api.post("groups/billing/dead-letters/redrive", body)
        assert answer.status == 202, answer.json
        looks = iter(range(10_000))
        is_stopping = (lambda: next(looks) >= stop_at) if stop_at else lambda: False
        carry_out(answer.json["id"], is_stopping=is_stopping)
        return answer.json["id"]

    return run


def result_of(api, operation_id):
    operation = api.get(f"operations/{operation_id}").json
    assert operation["state"] == "succeeded", operation
    return operation["result"]


def test_many_are_driven_by_an_operation_at_a_rate(api, dead, running):
    result = result_of(api, running({"all": True, "messages_per_second": 1000}))
    assert (result["redriven"], result["stopped"], result["failed_again"]) == (3, False, 0)
    assert sorted(one["id"] for one in result["results"]) == dead
    assert sorted(message["id"] for message in api.receive()) == dead


def test_more_than_one_request_can_drive_go_to_an_operation(api, running, monkeypatch, dead):
    monkeypatch.setattr("queues.services.deadletters.REDRIVEN_AT_ONCE_MAX", 2)
    assert result_of(api, running({"all": True}))["redriven"] == 3
    assert sorted(message["id"] for message in api.receive()) == dead


@pytest.mark.parametrize("again", [False, True])
def test_an_operation_that_is_stopped_half_way_drives_the_rest_and_none_twice(
    api, dead, running, again
):
    body = {"all": True, "messages_per_second": 1000, "again": again}
    operation_id = running(body, stop_at=2)
    first = api.receive()
    assert 0 < len(first) < 3
    settle(api, "ack", *first)
    assert carry_out(operation_id, is_stopping=lambda: False)
    assert result_of(api, operation_id)["redriven"] == 3
    second = api.receive()
    assert sorted(message["id"] for message in first + second) == dead


def test_an_operation_that_is_taken_up_does_not_wait_for_what_was_driven_before(
    api, dead, running, monkeypatch
):
    operation_id = running({"all": True, "messages_per_second": 1000}, stop_at=2)
    asked_s: list[float] = []
    keep_pace = _Run._keep_pace

    def note(self, began_s):
        asked_s.append(self._driven / self._rate)
        keep_pace(self, began_s)

    monkeypatch.setattr(_Run, "_keep_pace", note)
    assert carry_out(operation_id, is_stopping=lambda: False)
    assert result_of(api, operation_id)["redriven"] == len(dead)
    assert asked_s[0] == 0, "the first was driven before, and kept its pace then"


@pytest.mark.usefixtures("dead")
def test_an_operation_stops_when_too_many_fail_again(api, running, monkeypatch):
    drive = "queues.services.redriving.drive_one"
    from queues.services.deadletters import drive_one  # noqa: PLC0415 - the one that is replaced

    def drive_and_fail(group, message_id, **options):
        outcome = drive_one(group, message_id, **options)
        settle(api, "retry", *api.receive())
        return outcome

    monkeypatch.setattr(drive, drive_and_fail)
    result = result_of(api, running({"all": True, "stop_after_failures": 2}))
    assert (result["redriven"], result["failed_again"], result["stopped"]) == (2, 2, True)
