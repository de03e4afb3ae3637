"""SIGSTOP: a process that stands still with a lock in its hand is killed by the supervisor."""

import contextlib
import signal
import threading
from pathlib import Path

import pytest

from queues.demo.client import Client, ServerUnreachableError
from queues.demo.launching import Running
from queues.store.control import Control, read_progress
from queues.store.disk import Disk
from tests.support.platforms import await_that, client_of, running_platform, send_signal

MESSAGE = {"body": {"order": 1}, "delay_ms": 1_000}
BATCH = {"messages": [MESSAGE] * 500}
#: The supervisor gives a holder 5 s; then the next one needs time to start.
SURVIVED_S = 25

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


def holders(running: Running) -> dict[str, int]:
    """Who holds which lock, as the supervisor sees it."""
    control = Control.read(Disk(), running.data_dir / "store" / "postdate" / "control")
    return {lock: pid for lock, (pid, _) in read_progress(control).items() if pid}


def kernel_state(pid: int) -> str:
    """The kernel's letter for what a process does; X for one that is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


def is_gone(pid: int) -> bool:
    """Ended, reaped or not."""
    return kernel_state(pid) in {"Z", "X"}


def stop_inside_the_append_lock(running: Running) -> int:
    """Stop whoever holds the append lock; the process id of one that was caught inside."""
    for _ in range(2_000):
        pid = holders(running).get("append")
        if pid and send_signal(pid, signal.SIGSTOP):
            # It runs on for a moment, perhaps out of the lock.
            await_that(lambda pid=pid: kernel_state(pid) == "T", within_s=5, what="it stands still")
            if holders(running).get("append") == pid:
                return pid
            send_signal(pid, signal.SIGCONT)
    raise AssertionError("nobody was caught with the append lock")


def send_until(ended: threading.Event, running: Running) -> None:
    """Keep the append lock busy."""
    client = Client(running.base_url, api_key=running.api_key, stop=ended)
    with contextlib.suppress(ServerUnreachableError):
        while not ended.is_set():
            client.request("POST", "/api/v1/topics/busy/messages/batch", BATCH)
    client.close()


def test_a_stopped_holder_of_the_append_lock_is_killed_and_sends_go_on(tmp_path: Path) -> None:
    ended = threading.Event()
    with running_platform(tmp_path) as running, client_of(running) as client:
        sender = threading.Thread(target=send_until, args=(ended, running), daemon=True)
        sender.start()
        stopped = stop_inside_the_append_lock(running)
        await_that(lambda: is_gone(stopped), within_s=SURVIVED_S, what="the stopped one is killed")
        answer = client.expect("POST", "/api/v1/topics/after/messages", MESSAGE, statuses=(201,))
        await_that(
            lambda: state_of(client, answer.body["id"]) == "ready",
            within_s=SURVIVED_S,
            what="a message sent afterwards is handed over",
        )
        ended.set()


def test_a_stopped_holder_of_a_lease_is_killed_and_hand_overs_go_on(tmp_path: Path) -> None:
    with running_platform(tmp_path) as running, client_of(running) as client:
        leases = {lock: pid for lock, pid in holders(running).items() if lock != "append"}
        victim = next(iter(leases.values()))
        assert send_signal(victim, signal.SIGSTOP)
        answers = client.expect(
            "POST",
            "/api/v1/topics/after/messages/batch",
            {"messages": [MESSAGE, {"body": "x", "delay_level": 1}]},
        )
        for result in answers.body["results"]:
            await_that(
                lambda id=result["id"]: state_of(client, id) == "ready",
                within_s=SURVIVED_S,
                what="a message sent meanwhile is handed over",
            )
        assert is_gone(victim)


def state_of(client: Client, message_id: str) -> str:
    state: str = client.expect("GET", f"/api/v1/messages/{message_id}").body["state"]
    return state
