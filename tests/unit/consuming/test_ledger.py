"""The ledger file: its bytes, its lock, and what it does when it is damaged, busy or old."""

import zlib
from pathlib import Path

import numpy as np
import pytest

from queues.store.consuming import Consuming, Subscription
from queues.store.disk import Disk
from queues.store.errors import DiskFull, LedgerBusy, StoreVersionUnknown
from queues.store.ledger import Ledger
from queues.store.ledgerentries import ENTRY_BYTES, State, lease_details, lease_word
from queues.store.ledgerheader import ENTRIES_AT, HEADER_BYTES, decode_header
from tests.support.ledgerchecks import assert_ledgers_sound
from tests.support.queuesinmemory import QueuesInMemory

NOW = 1_700_000_000_000
LEASE = 60_000
ORDERS = [Subscription("orders")]


@pytest.fixture
def queues(tmp_path: Path) -> QueuesInMemory:
    queues = QueuesInMemory(tmp_path)
    queues.fill("orders", 0, 20)
    return queues


def started(queues: QueuesInMemory) -> Consuming:
    return Consuming(queues, b"a secret of the tests")


def receive(consuming: Consuming, count: int = 32, now_ms: int = NOW):
    return consuming.receive(
        "g", ORDERS, max_messages=count, lease_ms=LEASE, now_ms=now_ms
    ).deliveries


def ledger_path(queues: QueuesInMemory) -> Path:
    return queues.root / "postdate" / "ledger" / "g" / "orders" / "0"


def test_the_worked_example_of_an_entry_holds(queues):
    consuming = started(queues)
    receive(consuming, 8)
    data = ledger_path(queues).read_bytes()
    entry = int.from_bytes(data[4208:4216], "little")
    assert entry == (NOW + LEASE) | 1 << 44 | State.LEASED << 54
    chain = int.from_bytes(data[4216:4224], "little", signed=True)
    assert chain == lease_details(held_ms=LEASE, consumer=0)
    assert ENTRIES_AT + 7 * ENTRY_BYTES == 4208


def test_the_header_is_where_the_table_says(queues):
    consuming = started(queues)
    receipts = [delivery.receipt for delivery in receive(consuming, 9)]
    consuming.ack("g", receipts[:5], NOW)
    data = ledger_path(queues).read_bytes()
    word = {at: int.from_bytes(data[at : at + 8], "little") for at in range(24, 152, 8)}
    assert data[:8] == b"PDLEDGER"
    assert HEADER_BYTES == 160
    assert int.from_bytes(data[20:24], "little") == 1
    assert (word[32], word[40], word[48], word[56], word[64]) == (1, 0, 5, 9, 4)
    assert word[88] == NOW + LEASE


def test_a_ledger_of_a_later_version_is_refused_by_name(queues):
    consuming = started(queues)
    receive(consuming, 1)
    data = bytearray(ledger_path(queues).read_bytes()[:HEADER_BYTES])
    data[20] = 9
    data[16:20] = zlib.crc32(data[20:]).to_bytes(4, "little")
    with pytest.raises(StoreVersionUnknown, match="found=9"):
        decode_header(bytes(data), ledger_path(queues))


def test_a_missing_ledger_begins_where_the_offsets_file_says(queues):
    consuming = started(queues)
    receipts = [delivery.receipt for delivery in receive(consuming, 9)]
    consuming.ack("g", receipts[:5], NOW)
    consuming.close()
    ledger_path(queues).unlink()
    assert [delivery.queue_offset for delivery in receive(started(queues), 2)] == [5, 6]


def test_the_offsets_file_is_the_brokers(queues):
    consuming = started(queues)
    consuming.ack("g", [delivery.receipt for delivery in receive(consuming, 3)], NOW)
    consuming.save_offsets()
    path = queues.root / "config" / "consumerOffset.json"
    assert path.read_bytes() == b'{"offsetTable":{"orders@g":{"0":3}}}'


def test_the_offsets_of_a_brokers_groups_count_and_stay(queues):
    path = queues.root / "config" / "consumerOffset.json"
    path.parent.mkdir()
    path.write_bytes(b'{"offsetTable":{"orders@g":{0:12,1:999},"other@h":{3:7}}}')
    consuming = started(queues)
    (delivery,) = receive(consuming, 1)
    assert delivery.queue_offset == 12
    consuming.ack("g", [delivery.receipt], NOW)
    consuming.save_offsets()
    expected = b'{"offsetTable":{"orders@g":{"0":13,"1":999},"other@h":{"3":7}}}'
    assert path.read_bytes() == expected


def test_a_saved_offset_beyond_the_queue_is_clamped_to_its_end(queues):
    path = queues.root / "config" / "consumerOffset.json"
    path.parent.mkdir()
    path.write_bytes(b'{"offsetTable":{"orders@g":{0:25477423}}}')
    consuming = started(queues)
    assert receive(consuming) == []
    queues.fill("orders", 0, 1)
    assert [delivery.queue_offset for delivery in receive(consuming)] == [20]


