"""The loops as in production: Celery workers and beat as processes of their own, over Redis."""

import pytest

from queues.store import Store
from tests.support.platforms import await_that
from tests.support.schedulers import Schedulers, Stream

pytestmark = [pytest.mark.slow, pytest.mark.redis]


def start(over_redis: Schedulers) -> dict[str, int | None]:
    over_redis.celery("beat", "beat")
    over_redis.celery("worker-1", "worker", "--hostname", "one@%h")
    over_redis.celery("worker-2", "worker", "--hostname", "two@%h")
    holders = over_redis.await_holders(lambda holders: holders["levels"] != holders["wheel"])
    over_redis.await_standbys()
    return holders


def test_a_killed_worker_delays_nothing_by_more_than_a_second(
    store: Store, over_redis: Schedulers
) -> None:
    holders = start(over_redis)
    stream = Stream(store, first_ms=500, step_ms=10, count=400)
    await_that(lambda: len(stream.delivered()) > 50, within_s=20, what="hand-overs have begun")
    over_redis.kill(holders["wheel"])
    stream.await_delivered(20)
    assert sorted(stream.delivered()) == sorted(stream.ids)
    lateness_ms = stream.lateness_ms()
    assert min(lateness_ms) >= 0
    assert max(lateness_ms) <= 1_000


def test_every_process_stops_cleanly(over_redis: Schedulers) -> None:
    start(over_redis)
    codes = {
        name: over_redis.terminate(name, within_s=15) for name in ("beat", "worker-1", "worker-2")
    }
    assert set(codes.values()) == {0}
    assert set(over_redis.holders().values()) == {None}
