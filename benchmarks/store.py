"""The store against Redis and beanstalkd: batch and single append, wheel enqueue, hand-over.

One message is 100 bytes of body, an id and one business key, dated for a random time of the next
ten days. Appending it means what `Store.send` does: record in the log, ConsumeQueue unit, schedule
entry and two index keys, all brought up to date before the call returns (`async` flush: it
survives the process's death). Each side gets its arguments ready-made: ours `Outgoing` values,
Redis' client the mapping of member and score, beanstalkd's the bodies. Of Redis there is a second
figure, `redis batch, bare socket`: the same pipelined ZADDs without its client library.
"""

import gc
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measuring import Report, rate, run
from peers import Beanstalk, beanstalkd_server, missing, redis_server, zadd_bare
from redis import Redis

from queues.store import Outgoing, Store, StoreSettings
from queues.store.names import TIMER_TOPIC
from scheduler.wheel.step import WheelStep

#: The timed part of a figure; what makes its arguments first, for so many messages.
Work = Callable[[], object]
Prepare = Callable[[int], Work]

SETTINGS = StoreSettings()
BATCH = 1000
BODY = bytes(100)
KEY = "waiting"
TEN_DAYS_S = 10 * 86_400
ROUNDS = 5


def main(report: Report) -> None:
    """All figures, each round of ours beside a round of each peer."""
    batch_messages, single_messages = (10_000, 1_000) if report.quick else (200_000, 20_000)
    rounds = 1 if report.quick else ROUNDS
    report.settings = {
        "body_bytes": len(BODY),
        "batch": BATCH,
        "messages_a_batch_round": batch_messages,
        "messages_a_single_round": single_messages,
        "rounds": rounds,
    }
    append(report, batch_messages, single_messages, rounds)
    hand_over(report, batch_messages, rounds)
    enqueue(report, batch_messages, rounds)


def append(report: Report, batch_messages: int, single_messages: int, rounds: int) -> None:
    """Batch and single append of ours, Redis and beanstalkd, in turns."""
    works: dict[str, tuple[int, Prepare]] = {}
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), SETTINGS) as store:
        works["store batch"] = batch_messages, lambda count: sends(store, count, BATCH)
        works["store single"] = single_messages, lambda count: sends(store, count, 1)
        if absent := missing():
            report.notes.append(f"not on this machine, so not compared: {', '.join(absent)}")
            take_turns(report, works, rounds)
            return
        with redis_server() as redis, beanstalkd_server() as beanstalk:
            works["redis batch"] = batch_messages, lambda count: pipelines(redis, count)
            works["redis single"] = single_messages, lambda count: zadds(redis, count)
            works["redis batch, bare socket"] = batch_messages, lambda count: bare(redis, count)
            works["beanstalkd batch"] = batch_messages, lambda count: puts(beanstalk, count, BATCH)
            works["beanstalkd single"] = single_messages, lambda count: puts(beanstalk, count, 1)
            take_turns(report, works, rounds)
    for kind in ("batch", "single"):
        ratio = report.compare(f"{kind}: store / redis", f"store {kind}", f"redis {kind}")
        report.compare(f"{kind}: store / beanstalkd", f"store {kind}", f"beanstalkd {kind}")
        report.at_least(f"{kind} append, times Redis", ratio, 2.0, aim=3.0)
    bare_name = "redis batch, bare socket"
    report.compare("batch: store / redis, bare socket", "store batch", bare_name)


def take_turns(report: Report, works: dict[str, tuple[int, Prepare]], rounds: int) -> None:
    """Each work once a round, in turn, its arguments made before the clock starts."""
    results: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, (count, prepare) in works.items():
            work = prepare(count)
            gc.collect()
            gc.freeze()
            results[name].append(rate(count, work))
            gc.unfreeze()
    for name, values in results.items():
        report.add(name, "messages/s", values)