def test_a_damaged_header_is_made_anew_and_what_was_acked_stays_acked(queues):
    consuming = started(queues)
    deliveries = receive(consuming, 9)
    consuming.save_offsets()
    consuming.ack("g", [deliveries[at].receipt for at in (0, 1, 5)], NOW)
    consuming._ledgers.close()
    with ledger_path(queues).open("r+b") as file:
        file.seek(48)
        file.write(b"\xff")
    again = started(queues)
    assert [delivery.queue_offset for delivery in receive(again, 3)] == [9, 10, 11]
    late = receive(again, 99, NOW + LEASE)
    assert [delivery.queue_offset for delivery in late] == [
        *(2, 3, 4, 6, 7, 8, 9, 10, 11),
        *range(12, 20),
    ]
    assert_ledgers_sound(queues)


def test_entries_far_below_the_floor_are_given_back_after_a_sync(queues, monkeypatch):
    monkeypatch.setattr("queues.store.ledger.LEDGER_KEPT_ENTRIES", 256)
    monkeypatch.setattr("queues.store.ledger._PUNCH_ENTRIES", 256)
    queues.fill("orders", 0, 2_000)
    consuming = started(queues)
    deliveries = receive(consuming, 1_500)
    receipts = [delivery.receipt for delivery in deliveries]
    assert set(consuming.ack("g", receipts, NOW)) == {"acked"}
    consuming.save_offsets()
    data = ledger_path(queues).read_bytes()
    assert data[ENTRIES_AT : ENTRIES_AT + 1_024 * ENTRY_BYTES] == bytes(1_024 * ENTRY_BYTES)
    assert lease_word(State.ACKED, 1, NOW + LEASE).to_bytes(8, "little") in data
    # Repeated, one by one and together, and too late to tell.
    assert consuming.ack("g", receipts[:1], NOW) == ["acked"]
    assert set(consuming.ack("g", receipts, NOW)) == {"acked"}
    assert consuming.ack("g", receipts[:1], NOW + LEASE) == ["expired"]
    assert consuming.ack("g", receipts[-1:], NOW + LEASE) == ["acked"]
    assert_ledgers_sound(queues)


def test_a_ledger_that_another_process_keeps_is_an_error_and_not_a_hang(queues, monkeypatch):
    monkeypatch.setattr("queues.store.ledgers.LEDGER_WAIT_S", 0.01)
    consuming = started(queues)
    (delivery,) = receive(consuming, 1)
    holder = Ledger(queues.disk, ledger_path(queues))
    assert holder.try_hold()
    with pytest.raises(LedgerBusy):
        consuming.ack("g", [delivery.receipt], NOW)
    received = consuming.receive("g", ORDERS, max_messages=1, lease_ms=LEASE, now_ms=NOW)
    assert (received.deliveries, received.more) == ([], True)
    holder.release()
    assert consuming.ack("g", [delivery.receipt], NOW) == ["acked"]


def test_more_ledgers_than_may_be_open_work_all_the_same(queues, monkeypatch):
    monkeypatch.setattr("queues.store.ledgers.OPEN_LEDGERS_MAX", 2)
    for queue_id in range(1, 7):
        queues.fill("orders", queue_id, 2)
    consuming = started(queues)
    deliveries = receive(consuming, 64)
    assert len(deliveries) == 20 + 12
    outcomes = consuming.ack("g", [delivery.receipt for delivery in deliveries], NOW)
    assert set(outcomes) == {"acked"}
    assert len(consuming._ledgers._open) == 2
    assert not consuming.ready_hint("g", ORDERS, NOW)


def test_words_of_offsets_far_apart_are_read_apart(tmp_path):
    ledger = Ledger(Disk(), tmp_path / "0")
    assert ledger.try_hold()
    ledger.begin_at(0, 1)
    offsets = np.array([1, 2, 70_000, 70_001, 9_000_000])
    ledger.put(offsets, np.arange(5) + 10)
    assert ledger.words_of(offsets).tolist() == [10, 11, 12, 13, 14]
    ledger.release()
    ledger.close()


def test_a_group_name_cannot_lead_out_of_the_directory(queues):
    with pytest.raises(AssertionError):
        started(queues).ensure_group("..", "orders", 0, 0)


def test_a_ledger_for_which_there_was_no_room_is_not_taken_for_begun(tmp_path: Path) -> None:
    ledger = Ledger(Disk(), tmp_path / "0")
    assert ledger.try_hold()
    write, ledger._file.pwrite = ledger._file.pwrite, full_disk
    with pytest.raises(DiskFull):
        ledger.begin_at(0, 1)
    ledger._file.pwrite = write
    ledger.release()
    assert ledger.try_hold()
    assert ledger.header is None
    ledger.release()
    ledger.close()


def full_disk(_data: bytes, _offset: int) -> None:
    raise DiskFull(path=Path("0"))
