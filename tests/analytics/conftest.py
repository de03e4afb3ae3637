"""One Spark session for all tests of a process: starting one costs seconds."""

import logging
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from analytics.java import JavaMissing, find_java_home
from tests.support.archives import unpack_archive
from tests.support.loglines import LivedStore

#: Of tests: one task at a time needs no second core, and one shuffle partition no exchange.
SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep Spark's tests in one process of those that run side by side: one session for all."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


def java_or_skip(place: Path) -> None:
    """Have Spark find a Java; without one, skip on a laptop and fail in CI."""
    missing = find_spec("pyspark") is None and "the analytics requirements are not installed"
    if not missing:
        try:
            if home := find_java_home(place):
                os.environ["JAVA_HOME"] = home
        except JavaMissing as error:
            missing = str(error)
    if missing:
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    java_or_skip(tmp_path_factory.getbasetemp() / "java")


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:  # noqa: ARG001 (found before the session starts)
    # What workers import must be on their path, and they inherit it from here.
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(one for one in paths if one)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from analytics.session import open_session  # noqa: PLC0415 (where there is no Spark, skip)

    logging.getLogger("py4j").setLevel(logging.WARNING)
    session = open_session("tests", SETTINGS)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[LivedStore]:
    store = LivedStore.make(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture(scope="session")
def broker_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("broker")
    archive = Path(__file__).parents[1] / "data" / "rocketmq-5.3.3" / "clean.tar.xz"
    unpack_archive(archive, directory)
    return directory / "clean" / "store"
