"""The verifier learns the sizes of an index file from its chains: no file says them."""

from pathlib import Path

import numpy as np
import pytest

from queues.store.disk import Disk
from queues.store.indexfile import IndexFile, index_file_bytes
from queues.store.inspection.entries import learn_slots

BEGIN_MS = 1_700_000_000_000


@pytest.mark.parametrize(("slots", "entries"), [(10, 40), (7, 100), (1000, 50), (3, 3000)])
def test_the_sizes_of_an_index_file_are_learned_from_it(
    tmp_path: Path, slots: int, entries: int
) -> None:
    mapped = Disk().map(tmp_path / "1", size_bytes=index_file_bytes(slots, entries), create=True)
    chance = np.random.default_rng(1)
    hashes = chance.integers(0, 2**31, 30, dtype=np.int32)
    offsets = np.arange(30, dtype=np.int64) * 300
    IndexFile(mapped, slots, entries).append(hashes, offsets, BEGIN_MS + offsets)
    assert learn_slots(mapped) == slots


def test_the_sizes_are_learned_from_a_few_entries_too(tmp_path: Path) -> None:
    for seed in range(40):
        path = tmp_path / str(seed)
        mapped = Disk().map(path, size_bytes=index_file_bytes(64, 4_000), create=True)
        hashes = np.random.default_rng(seed).integers(0, 2**31, 8, dtype=np.int32)
        offsets = np.arange(8, dtype=np.int64) * 300
        IndexFile(mapped, 64, 4_000).append(hashes, offsets, BEGIN_MS + offsets)
        assert learn_slots(mapped) == 64
