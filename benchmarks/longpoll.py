"""Long polls: what 2,000 waiting `receive` calls cost, and how soon each gets its message.

The platform runs as `make up` starts it. The polls belong to 20 groups of one topic each, one
keep-alive connection a poll. Memory is the web processes' own, all of it, in each round of polls.
Sends are single ones to a topic that nobody waits for, the same load in turns while nobody waits
and while all do. A wake is timed at the client: from the start of a send to the end of the answer
of the poll that got it; the client is on the same machine.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from load import Load, Request, client_name, put_load
from measuring import Report, quantiles, run
from platforms import make_topic, running_platform
from processes import command_of, family, memory_of

from queues.demo.client import Client
from queues.demo.launching import Running

GROUPS = 20
QUEUES = 8
WAIT_S, ROUND_WAIT_S = 20, 9
SEND_CONNECTIONS = 8
PAUSE_S = 0.004
SETTLE_S = 2


@dataclass
class Waiting:
    """What the polls saw."""

    #: When each message's answer was read, by its body.
    read_at: dict[int, float] = field(default_factory=dict)
    #: Polls that have asked and were not answered yet.
    asked: int = 0
    failed: int = 0


@dataclass
class Found:
    """What the rounds gave: loads of sends alone and beside the polls, memory, wakes in ms."""

    alone: list[Load] = field(default_factory=list)
    beside: list[Load] = field(default_factory=list)
    while_mb: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)


def main(report: Report) -> None:
    """Memory, sends and wakes with so many polls waiting."""
    polls, sends, seconds, rounds = (200, 100, 1, 2) if report.quick else (2_000, 3_000, 3, 7)
    report.settings = {
        "polls": polls, "groups": GROUPS, "queues_a_topic": QUEUES, "sends_timed": sends,
        "send_connections": SEND_CONNECTIONS, "seconds_a_round": seconds, "rounds": rounds,
        "client": client_name(),
    }  # fmt: skip
    with running_platform() as running:
        prepare(running)
        load = background(running)
        put_load(load, connections=SEND_CONNECTIONS, seconds=1)
        before_mb = own_mb(running)
        found = Found()
        waiting, loop = Waiting(), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        for _ in range(rounds):
            found.alone += [put_load(load, connections=SEND_CONNECTIONS, seconds=seconds)]
            with polling(running, waiting, polls, loop, wait_s=ROUND_WAIT_S):
                found.while_mb += [own_mb(running)]
                found.beside += [put_load(load, connections=SEND_CONNECTIONS, seconds=seconds)]
            time.sleep(ROUND_WAIT_S)  # The server learns only then that nobody waits.
        with polling(running, waiting, polls, loop, wait_s=WAIT_S):
            wakes = asyncio.run_coroutine_threadsafe(time_wakes(running, waiting, sends), loop)
            found.late_ms = wakes.result()
        tell(report, found, before_mb)
        report.notes.append(f"{waiting.failed} polls failed")
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@contextlib.contextmanager
def polling(
    running: Running, waiting: Waiting, polls: int, loop: asyncio.AbstractEventLoop, *, wait_s: int
) -> Iterator[None]:
    """While so many polls wait, each for so many seconds at a time."""
    waiting.asked = 0
    began = begin(running, waiting, polls, wait_s)
    tasks = asyncio.run_coroutine_threadsafe(began, loop).result()
    time.sleep(SETTLE_S)
    yield
    asyncio.run_coroutine_threadsafe(end(tasks), loop).result()


def tell(report: Report, found: Found, before_mb: float) -> None:
    """The figures and the goals."""
    told = quantiles(found.late_ms)
    polls = report.settings["polls"]
    for name in ("p50", "p99", "max"):
        report.add(f"send to receive, {polls} waiting, {name}", "ms", [told[name]], lower=True)
    report.add("memory of the web processes, nobody waiting", "MB", [before_mb], lower=True)
    report.add("memory of the web processes, all waiting", "MB", found.while_mb, lower=True)
    alone, beside = "single sends, nobody waiting", "single sends, all waiting"
    report.add(alone, "requests/s", [load.requests_per_second for load in found.alone])
    report.add(beside, "requests/s", [load.requests_per_second for load in found.beside])
    ratio = report.compare("sends", beside, alone)
    report.at_most("send to a waiting receive, p99 ms", told["p99"], 50)
    most_mb = max(found.while_mb)
    report.at_most("memory of the web processes, all waiting, MB", most_mb, 300)
    report.at_least("single sends beside waiting polls, of those alone", ratio, 0.95)


def prepare(running: Running) -> None:
    """Make topics and groups."""
    client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
    make_topic(running, "nobody", queues=QUEUES)
    for number in range(GROUPS):
        make_topic(running, f"waited-{number}", queues=QUEUES)
        body = {"subscriptions": [{"topic": f"waited-{number}"}]}
        client.expect("PUT", f"/api/v1/groups/g{number}", body, statuses=(200, 201))
    client.close()


def own_mb(running: Running) -> float:
    """The own memory of the web server's processes."""
    members = family(running.process.pid)
    return sum(memory_of(pid).own_mb for pid in members if "granian" in command_of(pid))


