"""The stores of a real RocketMQ 5.3.3 broker, read to the last record, unit, slot and entry."""

import base64
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from queues.store.disk import Disk
from queues.store.hashes import index_hash, tags_code
from queues.store.inspection.configs import delay_offsets, read_checkpoint, read_configs
from queues.store.inspection.dump import dump_entries, dump_records, dump_slots, dump_units
from queues.store.inspection.entries import open_indexes
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout, find_layout
from queues.store.inspection.timer import TimerFiles
from queues.store.inspection.verify import verify_store
from queues.store.levels import LevelTable
from queues.store.settings import DEFAULT_LEVELS
from queues.store.timerunits import MAGIC_ROLL, wheel_index

#: A client that reads a record back clears this bit: it has decompressed the body.
COMPRESSED = 1

Broker = Any


def layout_of(broker: Broker) -> Layout:
    return find_layout(Disk(), broker.root)


def records_of(broker: Broker) -> dict[int, dict[str, Any]]:
    report = Report()
    records = {one["commitlog_offset"]: one for one in dump_records(layout_of(broker), report)}
    assert report.sound
    return records


def digest_of(root: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in root.rglob("*")
    }


def test_every_record_is_what_the_brokers_client_read(broker: Broker) -> None:
    records = records_of(broker)
    assert len(records) == {"clean": 181, "crashed": 178, "rolled": 30}[broker.name]
    assert broker.expected.keys() <= records.keys()
    for offset, told in broker.expected.items():
        found = dict(records[offset])
        body = base64.b64decode(found.pop("body_base64"))
        found["sys_flag"] &= ~COMPRESSED
        expected = dict(told)
        body_hex = expected.pop("body_hex", None)
        assert body_hex is None or body == bytes.fromhex(body_hex)
        assert found == expected


def test_the_client_missed_only_what_was_written_after_it_had_read(broker: Broker) -> None:
    records = records_of(broker)
    read_until_ms = max(record["store_timestamp"] for record in broker.expected.values())
    for offset in records.keys() - broker.expected.keys():
        assert records[offset]["store_timestamp"] > read_until_ms


def test_everything_sent_is_where_the_broker_said(broker: Broker) -> None:
    by_id = {record["offset_msg_id"]: record for record in records_of(broker).values()}
    for sent in broker.sent:
        offset_ids = [one for one in (sent.get("offset_msg_id") or "").split(",") if one]
        for number, offset_id in enumerate(offset_ids):
            record = by_id[offset_id]
            if len(offset_ids) == 1:
                assert record["msg_id"] == sent["uniq_key"]
            # What waits lies in a queue of its holding topic; the client is told its own.
            queue = int(record["properties"].get("REAL_QID", record["queue"]))
            place = (queue, record["queue_offset"])
            assert place == (sent["queue"], sent["queue_offset"] + number)
    assert any("," in (sent.get("offset_msg_id") or "") for sent in broker.sent) == (
        broker.name != "rolled"
    )


def test_every_unit_leads_to_its_record_with_the_tags_code(broker: Broker) -> None:
    records, levels = records_of(broker), LevelTable.parse(DEFAULT_LEVELS)
    units = [unit for unit in dump_units(layout_of(broker), Report()) if not unit["blank"]]
    for unit in units:
        record = records.pop(unit["commitlog_offset"])
        assert (unit["topic"], unit["queue"]) == (record["topic"], record["queue"])
        assert (unit["queue_offset"], unit["size"]) == (
            record["queue_offset"],
            record["store_size"],
        )
        properties = record["properties"]
        code = tags_code(properties.get("TAGS"))
        if record["topic"] == "SCHEDULE_TOPIC_XXXX":
            code = levels.due_ms(int(properties["DELAY"]), record["store_timestamp"])
            assert unit["queue"] == int(properties["DELAY"]) - 1
        assert unit["tags_code"] == code
    # Only a half message's rollback and the like have no unit.
    assert all(record["sys_flag"] & 0xC in (0x4, 0xC) for record in records.values())


def test_every_index_entry_is_a_key_of_its_record(broker: Broker) -> None:
    records = records_of(broker)
    entries = list(dump_entries(layout_of(broker), Report()))
    assert entries
    for entry in entries:
        record = records[entry["commitlog_offset"]]
        properties = record["properties"]
        keys = [properties["UNIQ_KEY"], *properties.get("KEYS", "").split(" ")]
        assert entry["key_hash"] in {index_hash(record["topic"], key) for key in keys if key}
        assert 0 <= record["store_timestamp"] - entry["time_ms"] < 1000


