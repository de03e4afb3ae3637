"""Power loss: what a ledger's floor passed and the device did not get comes again, once."""

from pathlib import Path

import pytest

from queues.store.failing import Verdict
from tests.support.chainworld import GROUP, LEASE_MS, RULE, Process, id_of
from tests.support.clock import ManualClock
from tests.support.forgetful_disk import Machine

HEADER_BYTES = 4_096


def keep_only_the_header(machine: Machine, ledger: Path) -> None:
    """The header's page reached the device, the entries' page did not."""
    inode, data = ledger.stat().st_ino, ledger.read_bytes()
    old = machine._contents.get(inode, b"")
    machine._contents[inode] = data[:HEADER_BYTES] + old[HEADER_BYTES:]


def ledgers_reach_the_device(machine: Machine, *, header: bytes = b"") -> None:
    """All that the ledgers tell is on the device, where wanted behind a damaged header."""
    for ledger in (machine.root / "postdate/ledger/billing/orders").iterdir():
        with ledger.open("r+b") as file:
            file.write(header)
        machine.sync_file(ledger, ledger.stat().st_ino)


def a_message_failed(machine: Machine, clock: ManualClock) -> tuple[Process, str]:
    """A message on the device whose retry is written and not flushed: who wrote it, and its id."""
    process = Process(machine.root, clock, machine.disk())
    (message_id,) = process.send(1)
    process.store.flush()
    (delivery,) = process.receive()
    process.consuming.failing.fail(
        GROUP, [delivery.receipt], RULE, Verdict("it failed"), clock.now_ms()
    )
    return process, message_id


@pytest.mark.parametrize("flushed", [True, False])
def test_a_message_that_failed_comes_once_whether_the_log_lost_its_retry_or_not(
    tmp_path: Path, flushed: bool
) -> None:
    machine, clock = Machine(tmp_path / "store"), ManualClock()
    process, message_id = a_message_failed(machine, clock)
    if flushed:
        process.store.flush()
    for ledger in (machine.root / "postdate/ledger/billing/orders").iterdir():
        keep_only_the_header(machine, ledger)
    machine.power_cut()
    again = Process(machine.root, clock, machine.disk())
    came = []
    for _ in range(4):
        came += [id_of(one) for one in again.receive()]
        clock.advance(LEASE_MS - 1)
        again.hand_over()
    assert came == [message_id]
    again.close()


def test_what_recovery_made_ready_again_stays_so_when_the_power_is_lost_again(
    tmp_path: Path,
) -> None:
    machine, clock = Machine(tmp_path / "store"), ManualClock()
    _, message_id = a_message_failed(machine, clock)
    ledgers_reach_the_device(machine)  # They tell of a retry that the log will lose.
    machine.power_cut()
    between = Process(machine.root, clock, machine.disk())
    others = between.send(20)  # What lies now where the retry would have.
    between.store.flush()
    machine.power_cut()
    again = Process(machine.root, clock, machine.disk())
    came = [id_of(one) for _ in range(3) for one in again.receive()]
    assert sorted(came) == sorted([message_id, *others])
    again.close()


def test_what_lies_behind_a_damaged_header_forgets_retries_that_the_log_lost(
    tmp_path: Path,
) -> None:
    machine, clock = Machine(tmp_path / "store"), ManualClock()
    _, message_id = a_message_failed(machine, clock)
    ledgers_reach_the_device(machine, header=b"\xff" * 64)
    machine.power_cut()
    again = Process(machine.root, clock, machine.disk())
    again.send(20)
    assert message_id in [id_of(one) for _ in range(3) for one in again.receive()]
    again.close()


def test_a_new_ledger_is_on_the_device_before_it_tells_anything(tmp_path: Path) -> None:
    machine, clock = Machine(tmp_path / "store"), ManualClock()
    process = Process(machine.root, clock, machine.disk())
    process.send(2)
    process.store.flush()
    receipts = [one.receipt for one in process.receive()]
    process.consuming.ack(GROUP, receipts, clock.now_ms())
    process.consuming.save_offsets()
    machine.power_cut()
    (machine.root / "config" / "consumerOffset.json").unlink()
    (machine.root / "config" / "consumerOffset.json.bak").unlink(missing_ok=True)
    again = Process(machine.root, clock, machine.disk())
    assert not again.receive()
    again.close()