def background(running: Running) -> Request:
    """Single sends to a topic that nobody waits for."""
    return Request(
        f"{running.base_url}/api/v1/topics/nobody/messages",
        json.dumps({"body": "x" * 100}).encode(),
        {"Authorization": f"Bearer {running.api_key}", "Content-Type": "application/json"},
    )


async def begin(
    running: Running, waiting: Waiting, polls: int, wait_s: int
) -> list[asyncio.Task[None]]:
    """Let so many polls wait."""
    tasks = [
        asyncio.create_task(poll(running, waiting, f"g{number % GROUPS}", wait_s))
        for number in range(polls)
    ]
    while waiting.asked < polls:
        await asyncio.sleep(0.05)
    return tasks


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Let the polls go."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def poll(running: Running, waiting: Waiting, group: str, wait_s: int) -> None:
    """Receive one message after another, waiting for each."""
    channel = await Channel.open(running)
    body = {"max_messages": 1, "wait_seconds": wait_s}
    while True:
        waiting.asked += 1
        status, answer = await channel.post(f"/api/v1/groups/{group}/receive", body)
        now = time.perf_counter()
        waiting.failed += status != 200
        for message in answer.get("messages", ()):
            waiting.read_at[message["body"]] = now
        if answer.get("messages"):
            receipts = [message["receipt"] for message in answer["messages"]]
            await channel.post(f"/api/v1/groups/{group}/ack", {"receipts": receipts})


async def time_wakes(running: Running, waiting: Waiting, count: int) -> list[float]:
    """Send messages one after another, each to another group's topic; ms until each was read."""
    channel, sent_at = await Channel.open(running), {}
    for number in range(count):
        sent_at[number] = time.perf_counter()
        await channel.post(f"/api/v1/topics/waited-{number % GROUPS}/messages", {"body": number})
        await asyncio.sleep(PAUSE_S)
    give_up = time.perf_counter() + WAIT_S
    while len(waiting.read_at) < count and time.perf_counter() < give_up:
        await asyncio.sleep(0.05)
    lost = WAIT_S * 1000.0
    return [
        (waiting.read_at[number] - at) * 1000 if number in waiting.read_at else lost
        for number, at in sent_at.items()
    ]


class Channel:
    """One keep-alive connection."""

    def __init__(
        self, running: Running, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._key, self._reader, self._writer = running.api_key, reader, writer

    @classmethod
    async def open(cls, running: Running) -> "Channel":
        """Connect."""
        host, _, port = running.base_url.rpartition("/")[2].partition(":")
        return cls(running, *await asyncio.open_connection(host, int(port)))

    async def post(self, path: str, body: object) -> tuple[int, dict[str, list[dict[str, object]]]]:
        """Send a request and read its answer."""
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        answered = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answered.partition("content-length:")[2].partition("\r\n")[0])
        return int(answered.split(" ", 2)[1]), json.loads(await self._reader.readexactly(length))


if __name__ == "__main__":
    run("longpoll", main, __doc__)
