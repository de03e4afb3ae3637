"""Stores to read: one that the real engine wrote, and those of a real broker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.archives import unpack_archive
from tests.support.loglines import LivedStore

ARCHIVES = Path(__file__).parents[2] / "data" / "rocketmq-5.3.3"


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[LivedStore]:
    store = LivedStore.make(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture(scope="session")
def broker_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    def one(name: str) -> Path:
        directory = tmp_path_factory.getbasetemp() / "brokers" / name
        if not directory.exists():
            directory.mkdir(parents=True)
            unpack_archive(ARCHIVES / f"{name}.tar.xz", directory)
        return directory / name / "store"

    return one
