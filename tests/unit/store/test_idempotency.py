"""Sending once: a repeat stores nothing, whoever repeats it, and whatever died in between."""

import multiprocessing
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queues.store import Once, Placed, Repeat, Store
from queues.store.errors import StoreFull
from queues.store.idempotency import REMEMBERED_MS
from queues.store.inspection.verify import verify_store
from queues.store.rebuild import DERIVED
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    SETTINGS,
    SYNC,
    at_four,
    hand_over_due,
    open_store,
    outgoing,
)

A, B = "a" * 32, "b" * 32
SPAWN = multiprocessing.get_context("spawn")
DEADLINE_S = 60


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    with open_store(tmp_path / "store", clock) as store:
        yield store


def once(store: Store, key: str | None = "order 7", fingerprint: str = A, **fields: Any) -> Once:
    return Once(outgoing(store, **fields), key, fingerprint)


def send(store: Store, *messages: Once) -> list[Placed | Repeat]:
    return store.once.send(messages)


def count(store: Store) -> int:
    return len(assert_sound(store))


@pytest.mark.parametrize("fields", [{}, {"level": 2}, {"due_ms": 1_800_000_000_000}])
def test_a_repeat_stores_nothing_and_is_told_what_the_first_became(store: Store, fields) -> None:
    wanted = once(store, **fields)
    (placed,) = send(store, wanted)
    assert isinstance(placed, Placed)
    (repeat,) = send(store, once(store, **fields))
    message = wanted.message
    assert repeat == Repeat(
        message.unique_id, message.queue_id, placed.kind, message.level, placed.due_ms,
        message.born_ms, A,
    )  # fmt: skip
    assert count(store) == 1
    view = store.find(message.unique_id)
    assert view is not None
    assert view.record.keys == message.keys


def test_a_repeat_after_the_hand_over_is_told_what_the_first_became(
    store: Store, clock: ManualClock
) -> None:
    wanted = once(store, due_ms=clock.now_ms() + 500)
    send(store, wanted)
    clock.advance(1_000)
    assert hand_over_due(store) == 1
    (repeat,) = send(store, once(store))
    assert isinstance(repeat, Repeat)
    assert (repeat.unique_id, repeat.kind) == (wanted.message.unique_id, "T")


def test_the_same_key_with_another_payload_shows_the_first_fingerprint(store: Store) -> None:
    send(store, once(store))
    (repeat,) = send(store, once(store, fingerprint=B))
    assert isinstance(repeat, Repeat)
    assert repeat.fingerprint == A
    assert count(store) == 1


def test_a_key_is_its_topics_own(store: Store) -> None:
    send(store, once(store, level=1))
    (other,) = send(store, once(store, topic="other", level=1))
    assert isinstance(other, Placed)
    assert count(store) == 2


def test_a_key_is_forgotten_after_a_day(store: Store, clock: ManualClock) -> None:
    send(store, once(store))
    clock.advance(REMEMBERED_MS - 1)
    assert isinstance(send(store, once(store))[0], Repeat)
    clock.advance(1)
    assert isinstance(send(store, once(store, fingerprint=B))[0], Placed)
    (repeat,) = send(store, once(store))
    assert isinstance(repeat, Repeat)
    assert repeat.fingerprint == B


def test_a_batch_stores_each_key_once_and_keeps_its_order(store: Store) -> None:
    send(store, once(store, "old"))
    wanted = [
        once(store, "new", queue_id=0),
        once(store, None, queue_id=0),
        once(store, "old"),
        once(store, "new", B),
        once(store, "other", queue_id=0),
        once(store, None, queue_id=0),
    ]
    sent = send(store, *wanted)
    assert [type(one) for one in sent] == [Placed, Placed, Repeat, Repeat, Placed, Placed]
    assert [one.queue_offset for one in sent if isinstance(one, Placed)] == [
        one.queue_offset for one in sorted(o for o in sent if isinstance(o, Placed))
    ]
    assert isinstance(sent[3], Repeat)
    assert sent[3].unique_id == wanted[0].message.unique_id
    assert count(store) == 5


def test_a_batch_of_a_thousand_is_stored_once(store: Store) -> None:
    wanted = [once(store, f"key {number}", keys=("a", "b", "c")) for number in range(1000)]
    assert all(isinstance(one, Placed) for one in send(store, *wanted))
    repeats = send(store, *wanted)
    assert [one.unique_id for one in repeats if isinstance(one, Repeat)] == [
        one.message.unique_id for one in wanted
    ]
    assert count(store) == 1000


