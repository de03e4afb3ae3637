"""Small JSON files and their backups: there at every moment, and read in fastjson's dialect."""

from pathlib import Path
from typing import Any

import pytest

from queues.store.checkpoint import CHECKPOINT_BYTES, StoreCheckpoint
from queues.store.configfiles import load_with_backup, read_json_lenient, save_with_backup
from queues.store.disk import Disk
from queues.store.errors import ConfigCorrupt


class StoppedError(Exception):
    """The writer is gone."""


class StoppingDisk(Disk):
    """A disk whose writer stops before one of its replacements."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def replace(self, path: Path, data: bytes) -> None:
        if self._left == 0:
            raise StoppedError
        self._left -= 1
        super().replace(path, data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "delayOffset.json"


def backup(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"offsetTable":{3:2,4:1}}', {"offsetTable": {"3": 2, "4": 1}}),
        ('{\n\t"offsetTable":{1:8,2:5\n\t}\n}', {"offsetTable": {"1": 8, "2": 5}}),
        ('{"a@b":{0:10, 1 :9}}', {"a@b": {"0": 10, "1": 9}}),
        ('{"a":"{3:2},\\"4:1"}', {"a": '{3:2},"4:1'}),
        ('{"a":[1,2,],}', {"a": [1, 2]}),
        ('\ufeff{"a":1}', {"a": 1}),
        ("{-1:2}", {"-1": 2}),
    ],
)
def test_fastjsons_dialect_is_understood(text: str, value: Any) -> None:
    assert read_json_lenient(text.encode()) == value


@pytest.mark.parametrize("text", ["{", "{a:1}", "{1:}", "", "nul", '{"a":1}}', "[" * 100_000])
def test_anything_else_is_corrupt(text: str) -> None:
    with pytest.raises(ConfigCorrupt):
        read_json_lenient(text.encode())


def test_what_was_saved_is_loaded_and_what_was_there_is_the_backup(path: Path) -> None:
    save_with_backup(Disk(), path, {"offsetTable": {"1": 1}})
    save_with_backup(Disk(), path, {"offsetTable": {"1": 2}})
    assert load_with_backup(Disk(), path) == {"offsetTable": {"1": 2}}
    assert read_json_lenient(backup(path).read_bytes()) == {"offsetTable": {"1": 1}}


@pytest.mark.parametrize("content", [None, b"", b"\0" * 64, b'{"offsetTable":{1:'])
def test_the_backup_stands_in_for_a_missing_empty_or_damaged_file(
    path: Path, content: bytes | None
) -> None:
    backup(path).write_bytes(b'{"offsetTable":{1:7}}')
    if content is not None:
        path.write_bytes(content)
    assert load_with_backup(Disk(), path) == {"offsetTable": {"1": 7}}


def test_without_both_nothing_is_loaded(path: Path) -> None:
    assert load_with_backup(Disk(), path) is None
    path.touch()
    backup(path).touch()
    assert load_with_backup(Disk(), path) is None


def test_a_damaged_file_without_a_readable_backup_is_told(path: Path) -> None:
    path.write_bytes(b"{")
    with pytest.raises(ConfigCorrupt) as refused:
        load_with_backup(Disk(), path)
    assert refused.value.path == path


@pytest.mark.parametrize("after", [0, 1])
def test_a_save_that_stopped_leaves_the_last_value(path: Path, after: int) -> None:
    save_with_backup(Disk(), path, {"value": 1})
    save_with_backup(Disk(), path, {"value": 2})
    with pytest.raises(StoppedError):
        save_with_backup(StoppingDisk(after), path, {"value": 3})
    assert load_with_backup(Disk(), path) == {"value": 2}
    assert [one.name for one in sorted(path.parent.iterdir())] == [path.name, backup(path).name]


def test_a_checkpoint_is_4096_bytes_of_five_longs(tmp_path: Path) -> None:
    checkpoint = StoreCheckpoint(5000, 4000, 3000, 0, 300)
    checkpoint.save(Disk(), tmp_path / "checkpoint")
    data = (tmp_path / "checkpoint").read_bytes()
    assert len(data) == CHECKPOINT_BYTES == 4096
    assert data[:40] == b"".join(value.to_bytes(8, "big") for value in (5000, 4000, 3000, 0, 300))
    assert not any(data[40:])
    assert StoreCheckpoint.load(Disk(), tmp_path / "checkpoint") == checkpoint


def test_a_missing_checkpoint_says_nothing(tmp_path: Path) -> None:
    assert StoreCheckpoint.load(Disk(), tmp_path / "checkpoint") == StoreCheckpoint()


def test_the_safe_time_of_a_checkpoint_is_three_seconds_before_the_smaller_one() -> None:
    assert StoreCheckpoint(10_000, 8000, 1).min_ms == 5000
    assert StoreCheckpoint(10_000, 2000).min_ms == 0
