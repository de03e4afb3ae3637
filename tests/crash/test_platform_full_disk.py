"""A full disk: sends are refused and say so, what was accepted goes on, sends return with room.

The disk is a small tmpfs, which only root may mount; without that right the test is skipped.
"""

import base64
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queues.demo.client import Answer, Client
from queues.demo.launching import Running
from tests.support.platforms import ROOT, await_that, client_of, running_platform

DISK_MIB = 1_400
#: What is left of the disk when the log starts to be filled: less than a segment.
LEFT_BYTES = 90 * 1024 * 1024
BODY = {"body": base64.b64encode(secrets.token_bytes(2_000_000)).decode(), "encoding": "base64"}
DUE_MS = 15_000

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with little room."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "postdate-test", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root and the right to mount")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def send(client: Client, message: dict[str, Any]) -> Answer:
    """One send, answered as it is: a 503 is not repeated."""
    answer, reason = client.try_once("POST", "/api/v1/topics/orders/messages", message)
    assert answer is not None, reason
    return answer


def fill(client: Client) -> Answer:
    """Send large bodies until one is refused."""
    for _ in range(DISK_MIB):
        answer = send(client, {**BODY, "delay_seconds": 3600})
        if answer.status != 201:
            return answer
    raise AssertionError("the disk never became full")


def state_of(client: Client, message_id: str) -> str:
    state: str = client.expect("GET", f"/api/v1/messages/{message_id}").body["state"]
    return state


def verify(running: Running) -> subprocess.CompletedProcess[str]:
    """`store_verify` of the platform's store."""
    command = [sys.executable, str(ROOT / "manage.py"), "store_verify"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "postdate.settings"}
    return subprocess.run(
        [*command, str(running.data_dir / "store")],
        env={**environment, "POSTDATE_DATA_DIR": str(running.data_dir)},
        check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_a_full_disk_refuses_sends_and_nothing_else(small_disk: Path) -> None:
    with running_platform(small_disk) as running, client_of(running) as client:
        waiting = [send(client, {"body": "x", "delay_ms": DUE_MS}).body["id"] for _ in range(20)]
        levelled = send(client, {"body": "x", "delay_level": 4}).body["id"]
        filler = small_disk / "filler"
        free_bytes = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free_bytes - LEFT_BYTES)

        refused = fill(client)
        assert refused.status == 503
        assert refused.body["code"] == "store_full"

        cancelled = client.expect("DELETE", f"/api/v1/messages/{waiting[0]}")
        assert cancelled.body["outcome"] == "cancelled"
        for message_id in (*waiting[1:], levelled):
            await_that(
                lambda id=message_id: state_of(client, id) == "ready",
                within_s=60,
                what="a waiting message is handed over on the full disk",
            )
        assert state_of(client, waiting[0]) == "cancelled"
        verified = verify(running)
        assert verified.returncode == 0, verified.stdout + verified.stderr

        filler.unlink()
        await_that(
            lambda: send(client, {"body": "x"}).status == 201,
            within_s=30,
            what="sends work again once there is room",
        )
