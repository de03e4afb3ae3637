"""The lease is a kernel lock: one holder, one standby, and a change of holder without a gap."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.store.disk import Disk
from scheduler.lease import Lease

SECONDS_MAX = 10


@pytest.fixture
def stopped() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def lease(root: Path) -> Lease:
    return Lease(Disk(), root / "leases", "levels")


class Standby:
    """A lease that waits in a thread of its own."""

    def __init__(self, root: Path, stopped: threading.Event) -> None:
        self.lease = lease(root)
        assert self.lease.try_stand_by()
        self.won: bool | None = None
        self._thread = threading.Thread(target=self._wait, args=(stopped,))
        self._thread.start()

    def _wait(self, stopped: threading.Event) -> None:
        self.won = self.lease.wait(stopped)

    def join(self) -> None:
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()


def test_a_lease_has_one_holder(tmp_path: Path) -> None:
    first, second = lease(tmp_path), lease(tmp_path)
    assert first.try_take()
    assert not second.try_take()
    first.give()
    assert second.try_take()


def test_a_lease_has_one_standby(tmp_path: Path, stopped: threading.Event) -> None:
    holder = lease(tmp_path)
    assert holder.try_take()
    standby = Standby(tmp_path, stopped)
    assert not lease(tmp_path).try_stand_by()
    assert holder.has_standby()
    stopped.set()
    standby.join()
    assert standby.won is False
    assert not holder.has_standby()


def test_a_standby_takes_over_as_soon_as_the_holder_gives(
    tmp_path: Path, stopped: threading.Event
) -> None:
    holder = lease(tmp_path)
    assert holder.try_take()
    standby = Standby(tmp_path, stopped)
    holder.give()
    standby.join()
    assert standby.won is True
    assert not holder.try_take()
    assert not standby.lease.has_standby()
    standby.lease.give()


def test_a_standby_that_stopped_takes_nothing_later(
    tmp_path: Path, stopped: threading.Event
) -> None:
    holder = lease(tmp_path)
    assert holder.try_take()
    standby = Standby(tmp_path, stopped)
    stopped.set()
    standby.join()
    holder.give()
    third = lease(tmp_path)
    assert _taken_within(third)


def test_a_standby_that_stopped_can_stand_by_again(
    tmp_path: Path, stopped: threading.Event
) -> None:
    holder = lease(tmp_path)
    assert holder.try_take()
    standby = Standby(tmp_path, stopped)
    stopped.set()
    standby.join()
    holder.give()
    assert standby.lease.try_stand_by()
    assert standby.lease.wait(threading.Event())


def _taken_within(taker: Lease) -> bool:
    """An abandoned waiter may hold the lock for an instant before it lets go."""
    pause = threading.Event()
    return any(taker.try_take() or pause.wait(0.01) for _ in range(SECONDS_MAX * 100))