def test_business_keys_are_not_idempotency_keys(store: Store) -> None:
    store.send([outgoing(store, keys=("x", "IDEMPOTENCY"))])
    assert isinstance(send(store, once(store, "x"))[0], Placed)


@pytest.mark.parametrize("lost", [False, True])
def test_keys_survive_a_restart_and_the_loss_of_the_index(
    tmp_path: Path, clock: ManualClock, lost: bool
) -> None:
    with open_store(tmp_path / "store", clock) as store:
        for number in range(30):
            send(store, once(store, f"key {number}", level=number % 3))
    if lost:
        for name in DERIVED:
            path = tmp_path / "store" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    with open_store(tmp_path / "store", clock) as store:
        sent = send(store, *[once(store, f"key {number}") for number in range(30)])
        assert all(isinstance(one, Repeat) for one in sent)
        assert count(store) == 30


def test_the_index_of_keys_is_what_the_verifier_expects(
    tmp_path: Path, store: Store, clock: ManualClock
) -> None:
    send(store, once(store), once(store, "timed", due_ms=clock.now_ms() + 500), once(store, None))
    clock.advance(1_000)
    hand_over_due(store)
    assert verify_store(tmp_path / "store")[1].findings == []


def test_a_key_is_found_in_an_index_file_that_was_full_since(store: Store) -> None:
    send(store, once(store))
    store.send([outgoing(store, keys=tuple(f"k{n}" for n in range(30))) for _ in range(400)])
    assert len(list((store.root / "index").iterdir())) > 1
    assert isinstance(send(store, once(store))[0], Repeat)


def test_of_stores_that_send_a_key_at_the_same_moment_one_stores_it(
    tmp_path: Path, clock: ManualClock
) -> None:
    stores = [open_store(tmp_path / "store", clock) for _ in range(3)]
    found: list[Placed | Repeat] = []
    start = threading.Barrier(len(stores))

    def work(mine: Store) -> None:
        for number in range(40):
            start.wait(DEADLINE_S)
            found.extend(send(mine, once(mine, f"key {number}")))

    threads = [threading.Thread(target=work, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert sum(isinstance(one, Placed) for one in found) == 40
    assert sum(isinstance(one, Repeat) for one in found) == 80
    assert len(assert_sound(stores[0])) == 40
    for one in stores:
        one.close()


def send_for_ever(root: Path) -> None:
    with Store.open(root, SETTINGS, disk=UnsyncedDisk()) as store:
        for number in range(1 << 30):
            send(store, once(store, f"key {number}", level=number % 2))


def test_what_a_killed_process_sent_is_not_sent_again(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with Store.open(root, SETTINGS, disk=UnsyncedDisk()) as store:
        for _ in range(3):
            before = store.committed
            sender = SPAWN.Process(target=send_for_ever, args=(root,))
            sender.start()
            seen = store.bell.value()
            while store.committed < before + 5_000 and sender.is_alive():
                seen = store.bell.wait(seen, 1.0)
            sender.kill()
            sender.join(DEADLINE_S)
            with store._appender.hold():
                pass  # Whoever takes the lock repairs what the dead one left half done.
            stored = count(store)
            again = send(store, *[once(store, f"key {number}") for number in range(stored)])
            assert all(isinstance(one, Repeat) for one in again)
            assert count(store) == stored
            # The next process begins with the first key again and goes on behind the last.


def test_a_repeat_is_answered_while_the_disk_is_full(tmp_path: Path, clock: ManualClock) -> None:
    with open_store(tmp_path / "store", clock) as store:
        send(store, once(store))
        store._reserve.whole = lambda: False  # type: ignore[method-assign]
        store._reserve.with_room = refuse  # type: ignore[method-assign, assignment]
        assert isinstance(send(store, once(store))[0], Repeat)
        with pytest.raises(StoreFull):
            send(store, once(store, "new"))
        assert store.counters()["sends_refused"] == 1


def refuse(*_: Any, **__: Any) -> Any:
    raise StoreFull


def test_in_sync_mode_a_repeat_rests_on_a_flushed_record(
    tmp_path: Path, clock: ManualClock
) -> None:
    with open_store(tmp_path / "store", clock, settings=SYNC) as store:
        send(store, once(store))
        assert isinstance(send(store, once(store))[0], Repeat)
        assert store.flushed == store.committed


def test_a_key_goes_with_its_record(store: Store, clock: ManualClock) -> None:
    send(store, once(store))
    for _ in range(60):
        store.send([outgoing(store, body_bytes=600)])
    clock.advance(REMEMBERED_MS * 4)
    at_four(clock)
    store.housekeep(clock.now_ms())
    assert isinstance(send(store, once(store))[0], Placed)
