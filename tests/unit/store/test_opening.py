"""Opening and leaving: what is refused, by name and with a hint, and who is in."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.store import Store
from queues.store.disk import Disk, FileLock
from queues.store.errors import (
    DiskFull,
    FormatDamaged,
    HeldByBroker,
    NetworkFileSystem,
    NotOurStore,
    StoreClosing,
    StoreForked,
    StoreVersionUnknown,
    WrongFileSize,
)
from tests.support.clock import ManualClock
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.invariants import assert_sound
from tests.support.storeworld import SETTINGS, open_store, outgoing, send_level, send_timed


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def names(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


# -- refusals -------------------------------------------------------------------------------------


def test_a_store_of_an_unknown_version_is_refused(root: Path, clock: ManualClock) -> None:
    open_store(root, clock).close()
    path = root / "postdate" / "format.json"
    path.write_text(json.dumps({"version": 99, "wheels": "square"}))
    with pytest.raises(StoreVersionUnknown, match=r"found=99.*Upgrade Postdate"):
        open_store(root, clock)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xff\xff", b"[]", b"7", b"{}", b"[[", b'{"version": 1, "unheard_of": 2}',
        b'{"version": 1, "segment_bytes": "much"}', b'{"version": 1, "segment_bytes": 0}',
    ],
)  # fmt: skip
def test_a_format_file_that_says_nothing_is_refused(
    root: Path, clock: ManualClock, data: bytes
) -> None:
    open_store(root, clock).close()
    (root / "postdate" / "format.json").write_bytes(data)
    with pytest.raises(FormatDamaged, match=r"format\.json.*from a backup") as refused:
        open_store(root, clock)
    assert "delete" not in refused.value.message


def test_our_store_without_its_format_file_is_not_taken_for_a_brokers(
    root: Path, clock: ManualClock
) -> None:
    with open_store(root, clock) as store:
        send_timed(store, 1_000)
    path = root / "postdate" / "format.json"
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(FormatDamaged, match=r"format\.json.*from a backup"):
        open_store(root, clock)
    assert not path.exists()
    path.write_bytes(data)
    open_store(root, clock).close()


def test_a_control_page_of_an_unknown_version_is_refused(root: Path, clock: ManualClock) -> None:
    open_store(root, clock).close()
    path = root / "postdate" / "control"
    path.write_bytes(b"PDCTRL99" + path.read_bytes()[8:])
    with pytest.raises(StoreVersionUnknown, match="PDCTRL99"):
        open_store(root, clock)


class Elsewhere(UnsyncedDisk):
    """A disk that is a network's."""

    def _mounts(self) -> Iterator[tuple[str, str]]:
        yield "/", "nfs4"


def test_a_network_file_system_is_refused_by_name_and_left_alone(
    root: Path, clock: ManualClock
) -> None:
    with pytest.raises(NetworkFileSystem, match=r"nfs4.*local disk"):
        open_store(root, clock, disk=Elsewhere())
    assert not root.exists()


@pytest.mark.parametrize(
    "name", ["postdate/control", "index", "commitlog", "postdate/schedule/rmq_sys_wheel_timer/0"]
)
def test_a_file_of_the_wrong_size_is_refused(root: Path, clock: ManualClock, name: str) -> None:
    with open_store(root, clock) as store:
        send_timed(store, 1_000)
    path = root / name
    if path.is_dir():
        path = next(path.iterdir())
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(WrongFileSize, match=path.name):
        open_store(root, clock)


def test_a_brokers_directory_is_refused_and_left_as_it_was(root: Path, clock: ManualClock) -> None:
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020d}").write_bytes(bytes(100))
    before = names(root)
    with pytest.raises(NotOurStore, match="store_verify"):
        open_store(root, clock)
    assert names(root) == before


