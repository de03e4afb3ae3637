"""Operations: begun by a request, claimed once, watched, stopped, taken back, taken up again."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queues.codes import Code
from queues.models import Operation
from queues.problems import Problem
from queues.services import operations as services
from queues.services.operations import OperationLeft, begin
from queues.store.errors import StoreFull
from queues.testing import OwnWiring
from queues.wires import Progress
from scheduler.housekeeping.operations import Operations, operation_duties
from tests.http.conftest import Api
from tests.support.clock import ManualClock

DAY_MS = 86_400_000


class Counting:
    """Counts to the number that it is asked for; what happens on the way a test says."""

    kind = "test.count"
    at_once = 1

    def __init__(self) -> None:
        self.on_step: Callable[[int], object] = lambda _: None
        self.undone: list[Any] = []

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        done = 0
        while done < request["to"]:
            if progress.aborted:
                break
            self.on_step(done)
            done += 1
            progress.report(done, request["to"])
        return {"counted": done}

    def undo(
        self, request: dict[str, Any], result: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        progress.report(0)
        self.undone.append((request, result))
        return {"forgotten": result.get("counted", 0)}


class Printing:
    """Does what cannot be taken back."""

    kind = "test.print"
    at_once = 2

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        progress.report(1, 1)
        return dict(request)


@pytest.fixture
def counting(wiring: OwnWiring) -> Counting:
    runner = Counting()
    wiring.runners = {runner.kind: runner, Printing.kind: Printing()}
    return runner


class House:
    """Housekeeping that runs operations when a test says so, in the test's own thread."""

    def __init__(self, wiring: OwnWiring, folder: Path) -> None:
        self.stopped = threading.Event()
        self.waiting: list[Callable[[], None]] = []
        self.clock = wiring.clock
        self.operations = Operations(wiring.store, folder, self.stopped, start=self.waiting.append)

    def look(self) -> int:
        """Claim what there is; how many are to be run."""
        self.operations.look(self.clock.now_ms())
        return len(self.waiting)

    def run(self) -> None:
        while self.look():
            self.waiting.pop(0)()


@pytest.fixture
def house(wiring: OwnWiring, tmp_path: Path) -> House:
    return House(wiring, tmp_path / "leases")


def start(clock: ManualClock, kind: str = "test.count", **request: Any) -> str:
    return begin(kind, {"to": 3, **request}, by="key:test", now_ms=clock.now_ms(), total=3).id


