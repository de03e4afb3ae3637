"""The embedded pair: two processes, each a real Celery worker with beat, and no broker outside."""

import signal

import pytest

from queues.store import Store
from tests.support.platforms import await_that, send_signal
from tests.support.schedulers import Schedulers, Stream

pytestmark = pytest.mark.slow


def start_pair(embedded: Schedulers) -> dict[str, int | None]:
    embedded.run_scheduler("scheduler-1")
    embedded.run_scheduler("scheduler-2")
    holders = embedded.await_holders(lambda holders: holders["levels"] != holders["wheel"])
    embedded.await_standbys()
    return holders


def test_a_killed_holder_delays_nothing_by_more_than_a_second(
    store: Store, embedded: Schedulers
) -> None:
    holders = start_pair(embedded)
    stream = Stream(store, first_ms=500, step_ms=10, count=400)
    await_that(lambda: len(stream.delivered()) > 50, within_s=20, what="hand-overs have begun")
    embedded.kill(holders["wheel"])
    stream.await_delivered(20)
    assert sorted(stream.delivered()) == sorted(stream.ids)
    lateness_ms = stream.lateness_ms()
    assert min(lateness_ms) >= 0
    assert max(lateness_ms) <= 1_000


def test_a_stopped_holder_leaves_cleanly_and_its_standby_goes_on(
    store: Store, embedded: Schedulers
) -> None:
    holders = start_pair(embedded)
    stream = Stream(store, first_ms=500, step_ms=10, count=400)
    await_that(lambda: len(stream.delivered()) > 50, within_s=20, what="hand-overs have begun")
    leaving = next(
        name
        for name in ("scheduler-1", "scheduler-2")
        if embedded.process_id(name) == holders["wheel"]
    )
    assert embedded.terminate(leaving, within_s=10) == 0
    stream.await_delivered(20)
    assert sorted(stream.delivered()) == sorted(stream.ids)
    assert max(stream.lateness_ms()) <= 1_000
    assert "Traceback" not in embedded.log(leaving)


def test_a_hand_over_is_on_time_and_never_early(store: Store, embedded: Schedulers) -> None:
    start_pair(embedded)
    stream = Stream(store, first_ms=1_000, step_ms=5, count=400)
    stream.await_delivered(20)
    lateness_ms = sorted(stream.lateness_ms())
    assert lateness_ms[0] >= 0
    assert lateness_ms[len(lateness_ms) // 2] <= 50


def test_a_holder_that_hangs_is_shown_as_gone(embedded: Schedulers) -> None:
    holders = start_pair(embedded)
    process_id = holders["levels"]
    assert process_id is not None
    send_signal(process_id, signal.SIGSTOP)
    try:
        await_that(
            lambda: embedded.statuses()["levels"] is None, within_s=20, what="the status is stale"
        )
    finally:
        send_signal(process_id, signal.SIGCONT)
    embedded.await_holders(lambda now: now["levels"] == process_id)


def test_one_process_alone_holds_every_loop_and_leaves_cleanly(embedded: Schedulers) -> None:
    embedded.run_scheduler("scheduler-1")
    holders = embedded.await_holders()
    assert set(holders.values()) == {embedded.process_id("scheduler-1")}
    assert embedded.terminate("scheduler-1", within_s=10) == 0
    assert set(embedded.holders().values()) == {None}
