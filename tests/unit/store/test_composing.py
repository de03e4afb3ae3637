"""Composing many messages gives the bytes, and the entries, of encoding each alone."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from queues.store import Outgoing, Sizes, Store, StoreSettings
from queues.store.batch import Entries, seal
from queues.store.composing import Composer
from queues.store.errors import MessageIllegal
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk

SETTINGS = StoreSettings(
    sizes=Sizes(segment_bytes=1 << 20, index_slots=1_000, index_entries=10_000), ballast_bytes=4096
)
COUNT = 120


def message(number: int, now_ms: int, **changed: object) -> Outgoing:
    """Immediate, level and timed messages of two topics, with and without all that is optional."""
    asked = Outgoing(
        topic="orders" if number % 3 else "größere-bestellungen", queue_id=number % 2,
        unique_id=f"018bcfe568007abc8{number:015x}", body=b"x" * (number * 7 % 40),
        born_ms=now_ms - number, tag="TagA" if number % 2 else None,
        keys=tuple(f"key{number}-{place}" for place in range(number % 4)),
        properties={"größe": "naïve"} if number % 5 == 0 else {},
        level=number % 4 if number % 7 else 0, due_ms=now_ms + number - 3, flag=number,
        by="key:test" if number % 6 else None,
    )  # fmt: skip
    return asked._replace(**changed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(
        tmp_path / "store", SETTINGS, clock=ManualClock(), disk=UnsyncedDisk()
    ) as store:
        yield store


def columns(entries: Entries) -> dict[str, list[object]]:
    """All but `members`, which only a composed batch knows beforehand."""
    names = {field.name for field in fields(entries)} - {"members"}
    return {name: list(getattr(entries, name)) for name in names}


def test_composed_together_and_encoded_alone_are_the_same_bytes_and_entries(store: Store) -> None:
    encoder, now_ms = store._sender._encoder, store.clock.now_ms()
    messages = [message(number, now_ms) for number in range(COUNT)]
    together, alone = (
        Composer(encoder).compose(messages, now_ms),
        seal(encoder.sends(messages, now_ms)),
    )
    assert together is not None
    assert together.data == alone.data
    assert together.starts == alone.starts
    assert columns(together.entries) == columns(alone.entries)
    for members in together.entries.members:
        assert len({alone.entries.queues[number] for number in members}) == 1
        assert (np.diff(members) > 0).all()
    every = np.concatenate(list(together.entries.members))
    assert sorted(every.tolist()) == list(range(COUNT))


def test_what_has_an_unusual_width_is_left_to_the_general_way(store: Store) -> None:
    composer, now_ms = Composer(store._sender._encoder), store.clock.now_ms()
    for odd in ({"unique_id": "short"}, {"due_ms": None, "level": 0, "born_ms": 7}):
        messages = [message(number, now_ms) for number in range(20)]
        assert composer.compose([*messages, message(20, now_ms, **odd)], now_ms) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"tag": "a\x02b"},
        {"keys": ("a\x01",)},
        {"properties": {"a": "b\x00"}},
        {"body": b"x" * (4 * 1024 * 1024 + 1)},
        {"tag": "t" * 40_000},
    ],
)
def test_what_cannot_be_stored_is_refused_in_the_middle_of_many(
    store: Store, odd: dict[str, object]
) -> None:
    now_ms = store.clock.now_ms()
    messages = [message(number, now_ms) for number in range(20)]
    end = store.committed
    with pytest.raises(MessageIllegal):
        store.send([*messages, message(20, now_ms, **odd)])
    assert store.committed == end


def test_many_messages_that_were_sent_together_are_indexed_by_all_their_keys(store: Store) -> None:
    now_ms = store.clock.now_ms()
    asked_for = [message(number, now_ms) for number in range(COUNT)]
    messages = [asked._replace(unique_id=store.new_id(asked.topic, now_ms)) for asked in asked_for]
    store.send(messages)
    for asked in messages:
        found = store.find(asked.unique_id)
        assert found is not None
        assert found.topic == asked.topic
        assert found.record.body == asked.body
        assert tuple(found.record.keys) == asked.keys
    assert np.all(store.schedule("SCHEDULE_TOPIC_XXXX", 0, 0, COUNT).settled == 0)