def test_a_lookup_finds_what_the_client_sent(broker: Broker) -> None:
    records = records_of(broker)
    indexes = open_indexes(layout_of(broker), Report())
    begin = min(index.file.begin_log_offset for index in indexes)
    looked_up = 0
    for offset, record in records.items():
        properties = record["properties"]
        if offset < begin or "UNIQ_KEY" not in properties:
            continue
        for key in [properties["UNIQ_KEY"], *properties.get("KEYS", "").split(" ")]:
            if key:
                key_hash = index_hash(record["topic"], key)
                stored_ms = record["store_timestamp"]
                found = [
                    place
                    for index in indexes
                    for place in index.file.lookup(key_hash, stored_ms, stored_ms, 64)
                ]
                assert offset in found
                looked_up += 1
    assert looked_up >= 50


def test_the_broker_was_left_with_the_waiting_timed_messages_in_their_slots(
    broker: Broker,
) -> None:
    layout, records = layout_of(broker), records_of(broker)
    files = TimerFiles(layout)
    assert files.precision_ms == 1000
    assert files.slots is not None
    assert len(files.slots) == 2 * 604_800
    check = files.check()
    assert check is not None
    linked = 0
    for slot in dump_slots(layout, Report()):
        assert slot["slot"] == wheel_index(slot["time_ms"], 1000, 604_800)
        assert slot["units"][0]["position"] == slot["last"]
        for unit in slot["units"]:
            record = records[unit["commitlog_offset"]]
            assert record["topic"] == "rmq_sys_wheel_timer"
            assert unit["size"] == record["store_size"]
            assert unit["written_ms"] + unit["delay_ms"] == slot["time_ms"]
            if not unit["magic"] & MAGIC_ROLL:
                assert int(record["properties"]["TIMER_OUT_MS"]) == slot["time_ms"]
        linked += len(slot["units"])
    assert linked == sum(file.count for file in files.log)
    assert check.flushed_position <= sum(file.count for file in files.log) * 52


def test_every_record_of_the_timer_topic_is_in_the_timer_log(broker: Broker) -> None:
    timed = {
        offset
        for offset, record in records_of(broker).items()
        if record["topic"] == "rmq_sys_wheel_timer"
    }
    linked = {
        unit["commitlog_offset"]
        for slot in dump_slots(layout_of(broker), Report())
        for unit in slot["units"]
    }
    assert linked <= timed
    late = timed - linked
    assert len(late) <= 2  # What was late for its slot never went through the wheel.


def test_the_small_files_are_read_in_fastjsons_dialect(broker: Broker) -> None:
    layout = layout_of(broker)
    values = read_configs(layout)
    assert {"topics.json", "delayOffset.json", "consumerOffset.json"} <= values.keys()
    ends: dict[int, int] = defaultdict(int)
    for unit in dump_units(layout, Report()):
        if unit["topic"] == "SCHEDULE_TOPIC_XXXX":
            ends[unit["queue"] + 1] = unit["queue_offset"] + 1
    for level, offset in delay_offsets(values["delayOffset.json"]).items():
        assert 0 <= offset <= ends[level]
    checkpoint = read_checkpoint(layout)
    assert checkpoint is not None
    newest = max(record["store_timestamp"] for record in records_of(broker).values())
    assert 0 <= checkpoint.log_ms <= newest


def test_the_levels_that_the_clean_broker_delivered_are_in_delay_offset(unpack: Any) -> None:
    values = read_configs(layout_of(unpack("clean")))
    offsets = delay_offsets(values["delayOffset.json"])
    assert sorted(offsets) == list(range(1, 19))
    assert offsets[1] > 0
    assert json.dumps(values["consumerOffset.json"]["offsetTable"]["orders@billing"])


def test_a_brokers_store_is_sound(broker: Broker) -> None:
    layout, report = verify_store(broker.root)
    assert report.findings == []
    assert not layout.ours
    assert layout.closed == (broker.name != "crashed")
    assert report.counts["records"] == {"clean": 181, "crashed": 178, "rolled": 30}[broker.name]
    assert report.counts["fillers"] == (0 if broker.name == "rolled" else 1)
    assert report.counts["timer_units"] == (25 if broker.name == "rolled" else 20)


def test_reading_changes_not_a_byte_and_makes_no_file(unpack_fresh: Any) -> None:
    root = unpack_fresh("crashed")
    before = digest_of(root)
    verify_store(root)
    layout = find_layout(Disk(), root)
    for dump in (dump_units, dump_slots, dump_entries):
        assert list(dump(layout, Report()))
    assert list(dump_records(layout, Report()))
    assert digest_of(root) == before


@pytest.mark.parametrize("name", ["clean"])
def test_a_store_can_be_read_from_a_read_only_directory(unpack_fresh: Any, name: str) -> None:
    root = unpack_fresh(name)
    for path in root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    _, report = verify_store(root)
    for path in root.rglob("*"):
        path.chmod(0o755)
    assert report.sound
