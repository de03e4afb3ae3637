"""Chains and dead letters over retention and rebuilds: what they say stays as it was."""

import shutil

import numpy as np
import pytest

from queues.store.failing import Verdict, dead_letter
from queues.store.groupoffsets import cut_groups
from tests.support.chainworld import GROUP, RULE, Process, id_of
from tests.support.clock import ManualClock
from tests.support.forgetful_disk import Machine
from tests.support.storeworld import fill

NOW = 1_700_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def world(tmp_path, clock):
    process = Process(tmp_path, clock)
    yield process
    process.close()


def fail(process, deliveries, verdict):
    receipts = [delivery.receipt for delivery in deliveries]
    now_ms = process.clock.now_ms()
    return process.consuming.failing.fail(GROUP, receipts, RULE, verdict, now_ms)


def dies(process, count=1):
    """Ids of messages that are sent and given up."""
    ids = process.send(count)
    outcomes = fail(process, process.receive(), dead_letter("no stock"))
    assert {one.outcome for one in outcomes} == {"dead"}
    return ids


def redrive(process, message_id, *, again=False):
    chains = process.store.chains
    return chains.redrive(GROUP, message_id, by="me", retry_queues=1, again=again).outcome


def letters(process):
    """What each kept dead letter says of itself."""
    lookup = process.store.chains.lookup
    found = [lookup.letter_at(GROUP, unit) for unit in lookup.letters(GROUP).units.tolist()]
    return sorted(
        (one.id, one.died_ms, one.attempts, one.reason, one.redriven_ms, one.redriven_by,
         len(one.lineage), one.topic, one.record.body)
        for one in found
        if one is not None
    )  # fmt: skip


def let_old_segments_go(process, clock, days):
    for _ in range(days):
        clock.advance(DAY_MS)
        fill(process.store, 1, topic="noise")
        for _ in range(5):
            process.store.housekeep(clock.now_ms())


def always_delete(process):
    process.store._retention._may_remove = lambda _now_ms: True


def test_dead_letters_outlive_their_segments_and_keep_their_time_of_death(world, clock):
    always_delete(world)
    plain, redriven, discarded = dies(world)[0], dies(world)[0], dies(world)[0]
    assert redrive(world, redriven) == "redriven"
    (delivery,) = world.receive()
    world.consuming.ack(GROUP, [delivery.receipt], clock.now_ms())
    assert world.store.chains.discard(GROUP, discarded, by="me")
    before = letters(world)
    assert [one[0] for one in before] == sorted([plain, redriven])
    let_old_segments_go(world, clock, 8)
    assert world.store.counters()["segments_removed"] > 0
    assert world.store.counters()["renewed"] >= 2
    assert letters(world) == before
    assert redrive(world, redriven) == "already_redriven"
    assert redrive(world, plain) == "redriven"
    assert [id_of(delivery) for delivery in world.receive()] == [plain]


def test_a_renewed_dead_letter_keeps_its_mark_where_the_machine_lost_it(tmp_path, clock):
    machine = Machine(tmp_path)
    process = Process(tmp_path, clock, machine.disk())
    (driven,) = dies(process)
    redrive(process, driven)
    (delivery,) = process.receive()
    process.consuming.ack(GROUP, [delivery.receipt], clock.now_ms())
    fill(process.store, 3, topic="noise")
    clock.advance(2 * DAY_MS)
    fill(process.store, 1, topic="noise")
    process.consuming.save_offsets()
    process.store.flush()
    store, before, kept = process.store, process.store.committed, letters(process)
    assert store.housekeep(clock.now_ms()).renewed == 1
    half = before + int.from_bytes(store._log.read(before, 4), "big")
    assert before < half < store.committed
    base = store._log.base_of(before)
    machine.power_cut_behind(tmp_path / "commitlog" / f"{base:020d}", half - base)
    again = Process(tmp_path, clock, machine.disk())
    assert letters(again) == kept
    assert redrive(again, driven) == "already_redriven"
    assert again.store.housekeep(clock.now_ms()).renewed == 1
    again.close()


def test_dead_letters_past_their_retention_hold_no_segment(world, clock):
    always_delete(world)
    dies(world, 3)
    let_old_segments_go(world, clock, 4)
    assert len(letters(world)) == 3
    clock.advance(30 * DAY_MS)
    assert letters(world) == []
    removed = world.store.counters()["segments_removed"]
    let_old_segments_go(world, clock, 4)
    assert world.store.counters()["segments_removed"] > removed
    queue = world.store.queue_bounds(f"%DLQ%{GROUP}", 0)
    assert queue.min_offset == queue.max_offset


def test_a_waiting_retry_outlives_its_segment(world, clock):
    always_delete(world)
    ids = world.send(2)
    far = Verdict("later", RULE.after(1)._replace(level=0, delay_ms=9 * DAY_MS))
    fail(world, world.receive(), far)
    let_old_segments_go(world, clock, 8)
    assert world.store.counters()["segments_removed"] > 0
    world.hand_over()
    assert world.receive() == []
    clock.advance(DAY_MS)
    world.hand_over()
    found = world.receive()
    assert sorted(map(id_of, found)) == sorted(ids)
    assert {delivery.attempt for delivery in found} == {2}


@pytest.mark.parametrize("ledgers", ["kept", "lost"])
def test_a_rebuild_brings_every_chain_back_as_it_was(tmp_path, clock, ledgers):
    process = Process(tmp_path, clock)
    again = dies(process)[0]
    assert redrive(process, again) == "redriven"
    fail(process, process.receive(), dead_letter("never"))
    driven, _ = dies(process, 2)
    assert redrive(process, driven) == "redriven"
    (delivery,) = process.receive()
    process.consuming.ack(GROUP, [delivery.receipt], clock.now_ms())
    waiting = process.send(2)
    fail(process, process.receive(), Verdict("closed"))
    before = letters(process)
    assert len(before) == 3
    process.close()
    for name in ("consumequeue", "index", "postdate/schedule", "postdate/queues"):
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if ledgers == "lost":
        shutil.rmtree(tmp_path / "postdate" / "ledger")
    process = Process(tmp_path, clock)
    assert letters(process) == before
    assert process.receive() == []
    clock.advance(10_000)
    process.hand_over()
    assert sorted(map(id_of, process.receive())) == sorted(waiting)
    process.close()


def test_units_of_the_dead_letter_topic_say_where_their_messages_came_from(world):
    dies(world)
    found = world.store.chains.lookup.letters(GROUP)
    number = world.store.outlook.topic_number("orders")
    assert np.array_equal(found.topic_numbers, [number])


def test_what_went_on_by_a_record_that_the_machine_lost_is_ready_again(tmp_path, clock):
    process = Process(tmp_path, clock)
    ids = process.send(2)
    kept, lost = process.receive()
    fail(process, [kept], Verdict("closed"))
    log_end = process.store.committed
    fail(process, [lost], Verdict("closed"))
    disk = process.store.disk
    process.close()
    cut_groups(disk, tmp_path, lambda _: 1 << 40, log_end)
    process = Process(tmp_path, clock)
    (again,) = process.receive()
    assert (id_of(again), again.attempt) == (id_of(lost), 2)
    assert {id_of(again), id_of(kept)} == set(ids)
    process.close()
