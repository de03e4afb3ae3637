"""A process that dies at any write of a failed attempt: one chain goes on, not two, not none."""

import shutil
from collections import Counter

import pytest

from queues.store.failing import Verdict, dead_letter
from tests.support.chainworld import GROUP, LEASE_MS, RULE, DyingProcess, Process, id_of
from tests.support.clock import ManualClock

NOW = 1_700_000_000_000
COUNT = 3


def retry(process, deliveries):
    return fail(process, deliveries, Verdict("it failed"))


def give_up(process, deliveries):
    return fail(process, deliveries, dead_letter("it never can"))


def fail(process, deliveries, verdict):
    receipts = [delivery.receipt for delivery in deliveries]
    now_ms = process.clock.now_ms()
    return process.consuming.failing.fail(GROUP, receipts, RULE, verdict, now_ms)


def run_out(process, _deliveries):
    process.clock.advance(LEASE_MS)
    process.consuming.expire(process.clock.now_ms())


def everything(process):
    """How often each message still comes, and how often it is a dead letter."""
    seen: Counter[str] = Counter()
    for _ in range(5):
        process.clock.advance(20 * 60_000)
        process.hand_over()
        deliveries = process.receive()
        seen.update(id_of(delivery) for delivery in deliveries)
        receipts = [delivery.receipt for delivery in deliveries]
        process.consuming.ack(GROUP, receipts, process.clock.now_ms())
        process.keep_house()
    return seen + Counter(process.dead())


@pytest.mark.parametrize("others", ["another process is there", "nobody is there"])
@pytest.mark.parametrize("torn", [0.0, 0.6])
@pytest.mark.parametrize("act", [retry, give_up, run_out])
def test_a_stop_at_any_write_leaves_each_message_with_one_chain(tmp_path, act, torn, others):
    for write in range(200):
        root = tmp_path / str(write)
        clock = ManualClock(NOW)
        first = Process(root, clock)
        ids = first.send(COUNT)
        if others == "nobody is there":
            first.close()
        dying = DyingProcess(root, clock)
        deliveries = dying.receive()
        assert len(deliveries) == COUNT
        with dying.dying_at(write, torn=torn):
            act(dying, deliveries)
        survivor = Process(root, clock) if others == "nobody is there" else first
        assert everything(survivor) == Counter(ids)
        survivor.close()
        shutil.rmtree(root)
        if dying.survived:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("act", [retry, give_up])
def test_who_repeats_after_a_death_hears_what_became_of_it(tmp_path, act):
    for write in range(200):
        root = tmp_path / str(write)
        clock = ManualClock(NOW)
        first = Process(root, clock)
        ids = first.send(COUNT)
        dying = DyingProcess(root, clock)
        deliveries = dying.receive()
        with dying.dying_at(write):
            act(dying, deliveries)
        outcomes = {one.outcome for one in act(first, deliveries)}
        assert outcomes == {"retrying" if act is retry else "dead"}
        assert everything(first) == Counter(ids)
        first.close()
        shutil.rmtree(root)
        if dying.survived:
            return
    raise AssertionError("it never ended")


def test_an_ack_after_the_death_counts_only_if_no_chain_began(tmp_path):
    for write in range(200):
        root = tmp_path / str(write)
        clock = ManualClock(NOW)
        first = Process(root, clock)
        ids = first.send(COUNT)
        dying = DyingProcess(root, clock)
        deliveries = dying.receive()
        with dying.dying_at(write):
            retry(dying, deliveries)
        receipts = [delivery.receipt for delivery in deliveries]
        outcomes = first.consuming.ack(GROUP, receipts, clock.now_ms())
        unsettled = {
            id_of(delivery)
            for delivery, outcome in zip(deliveries, outcomes, strict=True)
            if outcome != "acked"
        }
        assert everything(first) == Counter(unsettled)
        assert unsettled <= set(ids)
        first.close()
        shutil.rmtree(root)
        if dying.survived:
            return
    raise AssertionError("it never ended")
