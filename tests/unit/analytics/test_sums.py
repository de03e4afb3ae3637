"""Seals checked in sums, against each by its own CRC."""

import random
from itertools import accumulate

import numpy as np
import pytest

from analytics.log import sums
from analytics.log.sums import hold_in_sums
from queues.store.crc import crc32
from queues.store.record import CRC_MASK, CRC_PROPERTY_BYTES, crc_property
from queues.store.scattered import records_at
from queues.store.seals import SEAL, hold

RECORDS = 600


def judged(log: bytes, sizes: list[int]) -> list[list[int]]:
    """The numbers of those that do not hold: in sums, and each by itself."""
    ends = np.array(list(accumulate(sizes)), np.int64)
    covered = ends - CRC_PROPERTY_BYTES
    seals = records_at(log, SEAL, covered)
    return [
        np.flatnonzero(~way(seals, log, ends - sizes, covered)).tolist()
        for way in (hold_in_sums, hold)
    ]


def written(lengths: list[int]) -> tuple[bytearray, list[int]]:
    """Records of so many bytes before the seal, and their sizes."""
    chance = random.Random(3)
    bodies = [chance.randbytes(length) for length in lengths]
    records = [body + crc_property(crc32(body) & CRC_MASK) for body in bodies]
    return bytearray(b"".join(records)), [len(record) for record in records]


@pytest.mark.parametrize(
    ("shortest", "longest"), [(400, 400), (100, 900), (1, 40), (64, 64), (5_000, 20_000)]
)
def test_every_damaged_record_is_found_and_no_other(shortest: int, longest: int) -> None:
    chance = random.Random(longest)
    log, sizes = written([chance.randint(shortest, longest) for _ in range(RECORDS)])
    assert judged(bytes(log), sizes) == [[], []]
    damaged = sorted(chance.sample(range(RECORDS), 40))
    ends = list(accumulate(sizes))
    for number in damaged:
        at = chance.randrange(ends[number] - sizes[number], ends[number] - 1)
        log[at] ^= 1 << chance.randrange(8)
    in_sums, alone = judged(bytes(log), sizes)
    assert in_sums == alone
    # Damage to a seal's name is not for these to see.
    assert set(alone) <= set(damaged)
    assert len(alone) > len(damaged) // 2


def test_the_first_records_of_a_buffer_are_judged_too() -> None:
    log, sizes = written([10] * 40)
    log[3] ^= 1
    assert judged(bytes(log), sizes) == [[0], [0]]


def test_a_sum_is_of_so_many_bytes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_AT_ONCE_BYTES", 4_096)
    log, sizes = written([150] * RECORDS)
    log[sizes[0] * 77 + 5] ^= 4
    assert judged(bytes(log), sizes) == [[77], [77]]
