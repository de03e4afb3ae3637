"""Stores that a real RocketMQ broker wrote, unpacked once a test session."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.archives import unpack_archive

ARCHIVES = Path(__file__).parents[1] / "data" / "rocketmq-5.3.3"
NAMES = ("clean", "crashed", "rolled")
#: Records of each CommitLog, as the README beside the archives tells.
RECORDS = {"clean": 181, "crashed": 178, "rolled": 30}


@dataclass(frozen=True, slots=True)
class BrokerStore:
    """One unpacked archive."""

    name: str
    #: The broker's root directory.
    root: Path
    #: Every record as the broker's own client read it back, by log offset.
    expected: dict[int, dict[str, Any]]
    #: What the client sent.
    sent: list[dict[str, Any]]


@pytest.fixture(scope="session")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BrokerStore]:
    unpacked: dict[str, BrokerStore] = {}

    def one(name: str) -> BrokerStore:
        if name not in unpacked:
            directory = tmp_path_factory.mktemp(name)
            unpack_archive(ARCHIVES / f"{name}.tar.xz", directory)
            home = directory / name
            expected = json.loads((home / "expected.json").read_text())
            sent = json.loads((home / "sent.json").read_text())
            by_offset = {record["commitlog_offset"]: record for record in expected}
            unpacked[name] = BrokerStore(name, home / "store", by_offset, sent)
        return unpacked[name]

    return one


@pytest.fixture(params=NAMES)
def broker(request: pytest.FixtureRequest, unpack: Callable[[str], BrokerStore]) -> BrokerStore:
    return unpack(request.param)


@pytest.fixture
def unpack_fresh(unpack: Callable[[str], BrokerStore], tmp_path: Path) -> Callable[[str], Path]:
    """Give a copy of a store that the test may damage."""

    def one(name: str) -> Path:
        source = unpack(name).root
        for path in sorted(source.rglob("*")):
            target = tmp_path / name / path.relative_to(source)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_sparse(path, target)
        return tmp_path / name

    return one


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without writing its zeros."""
    step = 1 << 20
    with source.open("rb") as read, target.open("wb") as write:
        while data := read.read(step):
            if data.count(0) == len(data):
                write.seek(len(data), 1)
            else:
                write.write(data)
        write.truncate(source.stat().st_size)
