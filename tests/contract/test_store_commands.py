"""`store_verify` and `store_dump` keep what API.md says of them, over a real broker's store."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def run(*arguments: str) -> tuple[int, str, str]:
    out, error = StringIO(), StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=error)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), error.getvalue()
    return 0, out.getvalue(), error.getvalue()


def damage(root: Path) -> None:
    with (root / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(300 + 90)
        log.write(b"\xff\xff")


def test_a_sound_store_ends_with_exit_code_0(broker: Any) -> None:
    code, out, error = run("store_verify", str(broker.root))
    assert (code, error) == (0, "")
    assert "sound" in out


def test_a_damaged_store_ends_with_exit_code_1_and_names_file_and_offset(
    unpack_fresh: Any,
) -> None:
    root = unpack_fresh("clean")
    damage(root)
    code, out, _ = run("store_verify", str(root))
    assert code == 1
    assert f"{root / 'commitlog' / ('0' * 20)} at 300: the body's CRC differs" in out


def test_what_is_no_store_ends_with_exit_code_2_and_a_hint(tmp_path: Path) -> None:
    for command in ("store_verify", "store_dump"):
        code, out, error = run(command, str(tmp_path))
        assert code == 2
        assert out == ""
        assert "commitlog" in error
    assert list(tmp_path.iterdir()) == []


def test_verify_as_json_counts_records_units_slots_and_entries(unpack: Any) -> None:
    code, out, _ = run("store_verify", str(unpack("rolled").root), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["sound"]
    assert told["kind"] == "rocketmq"
    assert told["findings"] == []
    counts = told["counts"]
    assert (counts["records"], counts["units"]) == (30, 30)
    assert (counts["wheel_slots"], counts["timer_units"], counts["entries"]) == (13, 25, 60)


def test_verify_as_json_tells_path_and_offset_of_each_finding(unpack_fresh: Any) -> None:
    root = unpack_fresh("crashed")
    damage(root)
    code, out, _ = run("store_verify", str(root), "--json")
    told = json.loads(out)
    assert code == 1
    assert not told["sound"]
    first = told["findings"][0]
    assert (first["path"], first["offset"]) == (str(root / "commitlog" / ("0" * 20)), 300)


def test_a_dump_gives_one_object_a_record_in_log_order(unpack: Any) -> None:
    store = unpack("crashed")
    code, out, error = run("store_dump", str(store.root), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, error, len(records)) == (0, "", 178)
    offsets = [record["commitlog_offset"] for record in records]
    assert offsets == sorted(offsets)
    promised = {
        *("topic", "queue", "queue_offset", "commitlog_offset", "store_size", "sys_flag"),
        *("born_timestamp", "store_timestamp", "reconsume_times", "body_crc", "properties"),
        "body_base64",
    }
    assert all(promised <= record.keys() for record in records)


def test_a_dump_steps_over_damage_and_tells_it_on_standard_error(unpack_fresh: Any) -> None:
    root = unpack_fresh("clean")
    damage(root)
    code, out, error = run("store_dump", str(root), "--json")
    assert (code, len(out.splitlines())) == (1, 180)
    assert "at 300" in error


@pytest.mark.parametrize(
    ("option", "lines", "field"),
    [("--queues", 30, "tags_code"), ("--slots", 13, "units"), ("--index", 60, "key_hash")],
)
def test_a_dump_of_queues_slots_or_index_gives_each_of_them(
    unpack: Any, option: str, lines: int, field: str
) -> None:
    code, out, _ = run("store_dump", str(unpack("rolled").root), "--json", option)
    values = [json.loads(line) for line in out.splitlines()]
    assert (code, len(values)) == (0, lines)
    assert all(field in one for one in values)


def test_a_dump_for_the_eye_has_one_line_a_record(unpack: Any) -> None:
    code, out, _ = run("store_dump", str(unpack("rolled").root), "--limit", "3")
    assert (code, len(out.splitlines())) == (0, 3)
    assert "topic=rmq_sys_wheel_timer" in out


@pytest.mark.parametrize("command", ["store_verify", "store_dump"])
def test_a_path_longer_than_any_is_no_store(command: str) -> None:
    code, out, error = run(command, "/" + "x" * 5000)
    assert (code, out) == (2, "")
    assert "too long" in error


@pytest.mark.parametrize("limit", ["-1", "x", "1.5"])
def test_a_limit_that_is_no_number_of_lines_is_refused(limit: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="a number from 0 up"):
        call_command("store_dump", str(tmp_path), f"--limit={limit}")


@pytest.mark.parametrize(
    ("option", "place"),
    [
        (None, "commitlog/*"),
        ("--queues", "consumequeue/*/*/*"),
        ("--index", "index/*"),
        ("--slots", "timerlog/*"),
        ("--slots", "timerwheel"),
    ],
)
def test_a_directory_in_the_place_of_a_file_is_damage(
    unpack_fresh: Any, option: str | None, place: str
) -> None:
    root = unpack_fresh("rolled")
    path = min(root.glob(place))
    path.unlink()
    path.mkdir()
    code, out, _ = run("store_verify", str(root))
    assert code == 1
    assert f"DAMAGED {path}: " in out
    code, _, error = run("store_dump", str(root), *([option] if option else []))
    assert code == 1
    assert f"DAMAGED {path}: " in error
