"""Changes of one message: every answer is the truth, in every state and every race."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queues.store import TIMER_TOPIC, Store
from queues.store.errors import MessageIllegal, ScheduleDamaged
from tests.support.clock import ManualClock
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SETTINGS,
    delivered_ids,
    hand_over_due,
    open_store,
    outgoing,
    send_level,
    send_timed,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path, clock: ManualClock) -> Store:
    with open_store(root, clock) as store:
        yield store
        assert_sound(store)


def level(store: Store) -> str:
    return send_level(store, 1)


def timed(store: Store) -> str:
    return send_timed(store, 1_000)


def moved(store: Store) -> str:
    message_id = send_level(store, 3)
    store.move(message_id, store.clock.now_ms() + 1_000, by=None)
    return message_id


def restored(store: Store) -> str:
    message_id = send_timed(store, 1_000)
    store.cancel(message_id, by=None)
    store.restore(message_id, by=None)
    return message_id


@pytest.fixture(params=[level, timed, moved, restored], ids=lambda send: send.__name__)
def message_id(request: pytest.FixtureRequest, store: Store) -> str:
    """A message that waits and is due after a second."""
    return request.param(store)


def place_of(store: Store, message_id: str) -> tuple[str, int, int]:
    view = store.find(message_id)
    return view.held_topic, view.held_queue_id, view.held_offset


def park(store: Store, message_id: str) -> bool:
    return store.park(*place_of(store, message_id), reason="the topic was deleted")


# -- every state and every change ------------------------------------------------------------------


def be_scheduled(_store: Store, _clock: ManualClock, _message_id: str) -> None:
    pass


def be_cancelled(store: Store, _clock: ManualClock, message_id: str) -> None:
    store.cancel(message_id, by="first")


def be_parked(store: Store, _clock: ManualClock, message_id: str) -> None:
    assert park(store, message_id)


def be_ready(store: Store, clock: ManualClock, _message_id: str) -> None:
    clock.advance(1_000)
    assert hand_over_due(store) == 1


def be_parked_and_cancelled(store: Store, clock: ManualClock, message_id: str) -> None:
    be_parked(store, clock, message_id)
    store.cancel(message_id, by="first")


@pytest.mark.parametrize(
    ("become", "cancel", "restore", "release", "move"),
    [
        (be_scheduled, "cancelled", "not_cancelled", "not_parked", "moved"),
        (be_cancelled, "already_cancelled", "restored", "not_parked", "cancelled"),
        (be_parked, "cancelled", "not_cancelled", "released", "moved"),
        (be_ready, "too_late", "not_cancelled", "not_parked", "too_late"),
        (be_parked_and_cancelled, "already_cancelled", "restored", "not_parked", "cancelled"),
    ],
)
@pytest.mark.parametrize("change", ["cancel", "restore", "release", "move"])
def test_every_change_answers_the_truth_in_every_state(
    store: Store, clock: ManualClock, message_id: str,
    become: Callable[[Store, ManualClock, str], None], change: str,
    cancel: str, restore: str, release: str, move: str,
) -> None:  # fmt: skip
    become(store, clock, message_id)
    expected = {"cancel": cancel, "restore": restore, "release": release, "move": move}[change]
    if change == "move":
        decision = store.move(message_id, clock.now_ms() + 5_000, by="tester")
    else:
        decision = getattr(store, change)(message_id, by="tester")
    states = {
        "cancelled": "cancelled", "already_cancelled": "cancelled", "restored": "scheduled",
        "released": "scheduled", "moved": "scheduled", "too_late": "ready",
    }  # fmt: skip
    assert decision.outcome == expected
    assert decision.view == store.find(message_id)
    if expected in states:
        assert decision.view.state == states[expected]
    clock.advance(10_000)
    hand_over_due(store)
    gone = decision.view.state in ("cancelled", "parked")
    assert delivered_ids(store) == ([] if gone else [message_id])


def test_each_change_leaves_its_event_with_who_and_when(store: Store, clock: ManualClock) -> None:
    message_id = send_level(store, 1, by="sender")
    steps = [
        lambda: store.cancel(message_id, by="ann", reason="paid"),
        lambda: store.restore(message_id, by="bob"),
        lambda: store.move(message_id, clock.now_ms() + 700, by="cy"),
        lambda: park(store, message_id),
        lambda: store.release(message_id, by="dan"),
        lambda: hand_over_due(store),
    ]
    times = [clock.now_ms()]
    for step in steps:
        clock.advance(1_000)
        step()
        times.append(clock.now_ms())
    view = store.find(message_id)
    assert [(event.event, event.by) for event in view.timeline] == [
        ("sent", "sender"), ("cancelled", "ann"), ("restored", "bob"), ("moved", "cy"),
        ("parked", None), ("released", "dan"), ("delivered", None),
    ]  # fmt: skip
    assert [event.at_ms for event in view.timeline] == times
    assert view.timeline[1].detail == {"reason": "paid"}
    assert view.timeline[4].detail == {"reason": "the topic was deleted"}
    assert (view.state, view.version, view.reschedules) == ("ready", 2, 1)


def test_a_move_with_an_old_version_changes_nothing(store: Store, clock: ManualClock) -> None:
    message_id = send_timed(store, 1_000)
    due_ms = clock.now_ms() + 9_000
    assert store.move(message_id, due_ms, by=None, expected_version=1).view.version == 2
    decision = store.move(message_id, due_ms + 1, by=None, expected_version=1)
    assert (decision.outcome, decision.view.due_ms) == ("version_mismatch", due_ms)
    assert store.move(message_id, due_ms + 1, by=None, expected_version=2).outcome == "moved"


def test_a_cancelled_message_that_is_restored_past_its_due_time_is_due_now(
    store: Store, clock: ManualClock, message_id: str
) -> None:
    store.cancel(message_id, by=None)
    clock.advance(60_000)
    assert store.restore(message_id, by=None).view.due_ms == clock.now_ms()
    assert hand_over_due(store) == 1
    assert store.find(message_id).delivered_ms == clock.now_ms()


def test_a_parked_message_is_listed_with_its_reason_until_it_is_released(
    store: Store, clock: ManualClock, message_id: str
) -> None:
    park(store, message_id)
    assert [(view.id, view.parked_reason) for view in store.parked()] == [
        (message_id, "the topic was deleted")
    ]
    clock.advance(1_000)
    assert hand_over_due(store) == 0
    store.release(message_id, by=None)
    assert store.parked() == []
    assert hand_over_due(store) == 1


def test_a_message_is_parked_once(store: Store, message_id: str) -> None:
    place = place_of(store, message_id)
    assert store.park(*place, reason="first")
    assert not store.park(*place, reason="second")
    assert not store.park(TIMER_TOPIC, 0, 99, reason="no such unit")
    assert not store.park("no such topic", 0, 0, reason="no such queue")
    assert store.find(message_id).parked_reason == "first"


@pytest.mark.parametrize("due_ms", [0, -5, 10**13, 1 << 44])
def test_a_due_time_that_cannot_be_kept_is_refused_and_changes_nothing(
    store: Store, message_id: str, due_ms: int
) -> None:
    before, end = store.find(message_id), store.committed
    with pytest.raises(MessageIllegal):
        store.move(message_id, due_ms, by=None)
    assert (store.find(message_id), store.committed) == (before, end)


@pytest.mark.parametrize(
    "malformed", ["", "x", "f" * 32, "0" * 12 + "7" + "z" * 19, "7" * 33, "\0" * 32, "é" * 32]
)
def test_an_id_that_cannot_be_is_not_found(store: Store, malformed: str) -> None:
    assert store.find(malformed) is None
    assert store.cancel(malformed, by=None).outcome == "not_found"
    assert store.restore(malformed, by=None).outcome == "not_found"
    assert store.release(malformed, by=None).outcome == "not_found"
    assert store.move(malformed, 1, by=None).outcome == "not_found"


def test_messages_with_the_same_keys_are_told_apart(store: Store, clock: ManualClock) -> None:
    ids = [send_timed(store, 1_000, keys=("order-1", "user-1")) for _ in range(3)]
    store.cancel(ids[1], by=None)
    clock.advance(1_000)
    assert hand_over_due(store) == 2
    assert [store.find(message_id).state for message_id in ids] == ["ready", "cancelled", "ready"]
    assert store.find(ids[2]).record.keys == ("order-1", "user-1")


def test_what_was_sent_is_what_is_delivered(store: Store, clock: ManualClock) -> None:
    sent = outgoing(
        store, due_ms=clock.now_ms() + 1_000, body=bytes(range(256)) * 9, tag="Blau",
        keys=("ä", "🙂"), properties={"colour": "blau", "n": ""}, flag=2, queue_id=1,
    )  # fmt: skip
    store.send([sent])
    clock.advance(400)
    store.cancel(sent.unique_id, by="x")
    store.restore(sent.unique_id, by="y")
    store.move(sent.unique_id, clock.now_ms() + 300, by="z")
    clock.advance(1_000)
    hand_over_due(store)
    record = store.find(sent.unique_id).record
    assert (record.topic, record.queue_id, record.body) == ("orders", 1, sent.body)
    assert (record.tag, record.keys, record.flag) == ("Blau", ("ä", "🙂"), 2)
    assert record.born_ms == sent.born_ms
    own = {k: v for k, v in record.properties.items() if k in ("colour", "n")}
    assert own == {"colour": "blau", "n": ""}
    leftover = {"REAL_TOPIC", "REAL_QID", "DELAY", "TIMER_DELIVER_MS", "TIMER_OUT_MS"}
    assert not leftover & record.properties.keys()


@pytest.mark.parametrize("beyond", [0, 1 << 40], ids=["at the end", "far beyond it"])
@pytest.mark.parametrize("sync_flush", [False, True], ids=["async", "sync"])
def test_a_settled_word_beyond_the_log_is_told_as_damage(
    root: Path, clock: ManualClock, beyond: int, *, sync_flush: bool
) -> None:
    settings = replace(SETTINGS, sync_flush=sync_flush)
    with open_store(root, clock, settings=settings) as store:
        message_id = send_timed(store, 60_000)
        end = store.committed
        path = root / "postdate" / "schedule" / TIMER_TOPIC / "0" / f"{0:020d}"
        unit = store.find(message_id).held_offset
        with path.open("r+b") as file:
            file.seek(16 * unit)
            file.write((end + beyond).to_bytes(8, "little"))
        for change in (
            lambda: store.cancel(message_id, by=None),
            lambda: store.move(message_id, clock.now_ms() + 9, by=None),
        ):
            with pytest.raises(ScheduleDamaged, match="store_verify") as told:
                change()
            assert (told.value.path, told.value.unit) == (path, unit)
        assert store.committed == end
    shutil.rmtree(root / "postdate" / "schedule")  # What the hint says.
    with open_store(root, clock, settings=settings) as store:
        assert store.cancel(message_id, by=None).outcome == "cancelled"
