"""ConsumeQueue files: room is made for just the units that will be written."""

from pathlib import Path

import numpy as np
import pytest

from queues.store import consumequeue
from queues.store.consumequeue import DISK_UNIT, UNIT_BYTES, ConsumeQueues
from queues.store.disk import File
from tests.support.faulty_disk import UnsyncedDisk, UnsyncedFile

PAGE = 4096
FILE_UNITS = 300


class RecordingFile(UnsyncedFile):
    """Remembers which pages got blocks."""

    pages: set[tuple[str, int]]

    def allocate(self, offset: int, size_bytes: int) -> None:
        numbers = range(offset // PAGE, -(-(offset + size_bytes) // PAGE))
        self.pages.update((self.path.name, number) for number in numbers)
        super().allocate(offset, size_bytes)


class RecordingDisk(UnsyncedDisk):
    """A disk that says which pages have blocks."""

    def __init__(self) -> None:
        self.pages: set[tuple[str, int]] = set()

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> File:
        plain = super().open(path, create=create, write=write)
        file = RecordingFile(path, plain._descriptor)
        file.pages = self.pages
        return file


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def queues(disk: RecordingDisk, root: Path) -> ConsumeQueues:
    """As a process sees them that has just started."""
    return ConsumeQueues(disk, root, FILE_UNITS, write=True)


def test_the_first_batch_of_a_process_finds_room_for_all_its_units(
    disk: RecordingDisk, tmp_path: Path
) -> None:
    queues(disk, tmp_path).make_room("orders", 0, 10, 800)
    wanted = {
        (f"{unit // FILE_UNITS * FILE_UNITS * UNIT_BYTES:020d}", at // PAGE)
        for unit in range(10, 800)
        for at in (unit % FILE_UNITS * UNIT_BYTES, (unit % FILE_UNITS + 1) * UNIT_BYTES - 1)
    }
    assert wanted <= disk.pages


def test_a_small_queue_takes_one_page_and_a_long_one_asks_rarely(
    disk: RecordingDisk, tmp_path: Path
) -> None:
    found = ConsumeQueues(disk, tmp_path, 300_000, write=True)
    found.make_room("orders", 0, 0, 1)
    assert disk.pages == {("0" * 20, 0)}
    found.make_room("orders", 0, 1, 5_000)
    assert disk.pages == {("0" * 20, page) for page in range(32)}


def test_a_new_unit_does_not_bring_back_a_file_that_retention_removed(
    disk: RecordingDisk, tmp_path: Path
) -> None:
    before = queues(disk, tmp_path)
    before.make_room("orders", 0, 0, 3 * FILE_UNITS)
    other = queues(disk, tmp_path)
    other.make_room("orders", 0, 3 * FILE_UNITS, 3 * FILE_UNITS + 1)
    other.remove_below("orders", 0, 3 * FILE_UNITS)
    kept = other.bases("orders", 0)
    assert kept == [3 * FILE_UNITS * UNIT_BYTES]
    for process in (before, queues(disk, tmp_path)):
        process.make_room("orders", 0, 3 * FILE_UNITS + 1, 3 * FILE_UNITS + 9)
        assert process.bases("orders", 0) == kept


def test_a_process_that_wrote_long_ago_does_not_fill_what_others_wrote_and_retention_removed(
    disk: RecordingDisk, tmp_path: Path
) -> None:
    idle = queues(disk, tmp_path)
    idle.make_room("orders", 0, 0, 1)
    busy = queues(disk, tmp_path)
    busy.make_room("orders", 0, 1, 5 * FILE_UNITS)
    busy.remove_below("orders", 0, 4 * FILE_UNITS)
    idle.make_room("orders", 0, 5 * FILE_UNITS - 1, 5 * FILE_UNITS + 1)
    assert idle.bases("orders", 0)[0] == 4 * FILE_UNITS * UNIT_BYTES


class TestScatteredUnits:
    """Units read at any offsets, from files that stay mapped."""

    def filled(self, disk: RecordingDisk, root: Path, files: int) -> ConsumeQueues:
        found = queues(disk, root)
        units = np.zeros(files * FILE_UNITS, DISK_UNIT)
        units["log_offset"] = np.arange(len(units))
        found.make_room("orders", 0, 0, len(units))
        found.write("orders", 0, 0, units.tobytes())
        return found

    def test_they_come_in_the_order_asked_for_across_files(
        self, disk: RecordingDisk, tmp_path: Path
    ) -> None:
        found = self.filled(disk, tmp_path, 3)
        wanted = np.random.default_rng(1).permutation(3 * FILE_UNITS)[:400]
        assert found.read_at("orders", 0, wanted)["log_offset"].tolist() == wanted.tolist()

    def test_what_was_written_after_the_first_read_is_seen(
        self, disk: RecordingDisk, tmp_path: Path
    ) -> None:
        found = self.filled(disk, tmp_path, 1)
        wanted = np.arange(0, FILE_UNITS, 2)
        found.read_at("orders", 0, wanted)
        unit = np.zeros(1, DISK_UNIT)
        unit["log_offset"] = 4711
        found.write_one("orders", 0, 8, unit.tobytes())
        assert found.read_at("orders", 0, wanted)["log_offset"][4] == 4711

    def test_a_removed_file_is_let_go(self, disk: RecordingDisk, tmp_path: Path) -> None:
        found = self.filled(disk, tmp_path, 2)
        wanted = np.arange(1, 2 * FILE_UNITS, 2)
        found.read_at("orders", 0, wanted)
        found.remove_below("orders", 0, FILE_UNITS)
        places = found.read_at("orders", 0, wanted)["log_offset"]
        assert not places[: FILE_UNITS // 2].any()
        assert places[FILE_UNITS // 2 :].tolist() == wanted[FILE_UNITS // 2 :].tolist()

    def test_no_more_files_stay_mapped_than_the_bound(
        self, disk: RecordingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(consumequeue, "MAPPED_QUEUE_FILES_MAX", 2)
        found = self.filled(disk, tmp_path, 5)
        wanted = np.arange(0, 5 * FILE_UNITS, 3)
        for _ in range(2):
            assert found.read_at("orders", 0, wanted)["log_offset"].tolist() == wanted.tolist()
        assert len(found._mapped) == 2
