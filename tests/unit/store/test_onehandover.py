"""The short way of a hand-over: the same bytes in every file, and nothing unusual goes it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, HandOver, Outgoing, Sizes, Store
from queues.store import handover as general
from queues.store.onehandover import SingleHandOver
from queues.store.settings import StoreSettings
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.invariants import assert_sound

SETTINGS = StoreSettings(
    sizes=Sizes(segment_bytes=16_384, consume_queue_units=100, index_slots=64, index_entries=400),
    ballast_bytes=4096,
)
COUNT = 90


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[HandOver | None]:
    """What the short way answered each time."""
    answers: list[HandOver | None] = []
    whole = SingleHandOver.hand_over

    def noted(self: SingleHandOver, *told: object) -> tuple[HandOver, int] | None:
        done = whole(self, *told)  # type: ignore[arg-type]
        answers.append(None if done is None else done[0])
        return done

    monkeypatch.setattr(SingleHandOver, "hand_over", noted)
    return answers


def opened(root: Path, clock: ManualClock) -> Store:
    return Store.open(root, SETTINGS, clock=clock, disk=UnsyncedDisk())


def message(number: int, due_ms: int | None, level: int = 0) -> Outgoing:
    return Outgoing(
        topic="orders" if number % 3 else "a-longer-topic-name", queue_id=number % 2,
        unique_id=f"018bcfe568007abc8{number:015x}", body=b"x" * (number % 40), born_ms=5,
        tag="TagA" if number % 2 else None,
        keys=((f"schlüssel{number}" if number == 8 else f"key{number}"), "b") if number % 5 else (),
        properties={"größe": "naïve"} if number == 7 else {}, due_ms=due_ms, level=level,
    )  # fmt: skip


def filled(store: Store, clock: ManualClock) -> None:
    """Messages of all kinds, all due but the last timed one."""
    due_ms = clock.now_ms() + 500
    timed = [message(number, due_ms) for number in range(COUNT)]
    store.send([*timed, message(COUNT, due_ms + 9_000)])
    store.send([message(COUNT + number, None, level=1) for number in range(1, COUNT)])
    clock.advance(1_000)


def tree(root: Path) -> dict[str, bytes]:
    """The files that a hand-over writes."""
    kinds = ("commitlog", "consumequeue", "index", "postdate/schedule")
    paths = [path for kind in kinds for path in (root / kind).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_every_file_gets_the_same_bytes_as_from_the_general_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[HandOver | None]
) -> None:
    trees, counters = [], []
    for few in (general.ONE_BY_ONE_MAX, 0):
        monkeypatch.setattr(general, "ONE_BY_ONE_MAX", few)
        root, clock = tmp_path / str(few), ManualClock()
        with opened(root, clock) as store:
            filled(store, clock)
            for topic in (TIMER_TOPIC, SCHEDULE_TOPIC):
                for offset in range(COUNT):
                    clock.advance(offset % 3 * 40)
                    store.hand_over(topic, 0, np.array([offset]))
            assert_sound(store)
            trees.append(tree(root))
            counters.append(store.counters())
    assert trees[0] == trees[1]
    assert counters[0] == counters[1]
    assert counters[0]["late_over_100ms"] > 0
    # Segments, blocks and files that are to be made, and the key that is not ASCII: those only.
    assert taken.count(HandOver(1)) > COUNT
    assert taken.count(None) > 4


def cancelled(store: Store) -> None:
    store.cancel(f"018bcfe568007abc8{3:015x}", by="tester")


def refused(store: Store) -> None:
    store.topic_gate = lambda topic, _: f"{topic} was deleted"


def damaged(store: Store) -> None:
    place = int(store.read_units(TIMER_TOPIC, 0, 3, 1)["log_offset"][0])
    path = next(
        path for path in sorted((store.root / "commitlog").iterdir()) if path.name.isdigit()
    )
    with path.open("r+b") as file:
        file.seek(place + 60)
        file.write(b"\xff\xff")


@pytest.mark.parametrize("happens", [cancelled, refused, damaged])
def test_what_is_unusual_is_told_as_the_general_way_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Store], None]
) -> None:
    told = []
    for few in (general.ONE_BY_ONE_MAX, 0):
        monkeypatch.setattr(general, "ONE_BY_ONE_MAX", few)
        clock = ManualClock()
        with opened(tmp_path / str(few), clock) as store:
            filled(store, clock)
            happens(store)
            told.append([store.hand_over(TIMER_TOPIC, 0, np.array([3, COUNT])), store.counters()])
    assert told[0] == told[1]


def test_a_message_that_is_named_twice_goes_once(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened(tmp_path / "store", clock) as store:
        filled(store, clock)
        store.hand_over(TIMER_TOPIC, 0, np.array([1]))
        assert store.hand_over(TIMER_TOPIC, 0, np.array([2, 2])).handed == 1
        assert store.counters()["handed_over"] == 2
        assert_sound(store)
