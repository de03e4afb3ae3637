"""An export is the store as it stood: everything live, nothing else, in RocketMQ's formats."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Store
from queues.store.disk import Disk
from queues.store.export import freshlog
from queues.store.export.brokerfiles import broker_conf
from queues.store.export.destination import Destination, Exported, ExportedGroup, ExportedTopic
from queues.store.export.run import DirectoryNotEmpty, export_source, export_store
from queues.store.export.source import Source
from queues.store.inspection.dump import dump_records
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import find_layout
from queues.store.inspection.verify import verify_store
from queues.store.levels import DEFAULT_LEVELS, LevelTable
from queues.store.settings import StoreSettings
from tests.support.clock import ManualClock
from tests.support.storeworld import (
    SIZES,
    at_four,
    hand_over_due,
    lived,
    open_store,
    outgoing,
    send_level,
    send_timed,
)

LEVELS = LevelTable.parse(DEFAULT_LEVELS)


def destination(**fields: Any) -> Destination:
    told: dict[str, Any] = {
        "topics": {"orders": ExportedTopic(queues=2)},
        "groups": {"billing": ExportedGroup(topics=("orders",))},
        "floors": {},
        "levels": LEVELS,
    }
    return Destination(**told | fields)


def records(root: Path) -> list[dict[str, Any]]:
    """Every record of an export, after a look at all of it."""
    layout = find_layout(Disk(), root)
    report = Report()
    found = list(dump_records(layout, report))
    assert report.sound, report.findings
    positions: dict[tuple[str, int], int] = {}
    for record in found:
        queue = record["topic"], record["queue"]
        assert record["queue_offset"] == positions.get(queue, record["queue_offset"])
        positions[queue] = record["queue_offset"] + 1
    return found


def ids_in(found: list[dict[str, Any]], topic: str) -> set[str]:
    return {record["msg_id"] for record in found if record["topic"] == topic}


def waiting_ids(found: list[dict[str, Any]]) -> dict[str, int]:
    """What waits, and until when."""
    return {
        record["msg_id"]: int(record["properties"]["PD_DUE"])
        for record in found
        if record["topic"] in (SCHEDULE_TOPIC, TIMER_TOPIC)
    }


def by_state(store: Store, ids: list[str]) -> Mapping[str, set[str]]:
    states: dict[str, set[str]] = {}
    for message_id in ids:
        view = store.find(message_id)
        assert view is not None
        states.setdefault(view.state, set()).add(message_id)
    return states


@pytest.fixture(autouse=True)
def _small_segments(request: Any, monkeypatch: Any) -> None:
    """To search a whole gigabyte of nothing takes two seconds."""
    if "sparse" not in request.node.name:
        monkeypatch.setattr(freshlog, "SEGMENT_BYTES", 1 << 20)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Any:
    with open_store(tmp_path / "store", clock) as opened:
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_what_is_ready_and_what_waits_goes_along_and_nothing_else(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    ids = lived(store, clock)
    told = export_store(store.root, tmp_path / "out", destination())
    found = records(tmp_path / "out")
    states = by_state(store, ids)
    assert states["ready"] <= ids_in(found, "orders")
    assert set(waiting_ids(found)) == states["scheduled"]
    assert {record["topic"] for record in found} == {"orders", SCHEDULE_TOPIC, TIMER_TOPIC}
    assert told.kept["ready"] == len(states["ready"]) + 1
    assert told.left["parked"] == len(states["parked"]) == 1
    assert (told.damaged, sum(told.kept.values())) == (0, len(found))


def test_each_message_keeps_its_bytes_its_due_time_and_its_place(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    lived(store, clock)
    export_store(store.root, tmp_path / "out", destination())
    before = {
        (record["msg_id"], record["topic"]): record
        for record in dump_records(find_layout(Disk(), store.root), Report())
    }
    for record in records(tmp_path / "out"):
        old = before[record["msg_id"], record["topic"]]
        own = {"commitlog_offset", "queue_offset", "offset_msg_id", "properties"}
        assert {k: v for k, v in record.items() if k not in own} == {
            k: v for k, v in old.items() if k not in own
        }
        assert record["properties"] | {"__CRC32#": ""} == old["properties"] | {"__CRC32#": ""}
        if record["topic"] == "orders":
            assert record["queue_offset"] == old["queue_offset"]


def test_the_held_queues_begin_at_0_and_the_segments_are_sparse_and_of_rocketmqs_size(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    lived(store, clock)
    export_store(store.root, tmp_path / "out", destination())
    firsts: dict[tuple[str, int], int] = {}
    for record in records(tmp_path / "out"):
        firsts.setdefault((record["topic"], record["queue"]), record["queue_offset"])
    held = {offset for (topic, _), offset in firsts.items() if topic != "orders"}
    assert held == {0}
    (segment,) = (tmp_path / "out" / "commitlog").iterdir()
    assert (segment.name, segment.stat().st_size) == ("0" * 20, 1 << 30)
    assert segment.stat().st_blocks * 512 < 1 << 20


def test_our_own_inspection_finds_the_export_sound(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    lived(store, clock)
    export_store(store.root, tmp_path / "out", destination())
    (tmp_path / "out" / "consumequeue").mkdir()
    layout, report = verify_store(tmp_path / "out")
    assert not layout.ours
    assert report.sound, report.findings


def test_a_queue_goes_on_at_its_own_first_offset_and_groups_where_they_stood(
    store: Store, tmp_path: Path
) -> None:
    store.send([outgoing(store, queue_id=0) for _ in range(10)])
    store.send([outgoing(store, queue_id=1) for _ in range(4)])
    topics = {"orders": ExportedTopic(queues=3, first_offsets={0: 6})}
    floors = {("billing", "orders", 0): 8, ("billing", "orders", 1): 99, ("other", "orders", 0): 1}
    told = export_store(store.root, tmp_path / "out", destination(topics=topics, floors=floors))
    found = records(tmp_path / "out")
    assert [record["queue_offset"] for record in found if record["queue"] == 0] == [6, 7, 8, 9]
    assert told.left["expired"] == 6
    offsets = json.loads((tmp_path / "out/config/consumerOffset.json").read_text())
    assert offsets["offsetTable"] == {"orders@billing": {"0": 8, "1": 4, "2": 0}}


def test_a_level_message_that_was_promised_another_time_goes_along_as_a_timed_one(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    first, second = send_level(store, 1), send_level(store, 2)
    clock.step_back(3_600_000)
    early = send_level(store, 1)
    levels = LevelTable.parse("1s 7s")
    export_store(store.root, tmp_path / "out", destination(levels=levels))
    found = records(tmp_path / "out")
    assert ids_in(found, SCHEDULE_TOPIC) == {first}
    assert ids_in(found, TIMER_TOPIC) == {second, early}
    for record in found:
        properties = record["properties"]
        assert ("DELAY" in properties) == (record["topic"] == SCHEDULE_TOPIC)
        if record["topic"] == TIMER_TOPIC:
            due_ms = int(properties["PD_DUE"])
            assert int(properties["TIMER_DELIVER_MS"]) == due_ms
            assert int(properties["TIMER_OUT_MS"]) == (due_ms - 1) // 1000 * 1000
            assert (properties["REAL_TOPIC"], properties["TAGS"]) == ("orders", "TagA")


def test_a_slot_width_that_rocketmq_does_not_know_becomes_a_second(
    clock: ManualClock, tmp_path: Path
) -> None:
    sizes = StoreSettings(ballast_bytes=65_536, sizes=type(SIZES)(
        segment_bytes=16_384, consume_queue_units=100, index_slots=64, index_entries=4_000,
        timer_log_bytes=5_200, timer_precision_ms=50,
    ))  # fmt: skip
    with open_store(tmp_path / "store", clock, settings=sizes) as store:
        send_timed(store, 1_234)
        export_store(store.root, tmp_path / "out", destination(precision_ms=50))
    (record,) = records(tmp_path / "out")
    assert int(record["properties"]["TIMER_OUT_MS"]) % 1000 == 0
    assert "timerPrecisionMs=1000" in (tmp_path / "out/broker.conf").read_text()


def test_messages_for_a_topic_that_was_deleted_stay_behind_and_are_counted(
    store: Store, tmp_path: Path
) -> None:
    send_timed(store, 1_000, topic="gone")
    store.send([outgoing(store, topic="gone"), outgoing(store)])
    told = export_store(store.root, tmp_path / "out", destination())
    assert told.left["orphaned"] == 2
    assert {record["topic"] for record in records(tmp_path / "out")} == {"orders"}


def test_retries_that_are_ready_and_that_wait_go_along_with_their_group(
    store: Store, tmp_path: Path
) -> None:
    store.send([outgoing(store, topic="%RETRY%billing", queue_id=0)])
    waiting = send_level(store, 3, topic="%RETRY%billing", queue_id=0)
    store.send([outgoing(store, topic="%RETRY%dropped", queue_id=0)])
    floors = {("billing", "%RETRY%billing", 0): 1}
    told = export_store(store.root, tmp_path / "out", destination(floors=floors))
    found = records(tmp_path / "out")
    assert (told.kept["retrying"], told.left["orphaned"]) == (1, 1)
    assert set(waiting_ids(found)) == {waiting}
    topics = json.loads((tmp_path / "out/config/topics.json").read_text())["topicConfigTable"]
    assert {"%RETRY%billing", "%DLQ%billing", "orders"} == topics.keys()
    offsets = json.loads((tmp_path / "out/config/consumerOffset.json").read_text())
    assert offsets["offsetTable"]["%RETRY%billing@billing"] == {"0": 1}


def test_dead_letters_go_along_from_offset_0(store: Store, tmp_path: Path) -> None:
    letters = [outgoing(store, topic="%DLQ%billing", queue_id=0) for _ in range(3)]
    store.send(letters)
    told = export_store(store.root, tmp_path / "out", destination())
    assert told.kept["dead"] == 3
    found = records(tmp_path / "out")
    assert [record["queue_offset"] for record in found] == [0, 1, 2]


def test_what_changes_after_the_moment_does_not_change_the_export(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    handed, cancelled, moved = (send_timed(store, 5_000) for _ in range(3))
    away, back, gone = (send_timed(store, 9_000) for _ in range(3))
    for message_id in (away, gone):
        store.cancel(message_id, by="tester")
    source = Source(store.root)
    for message_id in (cancelled, back):
        store.cancel(message_id, by="tester")
    for message_id in (away, back):
        assert store.restore(message_id, by="tester").outcome == "restored"
    store.restore(gone, by="tester")
    store.cancel(gone, by="tester")
    store.move(moved, clock.now_ms() + 60_000, by="tester")
    clock.advance(6_000)
    hand_over_due(store)
    send_timed(store, 1_000)
    export_source(source, tmp_path / "out", destination())
    found = records(tmp_path / "out")
    assert set(waiting_ids(found)) == {handed, cancelled, moved, away, back}
    assert ids_in(found, "orders") == set()


def test_segments_that_retention_removes_meanwhile_are_still_read(
    clock: ManualClock, tmp_path: Path
) -> None:
    settings = StoreSettings(sizes=SIZES, ballast_bytes=65_536, retention_ms=3_600_000)
    with open_store(tmp_path / "store", clock, settings=settings) as store:
        ready = [outgoing(store, body_bytes=500) for _ in range(60)]
        waits = send_timed(store, 30 * 86_400_000)
        store.send(ready)
        source = Source(store.root)
        for _ in range(3):
            clock.advance(2 * 3_600_000)
            at_four(clock)
            for _ in range(50):
                store.housekeep(clock.now_ms())
            store.send([outgoing(store, body_bytes=500) for _ in range(60)])
        assert store.queue_bounds("orders", 0).min_offset > 0
        export_source(source, tmp_path / "out", destination())
    found = records(tmp_path / "out")
    assert ids_in(found, "orders") == {message.unique_id for message in ready}
    assert set(waiting_ids(found)) == {waits}


def test_a_hole_that_damage_left_is_closed_and_groups_move_with_it(
    store: Store, tmp_path: Path
) -> None:
    store.send([outgoing(store, queue_id=0) for _ in range(6)])
    unit = store.read_units("orders", 0, 2, 1)
    with (store.root / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(int(unit["log_offset"][0]) + 90)
        log.write(b"\xff")
    floors = {("billing", "orders", 0): 4}
    told = export_store(store.root, tmp_path / "out", destination(floors=floors))
    assert told.damaged == 1
    found = records(tmp_path / "out")
    assert [record["queue_offset"] for record in found] == [0, 1, 2, 3, 4]
    offsets = json.loads((tmp_path / "out/config/consumerOffset.json").read_text())
    assert offsets["offsetTable"]["orders@billing"]["0"] == 3


def test_a_directory_that_holds_anything_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(DirectoryNotEmpty):
        export_store(store.root, tmp_path / "out", destination())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_progress_ends_with_all_of_the_log(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    lived(store, clock)
    told: list[tuple[int, int]] = []
    result = export_store(
        store.root, tmp_path / "out", destination(), lambda done, total: told.append((done, total))
    )
    assert isinstance(result, Exported)
    assert told[-1] == (store.committed, store.committed)
    assert told == sorted(told)


def test_the_log_rolls_over_to_a_new_segment_with_a_filler(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(freshlog, "SEGMENT_BYTES", 4096)
    clock = ManualClock()
    with open_store(tmp_path / "store", clock) as store:
        sent = [outgoing(store, queue_id=0) for _ in range(60)]
        store.send(sent)
        export_store(store.root, tmp_path / "out", destination())
    found = records(tmp_path / "out")
    assert [record["msg_id"] for record in found] == [message.unique_id for message in sent]
    assert len(list((tmp_path / "out" / "commitlog").iterdir())) > 3


def test_a_directory_is_told_as_java_reads_it() -> None:
    text = broker_conf(Path("/mnt/a\\b\n/börse 𝄞"), destination())
    assert "storePathRootDir=/mnt/a\\\\b\\u000a/b\\u00f6rse \\ud834\\udd1e\n" in text