def sends(store: Store, count: int, size: int) -> Work:
    """Timed messages, so many a call."""
    batches = [outgoing(store, size) for _ in range(count // size)]

    def work() -> None:
        for batch in batches:
            store.send(batch)

    return work


def pipelines(redis: Redis, count: int) -> Work:
    """The same messages as members of a sorted set, a thousand a pipeline."""
    members = [member() for _ in range(count)]

    def work() -> None:
        for start in range(0, count, BATCH):
            pipeline = redis.pipeline(transaction=False)
            for mapping in members[start : start + BATCH]:
                pipeline.zadd(KEY, mapping)
            pipeline.execute()

    return work


def bare(redis: Redis, count: int) -> Work:
    """The same without Redis' client: the commands are joined here, and answers only counted."""
    members = [next(iter(member().items())) for _ in range(count)]

    def work() -> None:
        connection = redis.connection_pool.get_connection()
        for start in range(0, count, BATCH):
            zadd_bare(connection, members[start : start + BATCH])
        redis.connection_pool.release(connection)

    return work


def zadds(redis: Redis, count: int) -> Work:
    """One round trip each."""
    members = [member() for _ in range(count)]

    def work() -> None:
        for mapping in members:
            redis.zadd(KEY, mapping)

    return work


def puts(beanstalk: Beanstalk, count: int, size: int) -> Work:
    """The same messages as delayed jobs, so many before the answers are read."""
    delays_s = [5 + random.randrange(TEN_DAYS_S) for _ in range(count // size)]

    def work() -> None:
        for delay_s in delays_s:
            beanstalk.put([BODY] * size, delay_s=delay_s)

    return work


def member() -> dict[bytes, float]:
    """A unique member with a random due time as its score."""
    due_s = time.time() + random.randrange(TEN_DAYS_S)
    return {b"%016x%b" % (random.getrandbits(64), BODY): due_s}


def enqueue(report: Report, count: int, rounds: int) -> None:
    """Waiting messages from the timer topic into TimerWheel and TimerLog."""
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), SETTINGS) as store:
            fill(store, count)
            step = WheelStep(store)
            step.open()
            results.append(rate(count, lambda s=step: take_all(s)))
            assert step.report()["enqueue_lag_messages"] == 0
            step.close()
    report.add("wheel enqueue", "messages/s", results)
    report.at_least("wheel enqueue, messages/s", report.figures["wheel enqueue"].median, 1_000_000)


def take_all(step: WheelStep) -> None:
    """Turn until the wheel has taken in everything."""
    while step.advance(now_ms()).more:
        pass


def hand_over(report: Report, count: int, rounds: int) -> None:
    """Due timed messages from the holding queue to their topic, in due order."""
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), SETTINGS) as store:
            due_ms = now_ms() + 1_500 + count // 100
            fill(store, count, due_ms=due_ms)
            time.sleep(max(0.0, due_ms / 1000 - time.time()) + 0.01)
            results.append(rate(count, lambda s=store: hand_over_all(s)))
    report.add("hand-over", "messages/s", results)
    report.at_least("hand-over, messages/s", report.figures["hand-over"].median, 200_000)


def hand_over_all(store: Store) -> None:
    """Hand over everything that waits in the timer topic, a thousand at a time."""
    end = store.queue_bounds(TIMER_TOPIC, 0).max_offset
    for start in range(0, end, BATCH):
        waiting = store.schedule(TIMER_TOPIC, 0, start, min(start + BATCH, end))
        offsets = waiting.start + np.arange(len(waiting.due_ms))
        done = store.hand_over(TIMER_TOPIC, 0, offsets)
        assert done.handed == BATCH


def fill(store: Store, count: int, *, due_ms: int | None = None) -> None:
    """Timed messages, a thousand a call."""
    for _ in range(count // BATCH):
        store.send(outgoing(store, BATCH, due_ms=due_ms))


def outgoing(store: Store, count: int, *, due_ms: int | None = None) -> Sequence[Outgoing]:
    """New timed messages with ids and one key each."""
    born_ms = now_ms()
    return [
        Outgoing(
            topic="orders",
            queue_id=0,
            unique_id=unique_id,
            body=BODY,
            born_ms=born_ms,
            keys=(unique_id[:16],),
            due_ms=due_ms or born_ms + 5_000 + random.randrange(TEN_DAYS_S * 1000),
        )
        for unique_id in store.new_ids("orders", born_ms, count)
    ]


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    run("store", main, __doc__)
