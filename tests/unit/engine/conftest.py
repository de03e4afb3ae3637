"""Every test here runs over each engine."""

from collections.abc import Iterator

import pytest

from tests.support.wheelworld import WheelWorld


@pytest.fixture(params=["wheel", "rocksdb"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def world(engine: str) -> Iterator[WheelWorld]:
    with WheelWorld(engine=engine) as opened:
        opened.settle()
        yield opened
