"""Removing segments: on the device, the oldest goes first, whatever power loss interrupts."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from queues.store.inspection.verify import verify_store
from queues.store.settings import StoreSettings
from tests.support.clock import ManualClock
from tests.support.forgetful_disk import Machine
from tests.support.storeworld import (
    SIZES,
    at_four,
    hand_over_due,
    open_store,
    outgoing,
    send_timed,
)

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize("seed", range(8))
def test_power_loss_never_brings_a_removed_segment_back_behind_a_later_one(
    tmp_path: Path, clock: ManualClock, seed: int
) -> None:
    """What was handed over would wait again: its own segment back, its delivery's gone."""
    machine = Machine(tmp_path / "store")
    settings = StoreSettings(
        sizes=SIZES, ballast_bytes=65_536, sync_flush=True, retention_ms=HOUR_MS
    )
    store = open_store(machine.root, clock, settings=settings, disk=machine.disk())
    ids = [send_timed(store, 1_000, body_bytes=2_000) for _ in range(12)]
    clock.advance(1_000)
    assert hand_over_due(store) == len(ids)
    store.flush()
    clock.advance(2 * HOUR_MS)
    store.send([outgoing(store, body_bytes=6_000) for _ in range(3)])
    at_four(clock)
    assert store.housekeep(clock.now_ms()).segments_removed >= 2
    machine.power_cut(random.Random(seed))
    with open_store(machine.root, clock, settings=settings, disk=machine.disk()) as again:
        bases = again._log.bases()
        assert bases == list(range(bases[0], bases[-1] + 1, SIZES.segment_bytes))
        assert hand_over_due(again) == 0


def test_a_segment_that_a_stopped_removal_left_is_no_part_of_the_log(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = tmp_path / "store"
    sizes = replace(SIZES, consume_queue_units=20)
    settings = StoreSettings(sizes=sizes, ballast_bytes=65_536, retention_ms=HOUR_MS)
    with open_store(root, clock, settings=settings) as store:
        store.send([outgoing(store) for _ in range(500)])
        segments = {base: store._log.path(base).read_bytes() for base in store._log.bases()}
        clock.advance(2 * HOUR_MS)
        at_four(clock)
        store.send([outgoing(store)])
        removed = store.housekeep(clock.now_ms()).segments_removed
        left = list(segments)[removed - 1]
        store._log.path(left).write_bytes(segments[left])
    _, report = verify_store(root)
    assert report.sound, report.findings
