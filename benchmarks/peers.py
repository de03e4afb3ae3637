"""Peers: a real Redis and a real beanstalkd, started for one run, spoken to from this Python.

Both listen on a Unix socket, their fastest door, and keep nothing on disk, their fastest mode:
Redis with neither snapshots nor append-only file, beanstalkd without a binlog. A waiting message
is a member of a sorted set with its due time as score (ZADD), and a delayed job (put).
"""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import redis

START_S_MAX = 10


@contextlib.contextmanager
def redis_server() -> Iterator[redis.Redis]:
    """A client of a Redis of our own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "redis.sock"
        command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", ""]
        with _started([*command, "--appendonly", "no"], path):
            client = redis.Redis(unix_socket_path=str(path))
            yield client
            client.close()


@contextlib.contextmanager
def beanstalkd_server() -> Iterator["Beanstalk"]:
    """A client of a beanstalkd of our own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "beanstalkd.sock"
        with _started(["beanstalkd", "-l", f"unix:{path}"], path):
            client = Beanstalk(path)
            yield client
            client.close()


def missing() -> list[str]:
    """The peers that this machine does not have."""
    return [name for name in ("redis-server", "beanstalkd") if shutil.which(name) is None]


def zadd_bare(connection: redis.Connection, members: Sequence[tuple[bytes, float]]) -> None:
    """Pipelined ZADDs to the key `bare`, without the client library's packing and parsing."""
    commands = []
    for member, score in members:
        text = b"%f" % score
        commands.append(
            b"*4\r\n$4\r\nZADD\r\n$4\r\nbare\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n"
            % (len(text), text, len(member), member)
        )
    connection.send_packed_command([b"".join(commands)])
    answered = 0
    while answered < len(members):
        answered += connection._sock.recv(1 << 16).count(b"\n")  # noqa: SLF001 -- the bare socket


class Beanstalk:
    """As much of beanstalkd's protocol as delayed puts need."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def put(self, bodies: Sequence[bytes], *, delay_s: int) -> None:
        """Delayed jobs, all sent before the first answer is read; one body is one round trip."""
        self._socket.sendall(
            b"".join(b"put 1024 %d 60 %d\r\n%b\r\n" % (delay_s, len(body), body) for body in bodies)
        )
        for _ in bodies:
            answer = self._answers.readline()
            if not answer.startswith(b"INSERTED"):
                raise RuntimeError(answer.decode())

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


@contextlib.contextmanager
def _started(command: Sequence[str], path: Path) -> Iterator[None]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        give_up = time.monotonic() + START_S_MAX
        while not _listens(path):
            if server.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{command[0]} did not start")
            time.sleep(0.02)
        yield
    finally:
        server.kill()
        server.wait()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
