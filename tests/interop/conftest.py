"""What all interop tests share: they need the original, and say what is missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import rocketmq


@pytest.fixture(scope="session")
def original() -> None:
    """Skips without Java, Maven or the network."""
    reason = rocketmq.why_not()
    if reason is not None:
        pytest.skip(f"RocketMQ cannot be had here: {reason}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("interop")
    return path


@pytest.fixture(scope="module")
def cluster(original: None, folder: Path) -> Iterator[rocketmq.Cluster]:  # noqa: ARG001
    with rocketmq.cluster(folder) as running:
        yield running
