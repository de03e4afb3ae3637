"""Stopping: Ctrl-C and SIGTERM set an event, so that what a command began is ended properly."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_at_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopping.set()) for number in numbers]
    try:
        yield stopping
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
