"""Platforms: `up` as anyone runs it, on a free port and a data directory of its own."""

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from queues.demo.client import Client
from queues.demo.launching import Running, launched


def make_topic(running: Running, topic: str, *, queues: int) -> None:
    """Make a topic: a hand-over to one that the platform does not know is parked."""
    client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
    client.expect("PUT", f"/api/v1/topics/{topic}", {"queues": queues}, statuses=(200, 201))
    client.close()


@contextlib.contextmanager
def running_platform(settings: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A platform with an empty data directory, gone at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="postdate-") as folder,
        launched(Path(folder) / "var", settings=settings) as running,
    ):
        yield running
