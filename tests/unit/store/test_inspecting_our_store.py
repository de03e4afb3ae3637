"""Inspecting a store of ours: sound at work and at rest, and every kind of damage is seen."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from queues.store import Outgoing, Sizes, Store, StoreSettings
from queues.store.disk import UNFINISHED, Disk
from queues.store.index import IndexSet
from queues.store.indexfile import COUNT_AT, HEADER_BYTES
from queues.store.inspection.dump import dump_entries, dump_records, dump_slots, dump_units
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import check_segments, find_layout
from queues.store.inspection.verify import verify_store
from queues.store.timerunits import SLOT
from scheduler.wheel.step import WheelStep
from tests.support.clock import ManualClock

MIB = 1024 * 1024
SETTINGS = StoreSettings(
    sizes=Sizes(
        segment_bytes=MIB,
        consume_queue_units=300,
        index_slots=500,
        index_entries=2000,
        timer_log_bytes=5200,
        timer_window_slots=600,
    ),
    ballast_bytes=MIB,
)


def sound(root: Path) -> Report:
    _, report = verify_store(root)
    assert report.findings == []
    return report


def fill(store: Store, clock: ManualClock, look: Callable[[], object]) -> None:
    """Send messages of each kind, change some of them, and hand over what comes due."""
    chance = np.random.default_rng(1)
    wheel = WheelStep(store)
    wheel.open()
    for turn in range(6):
        now = clock.now_ms()
        ids = store.new_ids("orders", now, 60)
        delays = chance.integers(1, 30_000, 60).tolist()
        store.send(
            [
                Outgoing(
                    topic="orders", queue_id=number % 4, unique_id=ids[number], body=b"x" * 300,
                    born_ms=now, tag="paid" if number % 2 else None, keys=(f"key-{number}",),
                    level=number % 3 if number % 3 < 2 else 0,
                    due_ms=now + delays[number] * (60 if number % 5 == 0 else 1)
                    if number % 3 == 2 else None,
                )
                for number in range(60)
            ]
        )  # fmt: skip
        for message_id in ids[:12]:
            store.cancel(message_id, by="tester")
        for message_id in ids[:6]:
            store.restore(message_id, by="tester")
        for number, message_id in enumerate(ids[20:30]):
            store.move(message_id, now + 1000 * number + 500, by="tester")
        for _ in range(20):
            clock.advance(100)
            wheel.advance(clock.now_ms())
        if turn % 2:
            look()
    wheel.close()


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store that was worked in and closed, and was sound at every look on the way."""
    root = tmp_path_factory.mktemp("data") / "store"
    clock = ManualClock()
    with Store.open(root, SETTINGS, clock=clock) as store:
        fill(store, clock, lambda: sound(root))
    return root


@pytest.fixture
def root(worked: Path, tmp_path: Path) -> Path:
    return shutil.copytree(worked, tmp_path / "store")


def findings(root: Path) -> list[tuple[str, int | None, str]]:
    found = verify_store(root)[1].findings
    return [(str(one.path.relative_to(root)), one.offset, one.reason) for one in found]


