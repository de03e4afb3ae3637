"""Traces of receives and acks, from the API to the facts of a report."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from analytics.buckets import bucket_of
from analytics.log.tracefold import LATER
from queues.store import tracing
from queues.store.errors import StoreFull
from queues.store.names import JOURNAL_TOPIC
from queues.store.traces import TRACE_QUEUE_ID, decode_trace
from queues.store.tracing import Acked, Traces
from tests.http.conftest import Api
from tests.support.folding import Facts, counts, fold, rows_of


@pytest.fixture(params=["remembered", "read"])
def handed_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether an ack comes to the process that handed the message out, or to another one."""
    how: str = request.param
    if how == "read":
        monkeypatch.setattr(Traces, "_remember", lambda *_: None)
    return how


@pytest.fixture(params=["one by one", "together", "apart"])
def cut_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the fields are cut out of the records, and how far apart these may lie."""
    how: str = request.param
    if how != "one by one":
        monkeypatch.setattr(tracing, "_ONE_BY_ONE_MAX", 0)
    if how == "apart":
        monkeypatch.setattr(tracing, "_SPREAD_MAX", 0)
    return how


@pytest.fixture
def traced(api: Api) -> Iterator[Api]:
    consuming = api.wiring.consuming
    consuming.tracer = api.wiring.store.traces
    yield api
    consuming.tracer = None


def facts(api: Api) -> Facts:
    api.wiring.store.flush()
    return fold(api.wiring.store.root)[0]


def traces(api: Api) -> int:
    return api.wiring.store.queue_bounds(JOURNAL_TOPIC, TRACE_QUEUE_ID).max_offset


@pytest.mark.usefixtures("handed_out", "cut_out")
def test_a_receive_and_an_ack_say_how_long_after_the_due_time_they_came(traced: Api) -> None:
    traced.group()
    traced.send(delay="10s")
    traced.send(delay_level=1)
    traced.wiring.clock.advance(10_000)
    traced.hand_over_what_is_due()
    traced.wiring.clock.advance(700)
    received = traced.receive()
    traced.wiring.clock.advance(5_000)
    traced.post("groups/billing/ack", {"receipts": [one["receipt"] for one in received]})
    told = facts(traced)
    quarter_ms = traced.wiring.clock.now_ms() // 900_000 * 900_000
    timed, level = (quarter_ms, "orders", "timed"), (quarter_ms, "orders", "level", 1)
    assert rows_of(told, "received") == [
        ((*level, "billing", 1), bucket_of(9_700), 1, 9_700, 9_700),
        ((*timed, "billing", 1), bucket_of(700), 1, 700, 700),
    ]
    assert rows_of(told, "acked") == [
        ((*level, "billing", 1), bucket_of(14_700), 1, 14_700, 14_700),
        ((*timed, "billing", 1), bucket_of(5_700), 1, 5_700, 5_700),
    ]
    assert traces(traced) == 2


@pytest.mark.usefixtures("handed_out")
def test_an_ack_of_a_later_attempt_says_so(traced: Api) -> None:
    traced.group()
    traced.send()
    (message,) = traced.receive()
    body = {"receipts": [message["receipt"]], "reason": "the card was refused", "delay": "30s"}
    traced.post("groups/billing/retry", body)
    traced.wiring.clock.advance(30_000)
    traced.hand_over_what_is_due()
    (again,) = traced.receive(lease_seconds=10)
    traced.wiring.clock.advance(11_000)
    traced.expire_leases()
    traced.wiring.clock.advance(60_000)
    traced.hand_over_what_is_due()
    (at_last,) = traced.receive()
    assert (again["attempt"], at_last["attempt"]) == (2, 3)
    traced.post("groups/billing/ack", {"receipts": [at_last["receipt"]]})
    (acked,) = rows_of(facts(traced), "acked")
    assert acked[0][1] == "orders"
    assert acked[0][-2:] == ("billing", LATER)


def test_only_so_many_are_remembered_and_the_last_ones(
    traced: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_REMEMBERED_MAX", 48)
    traced.group()
    received = []
    for _ in range(20):
        traced.send()
        received += traced.receive(max_messages=1)
    traces = traced.wiring.store.traces
    assert traces._remembered_weight == 48
    assert len(traces._remembered) == 8
    receipts = [one["receipt"] for one in received[-8:]]
    for receipt in receipts:
        traced.post("groups/billing/ack", {"receipts": [receipt]})
    assert traces._remembered == {}
    assert traces._remembered_weight == 0


@pytest.mark.usefixtures("handed_out", "cut_out")
def test_one_record_a_call_and_none_where_nothing_came(traced: Api) -> None:
    traced.group()
    assert traced.receive() == []
    for _ in range(40):
        traced.send()
    received = [traced.receive(max_messages=10) for _ in range(4)]
    assert traces(traced) == 4
    receipts = [one["receipt"] for messages in received for one in messages]
    assert len(receipts) == 40
    traced.post("groups/billing/ack", {"receipts": [*receipts[::3], "rubbish"]})
    traced.post("groups/billing/ack", {"receipts": ["rubbish"]})
    assert traces(traced) == 5
    assert (counts(facts(traced))["received"], counts(facts(traced))["acked"]) == (40, 14)


@pytest.mark.usefixtures("cut_out")
def test_a_retried_message_is_told_apart_and_keeps_its_topic(traced: Api) -> None:
    traced.group()
    traced.send()
    (message,) = traced.receive()
    body = {"receipts": [message["receipt"]], "reason": "the card was refused", "delay": "30s"}
    traced.post("groups/billing/retry", body)
    traced.wiring.clock.advance(30_000)
    traced.hand_over_what_is_due()
    (again,) = traced.receive()
    traced.post("groups/billing/dead-letter", {"receipts": [again["receipt"]], "reason": "twice"})
    told = facts(traced)
    received = rows_of(told, "received")
    assert [(row[0][1], row[0][-2:]) for row in received] == [
        ("orders", ("billing", 1)),
        ("orders", ("billing", 2)),
    ]
    (retried,) = rows_of(told, "retried")
    assert retried[0][1:] == ("orders", "billing", 1, "the card was refused")
    assert retried[3] == 30_000
    (dead,) = rows_of(told, "dead")
    assert dead[0][1:3] == ("orders", "billing")
    assert dead[0][-1] == "twice"
    assert counts(told)["redelivered"] == 1


@pytest.mark.usefixtures("cut_out")
def test_what_is_gone_is_left_out_and_the_rest_told_rightly(
    traced: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = traced.wiring.store
    traced.put("topics/orders", {"queues": 1})
    for _ in range(12):
        traced.wiring.clock.advance(1_000)
        traced.send()
    told: list[bytes] = []
    monkeypatch.setattr(store.traces, "_write", lambda _, body: told.append(body))
    asked = Acked("orders", 0, list(range(14)), list(range(1, 15)))
    store.traces.acked("billing", [asked, Acked("mail", 0, [3, 4], [1, 1])])
    whole = decode_trace(told[0]).rows
    assert whole["attempt"].tolist() == list(range(1, 13))
    assert set(np.diff(whole["delivered_ms"])) == {1_000}
    bounds = store._reader.bounds
    monkeypatch.setattr(
        store._reader, "bounds", lambda *queue: replace(bounds(*queue), min_offset=5)
    )
    store.traces.acked("billing", [asked])
    assert decode_trace(told[1]).rows.tolist() == whole[5:].tolist()


def test_an_ack_in_parts_is_told_like_one_of_all(traced: Api) -> None:
    traced.group()
    for _ in range(6):
        traced.send()
    receipts = [one["receipt"] for one in traced.receive(max_messages=6)]
    for some in (receipts[3:5], receipts[:1], [*receipts[1:3], receipts[5]]):
        traced.post("groups/billing/ack", {"receipts": some})
    assert counts(facts(traced))["acked"] == 6


@pytest.mark.parametrize("count", [1, 4])
def test_a_repeated_ack_is_told_once(traced: Api, count: int) -> None:
    traced.group()
    for _ in range(count):
        traced.send()
    receipts = [one["receipt"] for one in traced.receive(max_messages=count)]
    for some in ([*receipts, *receipts[::-1]], receipts, receipts[:1]):
        answer = traced.post("groups/billing/ack", {"receipts": some})
        assert {one["outcome"] for one in answer.json["results"]} == {"acked"}
    assert counts(facts(traced))["acked"] == count


def test_each_consumer_of_a_broadcasting_group_counts_for_the_group(traced: Api) -> None:
    traced.group(mode="broadcasting")
    traced.send()
    for consumer in ("a", "b"):
        assert len(traced.receive(consumer_id=consumer)) == 1
    assert [row[0][-2] for row in rows_of(facts(traced), "received")] == ["billing"]
    assert counts(facts(traced))["received"] == 2


def test_a_trace_that_cannot_be_written_fails_no_call_and_is_counted(
    traced: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced.group()
    traced.send()

    def write(*_: object) -> None:
        raise StoreFull

    monkeypatch.setattr(traced.wiring.store.traces, "_write", write)
    (message,) = traced.receive()
    answer = traced.post("groups/billing/ack", {"receipts": [message["receipt"]]})
    assert answer.json["results"][0]["outcome"] == "acked"
    assert traced.wiring.store.counters()["traces_lost"] == 2
    assert traces(traced) == 0


def test_without_a_tracer_nothing_is_left(api: Api) -> None:
    api.group()
    api.send()
    assert len(api.receive()) == 1
    assert traces(api) == 0
    assert "received" not in counts(facts(api))


def test_sends_are_counted_without_traces(traced: Api) -> None:
    traced.group()
    for _ in range(4):
        traced.send()
        traced.receive()
    counted = traced.wiring.store.counters()
    assert (counted["sent"], counted["traces"]) == (4, 4)
