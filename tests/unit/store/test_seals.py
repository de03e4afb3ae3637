"""Seals of many records at once, against the same one by one."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queues.store import Outgoing, Sizes, Store, StoreSettings
from queues.store.crc import crc32
from queues.store.record import CRC_MASK, CRC_PROPERTY_BYTES, crc_property
from queues.store.scan import is_whole
from queues.store.scattered import numbers_at
from queues.store.seals import SEAL, are_seals, hold

SEGMENT_BYTES = 1 << 20
bodies = st.binary(min_size=1, max_size=40)
#: A bit that is flipped, counted from the record's end; None: none is.
flips = st.one_of(st.none(), st.integers(0, 8 * (CRC_PROPERTY_BYTES + 4) - 1))


def sealed(body: bytes, flip: int | None) -> bytes:
    record = bytearray(body + crc_property(crc32(body) & CRC_MASK))
    if flip is not None:
        place = max(0, len(record) - 1 - flip // 8)
        record[place] ^= 1 << flip % 8
    return bytes(record)


@given(st.lists(st.builds(sealed, bodies, flips), min_size=1, max_size=12))
def test_many_are_judged_as_each_by_itself(records: list[bytes]) -> None:
    buffer = b"".join(records)
    ends = np.cumsum([len(record) for record in records])
    starts = ends - [len(record) for record in records]
    seals = numbers_at(buffer, SEAL)[ends - CRC_PROPERTY_BYTES]
    held = are_seals(seals) & hold(seals, buffer, starts, ends - CRC_PROPERTY_BYTES)
    assert held.tolist() == [is_whole(record) for record in records]


@given(bodies, st.integers(0, 8 * CRC_PROPERTY_BYTES - 1))
def test_no_flipped_bit_of_a_seal_goes_unseen(body: bytes, flip: int) -> None:
    assert is_whole(sealed(body, None))
    assert not is_whole(sealed(body, flip))


def test_many_records_are_read_as_each_by_itself(tmp_path: Path) -> None:
    sizes = Sizes(segment_bytes=SEGMENT_BYTES, index_slots=1_000, index_entries=10_000)
    with Store.open(tmp_path, StoreSettings(sizes=sizes, ballast_bytes=4096)) as store:
        ids = store.new_ids("orders", 1, 400)
        store.send([Outgoing("orders", 0, one, bytes(8_000), 1) for one in ids])
        units = store.read_units("orders", 0, 0, 400)
        path = store.root / "commitlog" / f"{0:020d}"
        with path.open("r+b") as file:
            file.seek(int(units["log_offset"][7]) + 100)
            file.write(b"\xff")
        units["size"][9] = 0
        units["log_offset"][11] = 1 << 40
        together = store.read_records(units)
        apart = [store.read_records(units[at : at + 1])[0] for at in range(len(units))]
    assert together == apart
    assert [at for at, record in enumerate(together) if record is None] == [7, 9, 11]
    assert len({int(offset) // SEGMENT_BYTES for offset in units["log_offset"]}) > 2
