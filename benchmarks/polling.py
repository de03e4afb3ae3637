"""The peer of the lateness run: a delay queue as most teams build one, a sorted set and a poller.

Redis keeps what waits in a sorted set with its due time as score. A worker process asks every
millisecond for up to a thousand that are due, and in the same script removes them and appends
them to a list. It is given what ours is given: half filled in beforehand, half added at an even
pace. Nothing reaches a disk, nothing survives a crash, so it is the floor of what this machine
and this Python can do in these minutes, not an equal.
"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

import redis
from peers import redis_server
from waiting import BODY, now_ms

_WAITING, _ARRIVED = "waiting", "arrived"
_TAKE_DUE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1000)
if #due > 0 then
  redis.call('ZREM', KEYS[1], unpack(due))
  redis.call('RPUSH', KEYS[2], unpack(due))
end
return due
"""
_BATCH = 1000
#: Numbers of the messages that are sent at a pace: none is among those filled in.
_PACED_FROM = 10**11
#: Of a member: the due time in ms, and a number that makes it the only one.
_DUE_DIGITS, _MEMBER = 13, "%013d%012d"
_POLL_S = 0.001
_STALLED_S = 120


def steady(*, per_second: int, seconds: int, delay_ms: int) -> list[float]:
    """Half timed at random milliseconds, half sent at an even pace; lateness of each in ms."""
    half = per_second // 2
    with redis_server() as client:
        first_ms = now_ms() + delay_ms
        _fill(client, [first_ms + random.randrange(seconds * 1000) for _ in range(half * seconds)])
        with _polled(client, 2 * half * seconds) as taken:
            _pace(client, half, seconds=seconds, delay_ms=delay_ms)
            return [float(taken_ms - due_ms) for due_ms, taken_ms in _all_of(taken)]


def at_once(count: int) -> float:
    """All due within one second; seconds from the first due to the last that was taken."""
    with redis_server() as client:
        first_ms = now_ms() + 5_000 + count // 40
        _fill(client, [first_ms + random.randrange(1000) for _ in range(count)])
        with _polled(client, count) as taken:
            return (max(taken_ms for _, taken_ms in _all_of(taken)) - first_ms) / 1000


def _fill(client: redis.Redis, dues_ms: Sequence[int], *, numbered_from: int = 0) -> None:
    for start in range(0, len(dues_ms), _BATCH):
        batch = enumerate(dues_ms[start : start + _BATCH], numbered_from + start)
        members = {(_MEMBER % (due_ms, number)).encode() + BODY: due_ms for number, due_ms in batch}
        client.zadd(_WAITING, members)


def _pace(client: redis.Redis, per_second: int, *, seconds: int, delay_ms: int) -> None:
    began = time.perf_counter()
    sent = 0
    while sent < per_second * seconds:
        owed = min(int((time.perf_counter() - began) * per_second), per_second * seconds) - sent
        if owed > 0:
            _fill(client, [now_ms() + delay_ms] * owed, numbered_from=_PACED_FROM + sent)
            sent += owed
        time.sleep(_POLL_S)


@contextmanager
def _polled(client: redis.Redis, count: int) -> Iterator[Connection]:
    """A worker beside the block; what comes is each message's due and taken time, once all are."""
    context = get_context("spawn")
    received, sending = context.Pipe(duplex=False)
    path = client.connection_pool.connection_kwargs["path"]
    worker = context.Process(target=_poll, args=(path, count, sending), daemon=True)
    worker.start()
    try:
        yield received
    finally:
        worker.kill()
        worker.join()


def _poll(path: str, count: int, sending: Connection) -> None:
    take_due = redis.Redis(unix_socket_path=path).register_script(_TAKE_DUE)
    taken: list[tuple[int, int]] = []
    while len(taken) < count:
        members = take_due(keys=[_WAITING, _ARRIVED], args=[now_ms()])
        at_ms = now_ms()
        taken += [(int(member[:_DUE_DIGITS]), at_ms) for member in members]
        if not members:
            time.sleep(_POLL_S)
    sending.send(taken)


def _all_of(taken: Connection) -> list[tuple[int, int]]:
    if not taken.poll(_STALLED_S):
        raise RuntimeError("the polling worker took not all that was due")
    pairs: list[tuple[int, int]] = taken.recv()
    return pairs
