"""The status page tells other processes about a loop, whole or not at all."""

import struct
import threading
from pathlib import Path

from queues.store.disk import Disk
from scheduler.limits import STATUS_FRESH_MS
from scheduler.status import PAGE_BYTES, LoopStatus, StatusPage, read_status

STATUS = LoopStatus(group="wheel", holder="scheduler-1", process_id=42, since_ms=7, moved=3)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    page = StatusPage(Disk(), tmp_path / "wheel.status")
    page.write(STATUS, 1_000)
    assert read_status(Disk(), tmp_path / "wheel.status", 1_000) == STATUS


def test_a_missing_page_is_nobody(tmp_path: Path) -> None:
    assert read_status(Disk(), tmp_path / "wheel.status", 1_000) is None


def test_a_cleared_page_is_nobody(tmp_path: Path) -> None:
    page = StatusPage(Disk(), tmp_path / "wheel.status")
    page.write(STATUS, 1_000)
    page.clear(1_001)
    assert read_status(Disk(), tmp_path / "wheel.status", 1_001) is None


def test_a_stale_page_is_nobody_alive(tmp_path: Path) -> None:
    path = tmp_path / "wheel.status"
    StatusPage(Disk(), path).write(STATUS, 1_000)
    assert read_status(Disk(), path, 1_000 + STATUS_FRESH_MS) == STATUS
    assert read_status(Disk(), path, 1_001 + STATUS_FRESH_MS) is None
    assert read_status(Disk(), path) == STATUS


def test_a_page_from_before_a_restart_of_the_machine_is_nobody_alive(tmp_path: Path) -> None:
    path = tmp_path / "wheel.status"
    StatusPage(Disk(), path).write(STATUS, 1_000_000)
    assert read_status(Disk(), path, 1_000) is None


def test_a_page_whose_writer_died_in_the_middle_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "wheel.status"
    StatusPage(Disk(), path).write(STATUS, 1_000)
    with path.open("r+b") as file:
        file.write(struct.pack("=q", 3))
    assert read_status(Disk(), path, 1_000) is None
    StatusPage(Disk(), path).write(STATUS, 1_000)
    assert read_status(Disk(), path, 1_000) == STATUS


def test_a_report_that_does_not_fit_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "wheel.status"
    large = LoopStatus(
        group="wheel", holder="a", process_id=1, since_ms=7, detail={"x": "y" * PAGE_BYTES}
    )
    StatusPage(Disk(), path).write(large, 1_000)
    status = read_status(Disk(), path, 1_000)
    assert status is not None
    assert status.detail == {}


def test_a_reader_never_sees_half_a_status(tmp_path: Path) -> None:
    path = tmp_path / "wheel.status"
    page = StatusPage(Disk(), path)
    page.write(STATUS, 1)
    done = threading.Event()
    seen: set[str] = set()

    def read() -> None:
        while not done.is_set():
            status = read_status(Disk(), path)
            if status is not None:
                seen.add(status.holder)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(2_000):
        holder = ("a" if turn % 2 else "b") * (1 + turn % 500)
        page.write(LoopStatus(group="wheel", holder=holder, process_id=1, since_ms=0), turn)
    done.set()
    reader.join()
    assert all(len(set(holder)) == 1 for holder in seen - {STATUS.holder})
