"""The original: Apache RocketMQ's broker, name server and Java client, as processes of our own.

Its jars come from Maven Central, once, into `var/cache/`, which git does not see; a directory that
holds them already is named by `ROCKETMQ_LIB`. `why_not` says what is missing, if anything is.
"""

import base64
import contextlib
import json
import os
import queue
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "interop"
VERSION = "5.3.3"
CACHE = ROOT / "var" / "cache" / f"rocketmq-{VERSION}"
FETCH_S_MAX = 600
START_S_MAX = 90
STOP_S_MAX = 60
#: RocketMQ's remoting: the length of what follows, and that of its head, a JSON object.
_FRAME = struct.Struct(">ii")
_GET_BROKER_CLUSTER_INFO = 106
#: Java 17 keeps these from code that unmaps files; RocketMQ's own scripts open them as well.
_OPENED = (
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
BROKER_MEMORY = ("-Xms512m", "-Xmx2g", "-XX:MaxDirectMemorySize=4g")


def why_not() -> str | None:
    """What the original cannot be had for; None when it can. Fetches it, if need be."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            return f"there is no {program} (Java 11 or later)"
    if "ROCKETMQ_LIB" in os.environ or (CACHE / "lib").is_dir():
        return None
    if shutil.which("mvn") is None:
        return "there is no mvn to fetch RocketMQ with"
    try:
        _fetch(CACHE / "lib")
    except (subprocess.SubprocessError, OSError) as error:
        return f"Maven could not fetch RocketMQ {VERSION}: {str(error)[-300:]}"
    return None


def _fetch(target: Path) -> None:
    unfinished = target.with_name(f"lib.{os.getpid()}")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "-B", "-q", "-f", str(SOURCES / "pom.xml"), "dependency:copy-dependencies"]
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={unfinished}"],
            capture_output=True,
            text=True,
            timeout=FETCH_S_MAX,
            check=False,
        )
        if done.returncode != 0 or not list(unfinished.glob("rocketmq-broker-*.jar")):
            raise subprocess.SubprocessError(done.stdout or done.stderr or "no jar came")
        with contextlib.suppress(OSError):  # Another run was first.
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def class_path() -> str:
    """The jars, and the driver beside them, compiled if it is not or has changed since."""
    lib = Path(os.environ.get("ROCKETMQ_LIB", CACHE / "lib"))
    classes, source = CACHE / "classes", SOURCES / "Driver.java"
    compiled = classes / "Driver.class"
    if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-nowarn", "-d", str(classes), "-cp", f"{lib}/*", str(source)]
        subprocess.run(command, check=True, capture_output=True)
    return f"{classes}:{lib}/*"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Service:
    """A Java process of RocketMQ's that says when it is up."""

    def __init__(self, main: str, options: Sequence[str], *, folder: Path, memory: Sequence[str]):
        folder.mkdir(parents=True, exist_ok=True)
        self.output = folder / f"{main.rpartition('.')[2]}.out"
        environment = {**os.environ, "ROCKETMQ_HOME": str(folder)}
        command = [
            *("java", *memory, *_OPENED, f"-Duser.home={folder}", f"-Drocketmq.log.root={folder}"),
            *("-cp", class_path(), main, *options),
        ]
        with self.output.open("ab") as output:
            self._began_at = output.tell()
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder
            )

    def await_up(self) -> None:
        """Wait for `boot success`."""

        def up() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"it did not start: {self.told()}")
            return "boot success" in self.told()

        await_that(up, within_s=START_S_MAX, what=f"{self.output} says that it is up")

    def told(self) -> str:
        """What this process has printed."""
        return self.output.read_bytes()[self._began_at :].decode(errors="replace")

    def stop(self) -> None:
        """End it as its own script does."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()


class Cluster:
    """A name server and one broker, gone at the end; the broker may be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._name_port, self._port, self._ha_port = free_ports(3)
        self.name_server = f"127.0.0.1:{self._name_port}"
        conf = folder / "namesrv.conf"
        conf.write_text(f"listenPort={self._name_port}\n")
        self._names = Service(
            "org.apache.rocketmq.namesrv.NamesrvStartup",
            ["-c", str(conf)],
            folder=folder / "namesrv",
            memory=("-Xms64m", "-Xmx256m"),
        )
        self._names.await_up()
        self.broker: Service | None = None

    @property
    def address(self) -> str:
        """Where the broker listens."""
        return f"127.0.0.1:{self._port}"

    def start_broker(self, conf: Path, **settings: Any) -> Service:
        """Start the broker with a `broker.conf`, ports and these settings put behind it."""
        more = {
            "listenPort": self._port,
            "haListenPort": self._ha_port,
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": self.name_server,
            **settings,
        }
        own = self.folder / "own-broker.conf"
        own.write_text(conf.read_text() + "".join(f"{k}={v}\n" for k, v in more.items()))
        self.broker = Service(
            "org.apache.rocketmq.broker.BrokerStartup",
            ["-c", str(own)],
            folder=self.folder / "broker",
            memory=BROKER_MEMORY,
        )
        self.broker.await_up()
        # Up, it registers some seconds later; a topic that is made before leads nowhere.
        await_that(self._is_registered, within_s=START_S_MAX, what="the name server knows it")
        return self.broker

    def _is_registered(self) -> bool:
        """Whether the name server, asked for the cluster's brokers, tells of ours."""
        head = {"code": _GET_BROKER_CLUSTER_INFO, "language": "JAVA", "version": 0, "opaque": 1,
                "flag": 0}  # fmt: skip
        data = json.dumps(head).encode()
        with socket.create_connection(("127.0.0.1", self._name_port), timeout=START_S_MAX) as asked:
            asked.sendall(_FRAME.pack(4 + len(data), len(data)) + data)
            with asked.makefile("rb") as answer:
                size, _ = _FRAME.unpack(answer.read(_FRAME.size))
                return self.address.encode() in answer.read(size - 4)

    def close(self) -> None:
        """End both."""
        if self.broker is not None:
            self.broker.stop()
        self._names.stop()


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster without its broker yet."""
    running = Cluster(folder)
    try:
        yield running
    finally:
        running.close()


class Driver:
    """RocketMQ's own Java client (`tests/interop/Driver.java`), told what to do line by line."""

    def __init__(self, name_server: str, folder: Path) -> None:
        command = [
            *("java", "-Xmx1g", f"-Duser.home={folder}", "-Drocketmq.client.logUseSlf4j=false"),
            *("-cp", class_path(), "Driver", name_server),
        ]
        self._errors = (folder / "driver.err").open("ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=folder
        )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        #: Messages that its consumers received, in the order in which they came.
        self.received: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith(b"{"):
                continue
            told = json.loads(line)
            if told.get("event") == "message":
                told["body"] = base64.b64decode(told["body"])
                self.received.append(told)
            else:
                self._answers.put(told)

    def ask(self, do: str, *, within_s: float = 120, **fields: Any) -> Any:
        """Have something done; its result. Fails with what the client says."""
        self.tell(do, **fields)
        return self.answer(within_s=within_s)

    def tell(self, do: str, **fields: Any) -> None:
        """Have something done without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, *, within_s: float) -> Any:
        """What came of the oldest thing that was told and not yet answered."""
        told = self._answers.get(timeout=within_s)
        if "failed" in told:
            raise AssertionError(told["failed"])
        return told.get("answer")

    def send(self, *messages: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Send messages whose bodies are bytes; where each was placed."""
        told = [{**one, "body": base64.b64encode(one["body"]).decode()} for one in messages]
        found: list[dict[str, Any]] = self.ask("send", messages=told)
        return found

    def of_group(self, group: str) -> list[dict[str, Any]]:
        """What a group's consumer received."""
        return [message for message in list(self.received) if message["group"] == group]

    def await_count(self, group: str, count: int, *, within_s: float) -> list[dict[str, Any]]:
        """What a group's consumer received, once it is so many."""
        await_that(
            lambda: len(self.of_group(group)) >= count,
            within_s=within_s,
            what=f"{group} received {count} (it has {len(self.of_group(group))})",
        )
        return self.of_group(group)

    def close(self) -> None:
        """Have it leave, consumers' offsets written."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(STOP_S_MAX)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def driver(running: Cluster) -> Iterator[Driver]:
    """A client of the cluster."""
    client = Driver(running.name_server, running.folder)
    try:
        yield client
    finally:
        client.close()


def await_that(condition: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """The first true value of a condition; fails when there is none in time."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"within {within_s} s: {what}")
