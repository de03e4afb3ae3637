"""Data directories with a control plane, ready for scheduler processes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.store import Store
from tests.support.schedulers import Schedulers, make_control_plane, redis_server, schedulers


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("control-plane")
    make_control_plane(data_dir)
    return data_dir


@pytest.fixture
def data_dir(control_plane: Path, tmp_path: Path) -> Iterator[Path]:
    copied = Path(shutil.copytree(control_plane, tmp_path / "var"))
    yield copied
    # A store takes hundreds of megabytes from its first message on.
    shutil.rmtree(copied, ignore_errors=True)


@pytest.fixture
def embedded(data_dir: Path) -> Iterator[Schedulers]:
    with schedulers(data_dir) as running:
        yield running


@pytest.fixture
def broker_url(tmp_path: Path) -> Iterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have redis-server (apt-get install redis-server)")
        pytest.skip("redis-server is not installed (apt-get install redis-server)")
    with redis_server(tmp_path, binary) as url:
        yield url


@pytest.fixture
def over_redis(data_dir: Path, broker_url: str) -> Iterator[Schedulers]:
    with schedulers(data_dir, broker_url) as running:
        yield running


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with Store.open(data_dir / "store") as opened:
        yield opened