def test_an_operation_is_seen_queued_running_and_succeeded(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    one = start(clock)
    queued = api.get(f"operations/{one}")
    assert (queued.status, queued.json["state"], queued.json["done"]) == (200, "queued", False)
    assert queued.json["progress"] == {"done": 0, "total": 3}
    seen = []

    def look(_: int) -> None:
        clock.advance(1000)
        seen.append(api.get(f"operations/{one}").json)

    counting.on_step = look
    house.run()
    assert [one["state"] for one in seen] == ["running"] * 3
    assert [one["progress"]["done"] for one in seen] == [0, 1, 2]
    told = api.get(f"operations/{one}").json
    assert (told["state"], told["done"], told["result"]) == ("succeeded", True, {"counted": 3})
    assert told["progress"] == {"done": 3, "total": 3}
    assert told["finished_at_ms"] == clock.now_ms()


def test_operations_are_listed_newest_first_and_by_pages(
    api: Api, clock: ManualClock, counting: Counting
) -> None:
    del counting
    ids = []
    for _ in range(5):
        ids.append(start(clock))
        clock.advance(1)
    first = api.get("operations?page_size=3").json
    assert [one["id"] for one in first["items"]] == ids[:1:-1]
    second = api.get(f"operations?page_size=3&page_token={first['next_page_token']}").json
    assert [one["id"] for one in second["items"]] == ids[1::-1]
    assert second["next_page_token"] == ""
    assert api.get("operations?state=running").json["items"] == []
    assert len(api.get("operations?state=queued&kind=test.count").json["items"]) == 5


def test_a_queued_operation_that_is_aborted_never_runs(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    counting.on_step = lambda _: pytest.fail("it ran")
    one = start(clock)
    assert api.post(f"operations/{one}/abort").json["state"] == "aborted"
    house.run()
    again = api.post(f"operations/{one}/abort")
    assert (again.status, again.json["state"]) == (200, "aborted")


def test_a_running_operation_stops_at_its_next_step_and_says_how_far_it_came(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    one = start(clock)

    def abort(step: int) -> None:
        clock.advance(1000)
        if step == 1:
            assert api.post(f"operations/{one}/abort").json["state"] == "running"

    counting.on_step = abort
    house.run()
    told = api.get(f"operations/{one}").json
    assert (told["state"], told["result"]) == ("aborted", {"counted": 2})


def test_a_finished_operation_is_not_aborted(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    del counting
    one = start(clock)
    house.run()
    refused = api.post(f"operations/{one}/abort")
    assert (refused.status, refused.code) == (409, "operation_finished")
    assert api.get(f"operations/{one}").json["state"] == "succeeded"


def test_an_undo_is_an_operation_of_its_own_and_the_same_when_asked_again(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    one = start(clock)
    early = api.post(f"operations/{one}/undo")
    assert (early.status, early.code) == (409, "operation_unfinished")
    house.run()
    undo = api.post(f"operations/{one}/undo")
    assert undo.status == 202
    assert undo.headers["Location"] == f"/api/v1/operations/{undo.json['id']}"
    assert (undo.json["kind"], undo.json["undo_of"]) == ("test.count.undo", one)
    assert api.post(f"operations/{one}/undo").json["id"] == undo.json["id"]
    house.run()
    told = api.get(f"operations/{undo.json['id']}").json
    assert (told["state"], told["result"]) == ("succeeded", {"forgotten": 3})
    assert counting.undone == [({"to": 3}, {"counted": 3})]
    assert api.get(f"operations/{one}").json["undone_by"] == undo.json["id"]
    twice = api.post(f"operations/{undo.json['id']}/undo")
    assert (twice.status, twice.code) == (409, "not_undoable")


def test_what_cannot_be_taken_back_says_so(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    del counting
    one = start(clock, "test.print")
    house.run()
    refused = api.post(f"operations/{one}/undo")
    assert (refused.status, refused.code) == (409, "not_undoable")
    assert not api.get(f"operations/{one}").json["undoable"]


def test_a_refusal_of_the_runner_is_the_operations_error(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    def refuse(_: int) -> None:
        raise Problem(Code.TOPIC_NOT_FOUND, "It went.")

    counting.on_step = refuse
    one = start(clock)
    house.run()
    told = api.get(f"operations/{one}").json
    assert (told["state"], told["error"]["code"]) == ("failed", "topic_not_found")


def test_a_fault_of_the_runner_fails_the_operation_and_no_other(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    def fail(_: int) -> None:
        raise ValueError("told to fail")

    counting.on_step = fail
    one, other = start(clock), start(clock, "test.print")
    house.run()
    assert api.get(f"operations/{one}").json["error"]["code"] == "internal_error"
    assert api.get(f"operations/{other}").json["state"] == "succeeded"


def test_what_its_process_left_is_taken_up_again_and_by_one_only(
    api: Api, wiring: OwnWiring, clock: ManualClock, counting: Counting, house: House,
    tmp_path: Path,
) -> None:  # fmt: skip
    one = start(clock)
    steps: list[int] = []

    def die(step: int) -> None:
        steps.append(step)
        if len(steps) == 2:
            raise OperationLeft

    counting.on_step = die
    assert house.look() == 1
    # While this process has it, no other takes it.
    other = House(wiring, tmp_path / "leases")
    assert other.look() == 0
    house.waiting.pop()()
    assert api.get(f"operations/{one}").json["state"] == "running"
    clock.advance(5_000)
    other.run()
    assert steps == [0, 1, 0, 1, 2]
    assert api.get(f"operations/{one}").json["state"] == "succeeded"
    house.run()
    assert len(steps) == 5


def test_a_full_store_only_postpones(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    tries = iter(range(30))

    def full(_: int) -> None:
        if next(tries) < 25:
            raise StoreFull

    counting.on_step = full
    one = start(clock)
    for _ in range(26):
        house.run()
        clock.advance(5_000)
    assert api.get(f"operations/{one}").json["state"] == "succeeded"


def test_an_operation_that_kills_whoever_runs_it_is_given_up(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    def die(_: int) -> None:
        raise OperationLeft

    counting.on_step = die
    one = start(clock)
    for _ in range(services.CLAIMS_MAX + 1):
        house.run()
        clock.advance(5_000)
    told = api.get(f"operations/{one}").json
    assert (told["state"], told["error"]["code"]) == ("failed", "given_up")


def test_no_more_of_a_kind_run_at_once_than_its_runner_says(
    clock: ManualClock, counting: Counting, house: House
) -> None:
    del counting
    for _ in range(3):
        start(clock)
        start(clock, "test.print")
        clock.advance(1)
    assert house.look() == 3


def test_a_stop_leaves_the_operation_for_the_next_process(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    counting.on_step = lambda _: house.stopped.set()
    one = start(clock)
    house.look()
    house.waiting.pop()()
    assert api.get(f"operations/{one}").json["state"] == "running"


def test_a_limited_key_sees_its_own_operations_and_those_of_its_topics(
    api: Api, clock: ManualClock, counting: Counting
) -> None:
    del counting
    hidden, shown = start(clock, topic="secret"), start(clock, topic="orders")
    limited = api.as_(topics=("orders",), groups=())
    assert limited.get(f"operations/{shown}").status == 200
    refused = limited.get(f"operations/{hidden}")
    assert (refused.status, refused.code) == (404, "operation_not_found")
    assert limited.post(f"operations/{hidden}/abort").status == 404
    assert [one["id"] for one in limited.get("operations").json["items"]] == [shown]
    assert api.get("operations/no-such").code == "operation_not_found"
    assert api.as_(scopes=("send",)).post(f"operations/{shown}/abort").status == 403


def test_begin_abort_and_undo_are_in_the_audit_log(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    del counting
    one, other = start(clock), start(clock)
    api.post(f"operations/{other}/abort")
    house.run()
    api.post(f"operations/{one}/undo")
    actions = [entry["action"] for entry in api.get("audit-log").json["items"]]
    assert actions.count("operation.begin") == 3
    assert actions.count("operation.abort") == 1


def test_what_finished_long_ago_is_forgotten_and_nothing_else(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    old = start(clock)
    house.run()
    clock.advance(31 * DAY_MS)
    new, queued = start(clock), start(clock, kind="test.unknown")
    house.run()
    clock.advance(31 * DAY_MS // 2)
    assert services.forget_operations(clock.now_ms(), 30 * DAY_MS) == 1
    assert {one["id"] for one in api.get("operations").json["items"]} == {queued, new}
    assert api.get(f"operations/{old}").code == "operation_not_found"
    assert counting.undone == []


def test_what_is_being_undone_is_not_forgotten(
    api: Api, clock: ManualClock, counting: Counting, house: House
) -> None:
    one = start(clock)
    house.run()
    clock.advance(29 * DAY_MS)
    undoing = api.post(f"operations/{one}/undo", {}).json["id"]
    clock.advance(2 * DAY_MS)
    assert services.forget_operations(clock.now_ms(), 30 * DAY_MS) == 0
    house.run()
    assert len(counting.undone) == 1
    assert services.forget_operations(clock.now_ms(), 30 * DAY_MS) == 1
    assert api.get(f"operations/{undoing}").json["state"] == "succeeded"


def test_forgetting_is_bounded_and_a_duty_of_housekeeping(
    clock: ManualClock, counting: Counting, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "OPERATIONS_FORGOTTEN_MAX", 2)
    for _ in range(3):
        start(clock)
    house.run()
    clock.advance(31 * DAY_MS)
    duties = {duty.name: duty for duty in operation_duties(house.operations, kept_ms=30 * DAY_MS)}
    duties["forget rows"].do(clock.now_ms())
    assert Operation.objects.count() == 1
    assert counting.undone == []
