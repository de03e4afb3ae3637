"""A small real store under a clock that is moved by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.store import Sizes, Store, StoreSettings
from queues.store.levels import LevelTable
from tests.support.clock import ManualClock

LEVELS = "1s 5s 10s 30s"
SIZES = Sizes(
    segment_bytes=4 << 20,
    consume_queue_units=10_000,
    index_slots=1_000,
    index_entries=20_000,
    timer_log_bytes=1 << 20,
    timer_window_slots=3_600,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path, clock: ManualClock) -> Iterator[Store]:
    settings = StoreSettings(sizes=SIZES, levels=LevelTable.parse(LEVELS), ballast_bytes=1 << 20)
    with Store.open(root, settings, clock=clock) as opened:
        yield opened
