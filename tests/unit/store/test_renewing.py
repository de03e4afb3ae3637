"""Renewals that the machine's crash cut in two."""

from pathlib import Path

from queues.store import TIMER_TOPIC
from queues.store.settings import DAY_MS
from tests.support.clock import ManualClock
from tests.support.forgetful_disk import Machine
from tests.support.invariants import assert_sound
from tests.support.storeworld import (
    at_four,
    fill,
    hand_over_due,
    open_store,
    send_timed,
)


def test_a_renewal_of_which_the_machine_lost_a_half_did_not_happen(tmp_path: Path) -> None:
    root, clock = tmp_path / "store", ManualClock()
    at_four(clock)
    machine = Machine(root)
    store = open_store(root, clock, disk=machine.disk())
    message_id = send_timed(store, 1_000)
    clock.advance(1_000)
    store.park(TIMER_TOPIC, 0, 0, reason="the topic was deleted")
    fill(store, 2)
    clock.advance(2 * DAY_MS)
    fill(store, 1)
    store.flush()
    before = store.committed
    assert store.housekeep(clock.now_ms()).renewed == 1
    half = before + int.from_bytes(store._log.read(before, 4), "big")
    assert before < half < store.committed
    segment = root / "commitlog" / f"{store._log.base_of(before):020d}"
    machine.power_cut_behind(segment, half - store._log.base_of(before))
    for renewed in (1, 0):
        with open_store(root, clock, disk=machine.disk()) as store:
            assert_sound(store)
            assert [view.id for view in store.parked()] == [message_id]
            assert hand_over_due(store) == 0
            assert store.housekeep(clock.now_ms()).renewed == renewed
            store.flush()
        machine.power_cut()
