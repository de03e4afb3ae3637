"""Load: one request, repeated over keep-alive connections for some seconds, by wrk or by processes.

`wrk` is used where it is installed (its share of the processor is small, so the server's speed
shows); otherwise processes of this Python with a prepared request and blocking sockets. The report
names which.
"""

import multiprocessing
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

CLIENT_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, each time the same."""

    url: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it."""

    requests_per_second: float
    #: Answers other than 2xx, and broken connections.
    failed: int


def client_name() -> str:
    """Which client `put_load` uses here."""
    return "wrk" if shutil.which("wrk") else f"{CLIENT_PROCESSES} Python processes, keep-alive"


def put_load(request: Request, *, connections: int, seconds: float) -> Load:
    """Repeat a POST over so many connections for so long."""
    with_client = _with_wrk if shutil.which("wrk") else _with_processes
    return with_client(request, connections, seconds)


def _with_wrk(request: Request, connections: int, seconds: float) -> Load:
    with tempfile.TemporaryDirectory() as folder:
        body_path, script_path = Path(folder) / "body", Path(folder) / "post.lua"
        body_path.write_bytes(request.body)
        headers = "".join(
            f'wrk.headers["{name}"] = "{text}"\n' for name, text in request.headers.items()
        )
        script_path.write_text(
            f'wrk.method = "POST"\n{headers}local file = io.open("{body_path}", "rb")\n'
            'wrk.body = file:read("*a")\nfile:close()\n'
        )
        options = ["-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--timeout", "10s"]
        output = subprocess.run(
            ["wrk", *options, "-s", str(script_path), request.url],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    broken = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output
    )
    failed = int(refused[1]) if refused else 0
    failed += sum(int(count) for count in broken.groups()) if broken else 0
    speed = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if speed is None:
        raise RuntimeError(output)
    return Load(float(speed[1]), failed)


def _with_processes(request: Request, connections: int, seconds: float) -> Load:
    share = max(1, connections // CLIENT_PROCESSES)
    context = multiprocessing.get_context("fork")
    with context.Pool(CLIENT_PROCESSES) as pool:
        began = time.perf_counter()
        counts = pool.starmap(_repeat_on_threads, [(request, share, seconds)] * CLIENT_PROCESSES)
        elapsed = time.perf_counter() - began
    done = sum(done for done, _ in counts)
    return Load(done / elapsed, sum(failed for _, failed in counts))


def _repeat_on_threads(request: Request, connections: int, seconds: float) -> tuple[int, int]:
    until = time.perf_counter() + seconds
    counts: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda: counts.append(_repeat(request, until)))
        for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done for done, _ in counts), sum(failed for _, failed in counts)


def _repeat(request: Request, until: float) -> tuple[int, int]:
    address = urlsplit(request.url)
    lines = [f"POST {address.path} HTTP/1.1", f"Host: {address.netloc}"]
    lines += [f"{name}: {text}" for name, text in request.headers.items()]
    lines += [f"Content-Length: {len(request.body)}", "", ""]
    whole = "\r\n".join(lines).encode() + request.body
    done = failed = 0
    with socket.create_connection((address.hostname or "", address.port or 80)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = connection.makefile("rb")
        while time.perf_counter() < until:
            connection.sendall(whole)
            good = _read_answer(answers)
            done, failed = done + good, failed + (not good)
    return done, failed


def _read_answer(answers: socket.SocketIO) -> bool:
    """Read one answer to its end; whether it was a 2xx."""
    status = answers.readline()
    length = 0
    while (line := answers.readline()) not in {b"\r\n", b""}:
        name, _, text = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(text)
    answers.read(length)
    return status.split(b" ")[1:2] != [] and status.split(b" ")[1].startswith(b"2")
