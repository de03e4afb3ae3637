"""An index file: what it finds, and that a stopped append is repaired to the same bytes."""

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queues.store.disk import Disk, Mapped
from queues.store.indexfile import HEADER, IndexFile, index_file_bytes

SLOTS = 7
ENTRIES = 200
BEGIN_MS = 1_700_000_000_000


class WriterStoppedError(Exception):
    """The writer is gone."""


class StoppingMapped(Mapped):
    """A mapping whose writer stops: after so many bytes of all that it writes."""

    left: int | None = None

    def _spend(self, wanted: int) -> int:
        if self.left is None:
            return wanted
        spent = min(wanted, self.left)
        self.left -= spent
        return spent

    def assign(self, array: Any, index: Any, values: Any) -> None:
        """Assign element by element, stopping between two bytes of one."""
        if isinstance(index, slice):
            index = range(*index.indices(len(array)))
        data = np.asarray(values, dtype=array.dtype).tobytes()
        size = array.itemsize
        for number, place in enumerate(index):
            at = self._offset_of(array, int(place))
            self.put(at, data[number * size : (number + 1) * size])

    def put(self, offset: int, data: bytes) -> None:
        """Write as much as is left."""
        spent = self._spend(len(data))
        super().put(offset, data[:spent])
        if spent < len(data):
            raise WriterStoppedError

    def _offset_of(self, array: Any, place: int) -> int:
        start = np.frombuffer(self.memory, dtype=np.uint8).__array_interface__["data"][0]
        address = int(array.__array_interface__["data"][0])
        return address - int(start) + place * int(array.strides[0])


class StoppingDisk(Disk):
    def _mapped(self, path: Path, memory: mmap.mmap, write: bool) -> Mapped:
        return StoppingMapped(path, memory, writable=write)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], tuple[IndexFile, StoppingMapped]]]:
    def build(name: str) -> tuple[IndexFile, StoppingMapped]:
        size = index_file_bytes(SLOTS, ENTRIES)
        mapped = StoppingDisk().map(tmp_path / name, size_bytes=size, create=True)
        assert isinstance(mapped, StoppingMapped)
        return IndexFile(mapped, SLOTS, ENTRIES), mapped

    return build


Make = Callable[[str], tuple[IndexFile, StoppingMapped]]


def batch(count: int, *, seed: int, first_offset: int, first_ms: int) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(seed)
    return (
        chance.integers(0, 12, count).astype(np.int32),
        first_offset + np.arange(count, dtype=np.int64) * 300,
        first_ms + np.arange(count, dtype=np.int64) * 400,
    )


FIRST = batch(30, seed=1, first_offset=0, first_ms=BEGIN_MS)


def bytes_of(mapped: Mapped) -> bytes:
    return bytes(mapped.memory)


@pytest.mark.parametrize("count", [3, 40], ids=["a few", "many"])
@pytest.mark.parametrize("standing", [False, True], ids=["empty", "filled"])
def test_rewind_and_the_same_append_give_the_same_bytes_wherever_the_writer_stopped(
    make: Make, count: int, standing: bool
) -> None:
    added = batch(count, seed=2, first_offset=90_000, first_ms=BEGIN_MS + 90_000)
    whole, whole_bytes = make("whole")
    if standing:
        whole.append(*FIRST)
    before, noted = bytes_of(whole_bytes), whole.count
    whole.append(*added)
    expected = bytes_of(whole_bytes)

    index, mapped = make("stopped")
    total = count * 20 + SLOTS * 4 + HEADER.size
    stops = 0
    for written in range(total + 1):
        mapped.left = None
        mapped.put(0, before)
        mapped.left = written
        try:
            index.append(*added)
        except WriterStoppedError:
            stops += 1
        mapped.left = None
        index.rewind(noted)
        assert index.count == noted
        index.append(*added)
        assert bytes_of(mapped) == expected, f"stopped after {written} bytes"
    assert stops > count * 20


