"""Deleting what many messages wait for: an operation cancels them, and nothing that came later."""

from pathlib import Path
from typing import Any

import pytest

from queues.services.purging import purge_runners
from tests.http.conftest import Api
from tests.support.bulkhouse import House
from tests.support.clock import ManualClock

MINUTE = 60_000


@pytest.fixture
def house(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr("queues.services.purging.PURGED_AT_ONCE_MAX", 3)
    house = House(api, tmp_path / "leases")
    api.wiring.runners |= {runner.kind: runner for runner in purge_runners()}
    return house


def test_a_topic_with_few_waiting_is_purged_before_the_answer(api: Api, house: House) -> None:
    sent = [api.send(delay="1h"), api.send(delay_level=18)]
    assert api.delete("topics/orders?purge=true").status == 204
    assert house.states(sent) == ["cancelled"] * 2


def test_a_topic_with_many_waiting_is_purged_by_an_operation(api: Api, house: House) -> None:
    sent = [api.send(delay="1h") for _ in range(4)] + [api.send(delay_level=18)]
    other = api.send("mail", delay="1h")
    answer = api.delete("topics/orders?purge=true")
    assert (answer.status, answer.json["kind"]) == (202, "topics.purge")
    assert answer.headers["Location"] == f"/api/v1/operations/{answer.json['id']}"
    assert api.get("topics/orders").status == 404
    # Made anew before the operation ran: what is sent now is not the old topic's.
    anew = api.send(delay="1h")
    house.run()
    told = house.done(answer.json["id"])
    assert (told["state"], told["result"]["changed"]) == ("succeeded", 5)
    assert house.states(sent) == ["cancelled"] * 5
    assert house.states([other, anew]) == ["scheduled"] * 2
    refused = api.post(f"operations/{told['id']}/undo")
    assert (refused.status, refused.code) == (409, "not_undoable")


def failing(api: Api, count: int, **retry: Any) -> None:
    for _ in range(count):
        api.send()
    for one in api.receive(max_messages=count):
        answer = api.post("groups/billing/retry", {"receipts": [one["receipt"]], **retry})
        assert answer.status == 200, answer.json


def test_a_group_with_many_retries_and_dead_letters_is_purged_by_an_operation(
    api: Api, house: House, clock: ManualClock
) -> None:
    api.group()
    failing(api, 3)
    failing(api, 3, delay_level=-1)
    answer = api.delete("groups/billing?purge=true")
    assert (answer.status, answer.json["kind"]) == (202, "groups.purge")
    assert api.get("groups/billing").status == 404
    house.run()
    told = house.done(answer.json["id"])
    assert (told["state"], told["result"]["changed"], told["result"]["discarded"]) == (
        "succeeded",
        3,
        3,
    )
    api.group(start_from="latest")
    clock.advance(60 * MINUTE)
    api.hand_over_what_is_due()
    assert api.receive() == []