_BROKER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_store_that_a_broker_holds_is_refused_until_it_lets_go(
    root: Path, clock: ManualClock
) -> None:
    open_store(root, clock).close()
    broker = subprocess.Popen(
        [sys.executable, "-c", _BROKER, root / "lock"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert broker.stdout is not None
    assert broker.stdout.readline() == b"held\n"
    with pytest.raises(HeldByBroker, match="Stop the broker"):
        open_store(root, clock)
    broker.communicate()
    open_store(root, clock).close()


def test_a_broker_cannot_lock_a_store_that_is_open(root: Path, clock: ManualClock) -> None:
    attempt = _BROKER.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    with open_store(root, clock):
        result = subprocess.run(
            [sys.executable, "-c", attempt, root / "lock"], capture_output=True, input=b""
        )
    assert b"Error" in result.stderr
    result = subprocess.run(
        [sys.executable, "-c", attempt, root / "lock"], capture_output=True, input=b""
    )
    assert result.stdout == b"held\n"


class FullAtFirst(UnsyncedDisk):
    """A disk that has no room for the control page."""

    def create_whole(self, path: Path, size_bytes: int) -> None:  # noqa: ARG002 (as the disk has it)
        raise DiskFull(path=path)


def test_an_opening_that_failed_holds_nothing_and_the_next_one_recovers(
    root: Path, clock: ManualClock
) -> None:
    open_store(root, clock).close()
    (root / "postdate" / "queues").unlink()
    with pytest.raises(DiskFull):
        open_store(root, clock, disk=FullAtFirst())
    assert not (root / "abort").exists()
    with open_store(root, clock) as store:
        assert (root / "abort").exists()
        assert_sound(store)


# -- coming and going -----------------------------------------------------------------------------


def test_the_last_one_out_removes_abort_and_the_others_do_not(
    root: Path, clock: ManualClock
) -> None:
    first, second = open_store(root, clock), open_store(root, clock)
    first.close()
    assert (root / "abort").exists()
    second.close()
    assert not (root / "abort").exists()
    second.close()


def test_a_closed_store_takes_nothing(root: Path, clock: ManualClock) -> None:
    store = open_store(root, clock)
    message = outgoing(store, level=1)
    store.send([message])
    store.close()
    with pytest.raises(StoreClosing):
        store.send([outgoing(store)])
    with pytest.raises(StoreClosing):
        store.cancel(message.unique_id, by=None)
    with pytest.raises(StoreClosing):
        store.raise_generation()
    with open_store(root, clock) as store:
        assert store.find(message.unique_id).state == "scheduled"


def test_a_store_is_unusable_after_a_fork(root: Path, clock: ManualClock) -> None:
    with open_store(root, clock) as store:
        message_id = send_level(store)
        child = os.fork()
        if child == 0:
            os._exit(_refusals(store, message_id))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 4
        assert store.cancel(message_id, by=None).outcome == "cancelled"
        assert_sound(store)


def _refusals(store: Store, message_id: str) -> int:
    """How many of the ways to write are refused."""
    refused = 0
    for write in (
        lambda: store.send([outgoing(store)]),
        lambda: store.cancel(message_id, by=None),
        store.raise_generation,
        store.close,
    ):
        try:
            write()
        except StoreForked:
            refused += 1
        except BaseException:  # noqa: BLE001 (the child must end here, whatever happens)
            return 99
    return refused


def test_a_lock_follows_its_path_when_the_file_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    old, new = FileLock(path), None
    with old:
        pass
    path.unlink()
    new = Disk().lock(path)
    with old:
        assert not new.try_acquire()
    assert new.try_acquire()
    new.release()
    old.close()
    new.close()
    with pytest.raises(StoreClosing):
        old.acquire()


def test_threads_that_come_and_go_leave_a_clean_store(root: Path) -> None:
    clock = ManualClock()
    failures: list[BaseException] = []

    def come_and_go() -> None:
        try:
            for _ in range(6):
                with open_store(root, clock) as store:
                    assert (root / "abort").exists()
                    store.send([outgoing(store)])
        except BaseException as error:  # noqa: BLE001 (told by the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not (root / "abort").exists()
    with open_store(root, clock) as store:
        assert len(assert_sound(store)) == 24
        assert store.settings is SETTINGS