def test_a_rewind_that_was_stopped_is_repeated(make: Make) -> None:
    added = batch(40, seed=2, first_offset=90_000, first_ms=BEGIN_MS + 90_000)
    whole, whole_bytes = make("whole")
    whole.append(*FIRST)
    noted = whole.count
    whole.append(*added)
    expected = bytes_of(whole_bytes)

    index, mapped = make("stopped")
    for written in range(SLOTS * 4 + HEADER.size + 1):
        mapped.left = None
        mapped.put(0, expected)
        mapped.left = written
        try:
            index.rewind(noted)
        except WriterStoppedError:
            mapped.left = None
            index.rewind(noted)
        mapped.left = None
        index.append(*added)
        assert bytes_of(mapped) == expected


def test_a_few_and_many_write_the_same_bytes(make: Make) -> None:
    hashes, offsets, times = batch(60, seed=3, first_offset=0, first_ms=BEGIN_MS)
    many, many_bytes = make("many")
    many.append(hashes, offsets, times)
    few, few_bytes = make("few")
    for place in range(60):
        few.append(hashes[place : place + 1], offsets[place : place + 1], times[place : place + 1])
    assert bytes_of(many_bytes) == bytes_of(few_bytes)


def test_a_lookup_gives_each_entry_of_the_hash_newest_first(make: Make) -> None:
    index, _ = make("index")
    hashes, offsets, times = batch(150, seed=4, first_offset=0, first_ms=BEGIN_MS)
    index.append(hashes, offsets, times)
    for key_hash in range(14):
        expected = offsets[hashes == key_hash][::-1].tolist()
        assert index.lookup(key_hash, 0, 1 << 62, 1000) == expected
        assert index.lookup(key_hash, 0, 1 << 62, 2) == expected[:2]


def test_a_lookup_in_a_window_leaves_out_no_entry_of_it(make: Make) -> None:
    index, _ = make("index")
    hashes, offsets, times = batch(150, seed=4, first_offset=0, first_ms=BEGIN_MS)
    index.append(hashes, offsets, times)
    begin, end = BEGIN_MS + 12_345, BEGIN_MS + 31_001
    inside = (hashes == 5) & (times >= begin) & (times <= end)
    near = (hashes == 5) & (times >= begin - 1000) & (times <= end + 1000)
    found = set(index.lookup(5, begin, end, 1000))
    assert set(offsets[inside].tolist()) <= found <= set(offsets[near].tolist())


def test_a_forgotten_entry_is_not_found(make: Make) -> None:
    index, _ = make("index")
    hashes, offsets, times = batch(60, seed=5, first_offset=0, first_ms=BEGIN_MS)
    index.append(hashes[:20], offsets[:20], times[:20])
    index.append(hashes[20:], offsets[20:], times[20:])
    index.rewind(21)
    assert index.count == 21
    assert index.end_log_offset == offsets[19]
    assert times[19] <= index.end_ms < times[19] + 1000
    for key_hash in range(12):
        kept = offsets[:20][hashes[:20] == key_hash][::-1].tolist()
        assert index.lookup(key_hash, 0, 1 << 62, 1000) == kept


def test_a_chain_that_turns_back_ends(make: Make) -> None:
    index, mapped = make("index")
    index.append(*batch(30, seed=6, first_offset=0, first_ms=BEGIN_MS))
    mapped.assign(index.entries["previous"], range(1, 31), np.full(30, 30))
    for key_hash in range(12):
        assert len(index.lookup(key_hash, 0, 1 << 62, 1000)) <= 2


def test_the_header_tells_first_and_last_entry(make: Make) -> None:
    index, _ = make("index")
    assert (index.count, index.room) == (1, ENTRIES - 1)
    index.append(*FIRST)
    assert (index.begin_ms, index.end_ms) == (BEGIN_MS, int(FIRST[2][-1]))
    assert (index.begin_log_offset, index.end_log_offset) == (0, int(FIRST[1][-1]))
    assert index.slots_used == len(set((FIRST[0] % SLOTS).tolist()))
    assert (index.count, index.room) == (31, ENTRIES - 31)


def test_a_clock_that_stepped_back_makes_no_negative_seconds(make: Make) -> None:
    index, _ = make("index")
    index.append_few([(1, 0, BEGIN_MS), (1, 300, BEGIN_MS - 5000), (1, 600, BEGIN_MS + 2500)])
    assert index.entries["seconds"][1:4].tolist() == [0, 0, 2]
