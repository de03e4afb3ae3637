"""The outlook says what a plain look at every unit says, also after more was settled and added."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queues.store import outlook as outlook_module
from queues.store.messages import QueueBounds
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.outlook import NEVER_MS, Outlook, Wanted
from queues.store.queuetable import Queue
from queues.store.schedule import due_word

BLOCK = 8
QUEUES = [
    Queue(0, TIMER_TOPIC, 0, 0, scheduled=True),
    Queue(1, SCHEDULE_TOPIC, 2, 1, scheduled=True),
]

units = st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 3)), max_size=40)
windows = st.tuples(st.integers(0, 60), st.integers(1, 60))
topics = st.one_of(st.none(), st.sets(st.integers(0, 3)))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlook_module, "SCHEDULE_UNITS", BLOCK)


class World:
    """Two queues as plain lists, and an outlook over arrays of them."""

    def __init__(self) -> None:
        self.units: list[list[list[int]]] = [[], []]
        self.mins = [0, 0]
        self.arrays = [np.zeros((200, 2), np.int64) for _ in QUEUES]
        self.outlook = Outlook(self, lambda queue: Table(self.arrays[queue.index]), self.bounds)  # type: ignore[arg-type]
        self.queues = QUEUES

    def refresh(self) -> None:
        """Nothing to learn."""

    def bounds(self, queue: Queue) -> QueueBounds:
        return QueueBounds(self.mins[queue.index], len(self.units[queue.index]))

    def add(self, queue: int, added: list[tuple[bool, int, int]]) -> None:
        for settled, due, topic in added:
            self.units[queue].append([77 if settled else 0, due, topic])
        self.write()

    def write(self) -> None:
        for array, listed in zip(self.arrays, self.units, strict=True):
            for at, (word, due, topic) in enumerate(listed):
                array[at] = word, due_word(due, topic)

    def waiting(self) -> list[list[tuple[int, int, int]]]:
        """What waits, by queue: due time, offset and topic."""
        return [
            [
                (due, offset, topic)
                for offset, (word, due, topic) in enumerate(listed)
                if not word and offset >= self.mins[queue]
            ]
            for queue, listed in enumerate(self.units)
        ]

    def plain(self, wanted: Wanted, chosen: Any) -> list[tuple[int, int, int]]:
        """Due time, queue and offset of each wanted unit, in order."""
        return sorted(
            (due, queue, offset)
            for queue, listed in enumerate(self.units)
            for offset, (word, due, topic) in enumerate(listed)
            if offset >= self.mins[queue]
            and (word != 0) == wanted.settled
            and wanted.due_from_ms <= due < wanted.due_before_ms
            and (chosen is None or topic in chosen)
        )


class Table:
    def __init__(self, array: Any) -> None:
        self._array = array

    def block(self, number: int) -> Any:
        return self._array[number * BLOCK : (number + 1) * BLOCK]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_scans_agree_with_a_plain_look(data: st.DataObject) -> None:
    world = World()
    for _ in range(data.draw(st.integers(1, 4))):
        world.add(0, data.draw(units))
        world.add(1, data.draw(units))
        for listed in world.units:
            for at in data.draw(st.sets(st.integers(0, max(0, len(listed) - 1)))):
                if at < len(listed):
                    listed[at][0] = 99
        world.write()
        world.mins[0] = data.draw(st.integers(world.mins[0], len(world.units[0])))
        agree(world, data)


def agree(world: World, data: st.DataObject) -> None:
    start, length = data.draw(windows)
    chosen = data.draw(topics)
    numbers: Any = None if chosen is None else tuple(chosen)
    if chosen is not None and data.draw(st.booleans()):
        numbers = np.array([number in chosen for number in range(4)])
    wanted = Wanted(start, start + length, numbers, settled=data.draw(st.booleans()))
    expected = world.plain(wanted, chosen)
    outlook = world.outlook
    assert outlook.count(wanted) == len(expected)
    found = sorted(
        (due, queue.index, offset)
        for queue in QUEUES
        for some in outlook.units(queue, wanted)
        for due, offset in zip(some.due_ms.tolist(), some.offsets.tolist(), strict=True)
    )
    assert found == expected
    due_times = [
        (len(some.due_ms[some.due_ms != NEVER_MS]), some.count, some.low_ms, some.due_ms.tolist())
        for queue in QUEUES
        for some in outlook.dues(queue, wanted)
    ]
    assert all(listed == count for listed, count, _, _ in due_times)
    assert all(low_ms <= min(dues) for _, _, low_ms, dues in due_times)
    told_dues = sorted(due for *_, dues in due_times for due in dues if due != NEVER_MS)
    assert told_dues == [due for due, _, _ in expected]
    waits = [topic for due, _, topic in (unit for listed in world.waiting() for unit in listed)]
    assert outlook.waiting_by_topic() == {one: waits.count(one) for one in set(waits)}
    step = data.draw(st.integers(1, 70))
    counts = [0] * -(-length // step)
    for due, _, _ in expected:
        counts[(due - start) // step] += 1
    assert outlook.buckets(wanted, step).tolist() == counts
    after = data.draw(st.one_of(st.none(), st.sampled_from(expected) if expected else st.none()))
    limit = data.draw(st.integers(1, 20))
    places, count = outlook.nearest(list(enumerate(QUEUES)), wanted, after=after, limit=limit)
    rest = [one for one in expected if after is None or one > after]
    told = zip(
        places.due_ms.tolist(), places.holders.tolist(), places.offsets.tolist(), strict=True
    )
    assert list(told) == rest[:limit]
    assert count == len(expected)


def test_the_nearest_of_many_are_found_without_keeping_the_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outlook_module, "_SHRUNK_ABOVE", 0)
    world = World()
    world.add(0, [(False, due % 50, 0) for due in range(180)])
    world.add(1, [(False, due % 7, 0) for due in range(180)])
    wanted = Wanted(0, 100)
    places, count = world.outlook.nearest(list(enumerate(QUEUES)), wanted, after=None, limit=9)
    told = zip(
        places.due_ms.tolist(), places.holders.tolist(), places.offsets.tolist(), strict=True
    )
    assert list(told) == world.plain(wanted, None)[:9]
    assert count == 360
