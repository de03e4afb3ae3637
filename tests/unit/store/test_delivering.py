"""Delivering records: copied one by one or column by column, the bytes are the same."""

from pathlib import Path

import numpy as np
import pytest

from queues.store import TIMER_TOPIC, Outgoing, Sizes, Store, StoreSettings
from queues.store.record import decode_record
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.invariants import assert_sound

SETTINGS = StoreSettings(
    sizes=Sizes(segment_bytes=1 << 20, index_slots=1_000, index_entries=10_000), ballast_bytes=4096
)
COUNT = 60


def message(number: int, due_ms: int) -> Outgoing:
    """Two topics, tags, keys, properties and bodies of some shapes that occur often or once."""
    return Outgoing(
        topic="orders" if number % 3 else "a-longer-topic-name", queue_id=number % 2,
        unique_id=f"018bcfe568007abc8{number:015x}", body=b"x" * (number % 4), born_ms=due_ms - 9,
        tag="TagA" if number % 2 else None, keys=(f"key{number}",) if number % 5 else (),
        properties={"größe": "naïve"} if number == 7 else {}, due_ms=due_ms, flag=number,
    )  # fmt: skip


def delivered(root: Path, at_a_time: int) -> list[bytes]:
    clock = ManualClock()
    with Store.open(root, SETTINGS, clock=clock, disk=UnsyncedDisk()) as store:
        due_ms = clock.now_ms() + 500
        store.send([message(number, due_ms) for number in range(COUNT)])
        clock.advance(500)
        for first in range(0, COUNT, at_a_time):
            store.hand_over(TIMER_TOPIC, 0, np.arange(first, min(COUNT, first + at_a_time)))
        assert_sound(store)
        records = []
        for topic in ("orders", "a-longer-topic-name"):
            for queue_id in (0, 1):
                units = store.read_units(topic, queue_id, 0, COUNT)
                records += [record for record in store.read_records(units) if record is not None]
    return records


def test_many_at_once_are_delivered_with_the_same_bytes_as_one_by_one(tmp_path: Path) -> None:
    together, alone = delivered(tmp_path / "a", COUNT), delivered(tmp_path / "b", 1)
    assert len(together) == COUNT
    assert sorted(together) == sorted(alone)


@pytest.mark.parametrize("at_a_time", [1, COUNT])
def test_a_delivered_message_is_what_was_sent_and_tells_nothing_of_its_waiting(
    tmp_path: Path, at_a_time: int
) -> None:
    found = {}
    for raw in delivered(tmp_path / "store", at_a_time):
        record = decode_record(raw)
        found[record.flag] = record
    for number in range(COUNT):
        record = found[number]
        assert record.body == b"x" * (number % 4)
        assert record.tag == ("TagA" if number % 2 else None)
        assert record.keys == ((f"key{number}",) if number % 5 else ())
        assert record.properties.get("größe") == ("naïve" if number == 7 else None)
        assert not {"REAL_TOPIC", "REAL_QID", "TIMER_OUT_MS"} & record.properties.keys()


def test_one_shape_may_be_for_many_queues_of_a_topic(tmp_path: Path) -> None:
    clock = ManualClock()
    with Store.open(tmp_path, SETTINGS, clock=clock, disk=UnsyncedDisk()) as store:
        due_ms = clock.now_ms() + 500
        sent = [
            Outgoing(
                topic="orders", queue_id=number % 16, unique_id=f"018bcfe568007abc8{number:015x}",
                body=b"%04d" % number, born_ms=due_ms - 9, keys=(f"key{number:04d}",),
                due_ms=due_ms,
            )
            for number in range(400)
        ]  # fmt: skip
        store.send(sent)
        clock.advance(500)
        store.topic_gate = lambda _, queue_id: "no such queue" if queue_id == 3 else None
        order = np.random.default_rng(1).permutation(400)
        done = store.hand_over(TIMER_TOPIC, 0, order)
        assert done.handed == 375
        assert sorted(failure.queue_offset for failure in done.failed) == list(range(3, 400, 16))
        assert {failure.reason for failure in done.failed} == {"no such queue"}
        for queue_id in range(16):
            units = store.read_units("orders", queue_id, 0, 400)
            bodies = [decode_record(raw).body for raw in store.read_records(units) if raw]
            expected = [b"%04d" % number for number in order.tolist() if number % 16 == queue_id]
            assert bodies == ([] if queue_id == 3 else expected)
        assert_sound(store)
