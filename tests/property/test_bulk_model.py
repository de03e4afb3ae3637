"""Bulk changes among everything else that happens: each touches what was planned, and once.

Messages are sent, cancelled, moved, restored and handed over; in between a bulk change is planned,
carried out (single changes come between its holds), dies, is taken up again, and is undone. What
must hold is read from the messages' own timelines.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queues import wires
from queues.selectors.listing import Filter
from queues.selectors.matching import Selection, blocks, select
from queues.selectors.scheduled import ANYTHING, Window
from queues.services import bulkrunners
from queues.services.bulkrunners import (
    CancelRunner,
    DeliverNowRunner,
    RescheduleRunner,
    RestoreRunner,
)
from queues.services.operations import OperationLeft
from queues.store import MessageView, Store
from queues.store.bulkchanges import BulkChanges
from queues.store.names import JOURNAL_TOPIC, TIMER_TOPIC
from queues.testing import OwnWiring
from tests.support.clock import ManualClock
from tests.support.storeworld import SETTINGS, SIZES, hand_over_due, open_store, outgoing

SMALL = replace(SETTINGS, sizes=replace(SIZES, segment_bytes=1 << 20))
PLAN_ID = "0" * 31 + "1"
MINE, UNDONE = f"operation:{PLAN_ID}", f"operation:{PLAN_ID}:undo"
RUNNERS = {
    "cancel": CancelRunner(),
    "reschedule": RescheduleRunner(),
    "deliver-now": DeliverNowRunner(),
    "restore": RestoreRunner(),
}
TARGETS = [
    {"at_ms": None, "delay_ms": None, "shift_ms": 30_000},
    {"at_ms": None, "delay_ms": None, "shift_ms": -20_000},
    {"at_ms": None, "delay_ms": 15_000, "shift_ms": None},
]


class Progress:
    """Lets a run go on, or die, after so many looks."""

    def __init__(self, looks: int | None) -> None:
        self._looks = looks

    def report(self, done: int, total: int | None = None) -> None:
        assert total is None or 0 <= done <= total

    @property
    def aborted(self) -> bool:
        if self._looks is not None:
            self._looks -= 1
            if self._looks < 0:
                raise OperationLeft
        return False


class World:
    """A store with some messages, and single changes of them."""

    def __init__(self, store: Store, clock: ManualClock, data: st.DataObject) -> None:
        self.store, self.clock, self.data = store, clock, data
        self.ids: list[str] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            topic = self.data.draw(st.sampled_from(["orders", "mail"]))
            when: dict[str, Any] = {"level": 3}
            if self.data.draw(st.booleans()):
                delay_ms = self.data.draw(st.integers(1, 60)) * 1000
                when = {"due_ms": self.clock.now_ms() + delay_ms}
            message = outgoing(self.store, topic=topic, **when)
            self.store.send([message])
            self.ids.append(message.unique_id)

    def disturb(self) -> None:
        """One thing that somebody does."""
        if not self.ids:
            return
        what = self.data.draw(st.sampled_from(["cancel", "move", "restore", "time", "send", "no"]))
        one = self.data.draw(st.sampled_from(self.ids))
        if what == "cancel":
            self.store.cancel(one, by="someone")
        elif what == "move":
            due_ms = self.clock.now_ms() + self.data.draw(st.integers(1, 60)) * 1000
            self.store.move(one, due_ms, by="someone")
        elif what == "restore":
            self.store.restore(one, by="someone")
        elif what == "time":
            self.clock.advance(self.data.draw(st.integers(1, 20_000)))
            hand_over_due(self.store)
        elif what == "send":
            self.send(1)

    def look(self) -> dict[str, MessageView]:
        found = {one: self.store.find(one) for one in self.ids}
        return {one: view for one, view in found.items() if view is not None}


def authors(view: MessageView) -> list[str | None]:
    return [event.by for event in view.timeline if event.event != "delivered"]


def planned_ids(selection: Selection, store: Store) -> set[str]:
    return {
        unit.record.unique_id
        for queue, found in blocks(selection)
        for unit in store.bulk.load(queue, found.offsets, found.words)
    }


@pytest.fixture
def world_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("verb", list(RUNNERS))
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_bulk_change_touches_what_was_planned_and_each_message_once(
    verb: str, world_folder: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    clock = ManualClock()
    folder = tempfile.mkdtemp(dir=world_folder)
    store = open_store(Path(folder) / "store", clock, settings=SMALL)
    before = wires.wiring()
    wiring = OwnWiring(store, clock)
    wires.plug_in(wiring)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(bulkrunners, "BULK_RECORDS_MAX", 2)
            play(verb, World(store, clock, data), patched, data)
    finally:
        wires.plug_in(before)
        wiring.close()
        shutil.rmtree(folder)


def play(verb: str, world: World, patched: pytest.MonkeyPatch, data: st.DataObject) -> None:
    store = world.store
    world.send(data.draw(st.integers(1, 8)))
    for _ in range(data.draw(st.integers(0, 6))):
        world.disturb()
    state = "cancelled" if verb == "restore" else "scheduled"
    window = Window(topic=data.draw(st.sampled_from([None, "orders"])))
    selection = select(Filter(window, state=state), ANYTHING)
    planned, at_plan = planned_ids(selection, store), world.look()
    assert planned == {
        one
        for one, view in at_plan.items()
        if view.state == state and window.topic in (None, view.topic)
    }
    for _ in range(data.draw(st.integers(0, 4))):
        world.disturb()
    request = {
        "plan_id": PLAN_ID, "selection": selection.as_json(), "count": len(planned),
        "to": {"at_ms": None, "delay_ms": 0, "shift_ms": None}
        if verb == "deliver-now" else data.draw(st.sampled_from(TARGETS)),
        "begun_ms": world.clock.now_ms(),
        "journal_from": store.queue_bounds(JOURNAL_TOPIC, 0).max_offset,
        "timer_from": store.queue_bounds(TIMER_TOPIC, 0).max_offset,
    }  # fmt: skip
    result = run(verb, request, world, patched, data)
    after = world.look()
    for one, view in after.items():
        mine = authors(view).count(MINE)
        assert mine <= (1 if one in planned else 0), (one, view.timeline)
        others = len(authors(view)) - mine
        if one in planned and others == len(authors(at_plan[one])) and view.state != "ready":
            assert mine == 1, (one, view.timeline)
        assert [event.event for event in view.timeline].count("delivered") <= 1
    assert result["changed"] == sum(authors(view).count(MINE) for view in after.values())
    if verb != "deliver-now":
        undo(verb, request, world, at_plan, data)


def run(
    verb: str, request: Any, world: World, patched: pytest.MonkeyPatch, data: st.DataObject
) -> dict[str, Any]:
    """Run it, with single changes before its holds and a death or two."""
    name = "cancel" if verb == "cancel" else "hold_again"
    change = getattr(BulkChanges, name)

    def disturbed(self: BulkChanges, units: Any, *rest: Any, **named: Any) -> Any:
        if data.draw(st.booleans()):
            world.disturb()
        return change(self, units, *rest, **named)

    with patched.context() as more:
        more.setattr(BulkChanges, name, disturbed)
        for looks in [*data.draw(st.lists(st.integers(0, 5), max_size=2)), None]:
            try:
                return RUNNERS[verb].run(request, Progress(looks))
            except OperationLeft:
                world.disturb()
    raise AssertionError("the last run has no end of looks")


def undo(
    verb: str, request: Any, world: World, at_plan: dict[str, MessageView], data: st.DataObject
) -> None:
    for _ in range(data.draw(st.integers(0, 3))):
        world.disturb()
    before = world.look()
    runner: Any = RUNNERS[verb]
    for looks in data.draw(st.lists(st.integers(0, 5), max_size=2)):
        with contextlib.suppress(OperationLeft):
            runner.undo(request, {}, Progress(looks))
    result = runner.undo(request, {}, Progress(None))
    after, changed = world.look(), 0
    for one, view in after.items():
        last = before[one].timeline[-1]
        if last.by == MINE and last.event != "delivered":
            was = at_plan[one]
            changed += 1
            assert view.state == was.state, (one, view.timeline)
            assert view.kind == was.kind
            if was.state == "scheduled":
                assert view.due_ms == max(was.due_ms, world.clock.now_ms())
            assert authors(view)[-1] == UNDONE
        else:
            assert (view.state, view.due_ms, view.version) == (
                before[one].state,
                before[one].due_ms,
                before[one].version,
            ), (one, view.timeline)
    assert result["changed"] == changed