def poke(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_store_of_ours_is_sound_at_work_and_at_rest(root: Path) -> None:
    report = sound(root)
    counts = report.counts
    assert counts["records"] == counts["units"] > 360
    assert counts["schedule_entries"] > counts["waiting"] > 0
    assert counts["timer_units"] > 99, "the TimerLog goes over several files"
    assert counts["wheel_slots"] == len(list(dump_slots(find_layout(Disk(), root), Report())))


def test_the_records_of_a_store_of_ours_tell_their_due_time(root: Path) -> None:
    records = list(dump_records(find_layout(Disk(), root), Report()))
    assert all(len(record["properties"]["PD_DUE"]) == 13 for record in records)
    assert all(next(iter(record["properties"])) == "PD_DUE" for record in records)


def test_files_that_are_being_written_are_not_looked_at(root: Path) -> None:
    before = sound(root).counts
    directories = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for directory in directories:
        (directory / f"timercheck.15549.1400310{UNFINISHED}").write_bytes(b"\x8b\xff half")
        (directory / "consumerOffset.json.tmp").write_bytes(b'{"offsetTa')
    assert sound(root).counts == before


def test_an_open_store_is_not_read_beyond_what_is_committed(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with Store.open(root, SETTINGS, clock=ManualClock()) as store:
        message_id = store.new_id("orders", 0)
        sent = Outgoing(topic="orders", queue_id=0, unique_id=message_id, body=b"", born_ms=0)
        store.send([sent])
        end = store.committed
        poke(root / "commitlog" / f"{0:020d}", end, b"\0\0\1\0half a record")
        assert sound(root).counts["records"] == 1
        poke(root / "commitlog" / f"{0:020d}", end, bytes(20))


def test_a_fresh_store_is_sound_and_empty(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store.open(root, SETTINGS, clock=ManualClock()).close()
    assert sound(root).counts["records"] == 0


def schedule_file(root: Path) -> Path:
    return root / "postdate" / "schedule" / "SCHEDULE_TOPIC_XXXX" / "0" / f"{0:020d}"


@pytest.mark.parametrize(
    ("at", "value", "word"),
    [
        pytest.param(0, 77_777, "no record lies", id="leads nowhere"),
        pytest.param(0, 1, "settled by 1", id="leads back"),
        pytest.param(8, 99, "due 99", id="another due time"),
    ],
)
def test_a_damaged_schedule_entry_is_told(root: Path, at: int, value: int, word: str) -> None:
    path = schedule_file(root)
    poke(path, 5 * 16 + at, value.to_bytes(8, "little"))
    found = findings(root)
    assert (str(path.relative_to(root)), 5 * 16) in [one[:2] for one in found]
    assert any(word in reason for _, _, reason in found)


@pytest.mark.parametrize("beyond", [0, 1 << 40], ids=["at the end", "far beyond it"])
def test_a_settled_word_beyond_the_end_is_damage_in_a_closed_store(root: Path, beyond: int) -> None:
    path, end = schedule_file(root), find_layout(Disk(), root).committed or 0
    poke(path, 5 * 16, (end + beyond).to_bytes(8, "little"))
    (root / "abort").write_bytes(b"")
    sound(root)  # A write that is going on, or was killed, leaves such words.
    (root / "abort").unlink()
    _, report = verify_store(root)
    assert [(one.path, one.offset) for one in report.findings] == [(path, 5 * 16)]
    assert f"a unit is settled by {end + beyond}" in report.findings[0].reason


@pytest.mark.parametrize(
    "name",
    [
        "consumequeue", "consumequeue/orders", "consumequeue/orders/0", "postdate/schedule",
        "postdate/schedule/SCHEDULE_TOPIC_XXXX", "postdate/schedule/SCHEDULE_TOPIC_XXXX/0",
        "index", "timerlog", "config",
    ],
)  # fmt: skip
def test_a_file_in_the_place_of_a_directory_is_told(root: Path, name: str) -> None:
    shutil.rmtree(root / name, ignore_errors=True)
    (root / name).write_bytes(b"")
    layout, report = verify_store(root)
    told = f"{root / name}: it is a file, not a directory"
    assert told in [str(one) for one in report.findings]
    dumped = Report()
    assert list(dump_records(layout, dumped))
    list(dump_units(layout, dumped))
    assert [str(one) for one in dumped.findings][:1] == [told]


def test_a_missing_schedule_table_is_told(root: Path) -> None:
    schedule_file(root).unlink()
    ((path, _, reason),) = findings(root)
    assert path == str(schedule_file(root).relative_to(root))
    assert "missing" in reason


def test_a_wheel_slot_that_leads_to_a_strange_unit_is_told(root: Path) -> None:
    path = root / "timerwheel"
    slots = np.fromfile(path, SLOT)
    first, second = np.flatnonzero(slots["time"])[[3, 4]].tolist()
    poke(path, first * 32 + 16, int(slots["last"][second]).to_bytes(8, "big"))
    assert ("timerwheel", first * 32) in [one[:2] for one in findings(root)]


@pytest.mark.parametrize(
    ("at", "data"),
    [
        pytest.param(0, bytes((0, 0, 0, 51)), id="its size"),
        pytest.param(4, bytes((0, 0, 0, 0, 0, 0, 0, 104)), id="its predecessor"),
        pytest.param(12, bytes((0, 0, 0, 99)), id="its magic"),
        pytest.param(28, bytes((0, 0, 0, 0, 0, 0, 0, 9)), id="its record"),
    ],
)
def test_a_damaged_timer_unit_is_told_with_file_and_offset(
    root: Path, at: int, data: bytes
) -> None:
    poke(root / "timerlog" / f"{0:020d}", 20 * 52 + at, data)
    assert (f"timerlog/{0:020d}", 20 * 52) in [one[:2] for one in findings(root)]


def test_a_record_whose_seal_was_lost_is_damage(root: Path) -> None:
    log = root / "commitlog" / f"{0:020d}"
    first = next(iter(dump_records(find_layout(Disk(), root), Report())))
    poke(log, first["store_size"] - 20, b"__CRC32?")
    assert (f"commitlog/{0:020d}", 0) in [one[:2] for one in findings(root)]


def test_a_hole_below_the_committed_end_is_damage_also_at_the_end(root: Path) -> None:
    last = list(dump_records(find_layout(Disk(), root), Report()))[-1]
    poke(root / "commitlog" / f"{0:020d}", last["commitlog_offset"], bytes(last["store_size"]))
    found = findings(root)
    assert (f"commitlog/{0:020d}", last["commitlog_offset"]) in [one[:2] for one in found]


@pytest.mark.parametrize("data", [None, b"\xff\xff\xff", b"{}", b'{"version": 1, "inches": 3}'])
def test_a_store_without_readable_sizes_is_damaged(root: Path, data: bytes | None) -> None:
    path = root / "postdate" / "format.json"
    path.unlink() if data is None else path.write_bytes(data)
    ((name, _, _),) = findings(root)
    assert name == "postdate/format.json"


@pytest.mark.parametrize("size", [0, 100])
def test_a_queue_table_too_short_for_its_queues_is_told(root: Path, size: int) -> None:
    os.truncate(root / "postdate" / "queues", size)
    ((name, _, reason),) = findings(root)
    assert name == "postdate/queues"
    assert f"{size} bytes" in reason


def test_a_blanked_entry_of_the_queue_table_is_told(root: Path) -> None:
    poke(root / "postdate" / "queues", 192, bytes(192))
    ((name, at, _),) = findings(root)
    assert (name, at) == ("postdate/queues", 192)


def test_an_empty_queue_table_of_a_store_without_queues_is_ordinary(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store.open(root, SETTINGS, clock=ManualClock()).close()
    os.truncate(root / "postdate" / "queues", 0)
    sound(root)


def test_an_empty_wheel_beside_a_timer_log_with_units_is_told(root: Path) -> None:
    os.truncate(root / "timerwheel", 0)
    ((name, _, reason),) = findings(root)
    assert name == "timerwheel"
    assert "0 bytes" in reason
    report = Report()
    assert list(dump_slots(find_layout(Disk(), root), report)) == []
    assert [one.path.name for one in report.findings] == ["timerwheel"]


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("at", "data"),
    [
        pytest.param(0, b"\xff" * HEADER_BYTES, id="a header of ff"),
        pytest.param(COUNT_AT, bytes(4), id="a count of 0"),
        pytest.param(COUNT_AT, b"\0\0\0\x05", id="a count too small"),
        pytest.param(COUNT_AT, b"\x7f\xff\xff\xff", id="a count too large"),
        pytest.param(COUNT_AT, b"\x80\0\0\0", id="a negative count"),
    ],
)
@pytest.mark.parametrize("number", [0, -1])
def test_a_damaged_header_of_an_index_file_is_told(
    root: Path, number: int, at: int, data: bytes, running: bool
) -> None:
    path = sorted((root / "index").iterdir())[number]
    if running:
        (root / "abort").touch()
    poke(path, at, data)
    assert (f"index/{path.name}", COUNT_AT) in [one[:2] for one in findings(root)]
    report = Report()
    list(dump_entries(find_layout(Disk(), root), report))
    assert path in [one.path for one in report.findings]


def test_an_index_whose_files_are_all_empty_is_told(root: Path) -> None:
    for path in (root / "index").iterdir():
        size = path.stat().st_size
        os.truncate(path, 0)
        os.truncate(path, size)
    assert any("is not in the index" in reason for _, _, reason in findings(root))


def test_what_an_append_left_in_the_index_when_it_was_killed_is_ordinary(root: Path) -> None:
    (root / "abort").touch()
    layout = find_layout(Disk(), root)
    sizes = SETTINGS.sizes
    index = IndexSet(Disk(), root / "index", sizes.index_slots, sizes.index_entries, write=True)
    file = index.file(index.names()[-1])
    path = root / "index" / str(index.names()[-1])
    count, header = file.count, path.read_bytes()[:HEADER_BYTES]
    later = np.array([layout.committed], dtype=np.int64)
    file.append(np.array([7], dtype=np.int32), later, np.array([2**40], dtype=np.int64))
    poke(path, 0, header)
    assert file.count == count
    assert file.slots[7] == count, "the slot leads beyond the count"
    sound(root)


def test_a_fresh_index_file_is_ordinary(root: Path) -> None:
    sizes = SETTINGS.sizes
    index = IndexSet(Disk(), root / "index", sizes.index_slots, sizes.index_entries, write=True)
    index.make_room(sizes.index_entries - 1, 2**41, index.names()[-1])
    before = sound(root).counts["entries"]
    index.file(index.names()[-1]).rewind(1)
    assert sound(root).counts["entries"] == before


def several_segments(root: Path) -> list[Path]:
    """Send until the log has three segments; their paths."""
    with Store.open(root, SETTINGS, clock=ManualClock()) as store:
        for _ in range(9):
            unique_id = store.new_id("orders", 0)
            body = bytes(range(256)) * 1000
            store.send(
                [Outgoing(topic="orders", queue_id=0, unique_id=unique_id, body=body, born_ms=0)]
            )
    paths = sorted((root / "commitlog").iterdir())
    assert len(paths) == 3
    return paths


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("empty", [False, True])
def test_missing_and_empty_segments_are_told_by_verify_and_dump(
    tmp_path: Path, number: int, empty: bool
) -> None:
    path = several_segments(tmp_path / "store")[number]
    sound(tmp_path / "store")
    os.truncate(path, 0) if empty else path.unlink()
    layout, report = find_layout(Disk(), tmp_path / "store"), Report()
    check_segments(layout, report)
    assert report.findings
    if empty or number != 1:
        assert path in [one.path for one in report.findings]
    dumped = Report()
    list(dump_records(layout, dumped))
    assert dumped.findings == report.findings
    assert {*report.findings} <= {*verify_store(tmp_path / "store")[1].findings}


def test_the_only_segment_missing_or_empty_is_told_by_a_dump(root: Path) -> None:
    path = root / "commitlog" / f"{0:020d}"
    for harm in (lambda: os.truncate(path, 0), path.unlink):
        harm()
        report = Report()
        assert list(dump_records(find_layout(Disk(), root), report)) == []
        assert [one.path for one in report.findings] == [path]
