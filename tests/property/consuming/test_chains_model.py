"""Retries, dead letters and redrives against a dictionary, in any order and over restarts."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from queues.store.consuming import Delivery
from queues.store.failing import Verdict, dead_letter
from tests.support.chainworld import GROUP, LEASE_MS, RULE, Process, id_of
from tests.support.clock import ManualClock

STEPS_MS = (1, 10_000, 30_000, LEASE_MS)


@dataclass
class Message:
    """What the model knows of one message in the group."""

    #: ``ready``, ``leased``, ``retrying``, ``acked``, ``dead`` or ``cancelled``.
    state: str = "ready"
    #: Attempts since it was sent or redriven.
    attempt: int = 0
    receipt: str | None = None
    until_ms: int = 0
    due_ms: int = 0
    deaths: int = 0
    #: Its dead letter was driven again.
    redriven: bool = False


class ChainsMachine(RuleBasedStateMachine):
    """One group of one topic, and two processes."""

    shown = Bundle("shown")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="chains-"))
        self.clock = ManualClock(1_700_000_000_000)
        self.processes = [Process(self.root, self.clock) for _ in range(2)]
        self.messages: dict[str, Message] = {}
        #: What receipts were told that failed their attempt.
        self.failed: dict[str, str] = {}

    def teardown(self) -> None:
        for process in self.processes:
            process.close()
        shutil.rmtree(self.root)

    # ---- the group

    @rule(process=st.integers(0, 1), count=st.integers(1, 3))
    def send(self, process: int, count: int) -> None:
        for message_id in self.processes[process].send(count):
            self.messages[message_id] = Message()

    @rule(target=shown, process=st.integers(0, 1), count=st.integers(1, 5))
    def receive(self, process: int, count: int):  # type: ignore[no-untyped-def]
        self.hand_over(process)
        deliveries = self.processes[process].receive(count)
        for delivery in deliveries:
            message = self.messages[id_of(delivery)]
            assert message.state == "ready"
            assert delivery.attempt == message.attempt + 1
            message.state, message.attempt = "leased", delivery.attempt
            message.receipt, message.until_ms = delivery.receipt, delivery.lease_expires_ms
        if len(deliveries) < count:
            assert not [one for one in self.messages.values() if one.state == "ready"]
        return multiple(*deliveries)

    def hand_over(self, process: int) -> None:
        self.processes[process].hand_over()
        for message in self.messages.values():
            if message.state == "retrying" and message.due_ms <= self.clock.now_ms():
                message.state = "ready"

    @rule(process=st.integers(0, 1), one=shown)
    def ack(self, process: int, one: Delivery) -> None:
        message = self.messages[id_of(one)]
        consuming, now_ms = self.processes[process].consuming, self.clock.now_ms()
        (outcome,) = consuming.ack(GROUP, [one.receipt], now_ms)
        mine = one.receipt == message.receipt
        assert outcome == ("acked" if mine and message.state in ("leased", "acked") else "expired")
        if outcome == "acked":
            message.state = "acked"

    @rule(process=st.integers(0, 1), one=shown)
    def release(self, process: int, one: Delivery) -> None:
        message = self.messages[id_of(one)]
        (outcome,) = self.processes[process].consuming.leases.release(GROUP, [one.receipt])
        mine = one.receipt == message.receipt and message.state == "leased"
        assert outcome == ("released" if mine else "expired")
        if mine:
            message.state, message.receipt = "ready", None
            message.attempt -= 1

    @rule(
        process=st.integers(0, 1), some=st.lists(shown, min_size=1, max_size=4), dies=st.booleans()
    )
    def fail(self, process: int, some: list[Delivery], dies: bool) -> None:
        verdict = dead_letter("never") if dies else Verdict("it failed")
        receipts, now_ms = [one.receipt for one in some], self.clock.now_ms()
        failing = self.processes[process].consuming.failing
        outcomes = failing.fail(GROUP, receipts, RULE, verdict, now_ms)
        for one, outcome in zip(some, outcomes, strict=True):
            message = self.messages[id_of(one)]
            if one.receipt != message.receipt:
                # A receipt that failed its attempt may tell so again, however far the chain is.
                assert outcome.outcome in ("expired", self.failed.get(one.receipt))
                continue
            if message.state == "leased":
                self.note_failure(message, dies=dies)
            expected = {"retrying": "retrying", "ready": "retrying", "dead": "dead"}
            assert outcome.outcome == expected.get(self.told(message), "expired")
            self.failed[one.receipt] = outcome.outcome

    def told(self, message: Message) -> str:
        """What a receipt that failed its message tells: a redrive and a cancel change nothing."""
        if message.state == "cancelled":
            return "retrying"
        return "dead" if message.redriven and message.attempt == 0 else message.state

    def note_failure(self, message: Message, *, dies: bool) -> None:
        after = RULE.after(message.attempt)
        if dies or after.dead:
            message.state, message.redriven = "dead", False
            message.deaths += 1
        else:
            message.state = "retrying"
            message.due_ms = self.clock.now_ms() + after.delay_ms

    @rule(process=st.integers(0, 1), step_ms=st.sampled_from(STEPS_MS))
    def keep_house(self, process: int, step_ms: int) -> None:
        self.clock.advance(step_ms)
        self.processes[process].keep_house()
        for message in self.messages.values():
            if message.state == "leased" and message.until_ms <= self.clock.now_ms():
                self.note_failure(message, dies=False)
                message.receipt = None

    # ---- operators

    @rule(process=st.integers(0, 1), share=st.floats(0, 1, exclude_max=True), again=st.booleans())
    def redrive(self, process: int, share: float, again: bool) -> None:
        if not self.messages:
            return
        message_id = list(self.messages)[int(share * len(self.messages))]
        message = self.messages[message_id]
        chains = self.processes[process].store.chains
        outcome = chains.redrive(GROUP, message_id, by="me", retry_queues=1, again=again).outcome
        if not message.deaths:
            assert outcome == "not_found"
        elif message.state == "dead" and not message.redriven:
            assert outcome == "redriven"
        elif message.state in ("ready", "leased", "retrying"):
            assert outcome == "in_progress"
        else:
            assert outcome == ("redriven" if again else "already_redriven")
        if outcome == "redriven":
            message.state, message.attempt, message.redriven = "ready", 0, True

    @rule(process=st.integers(0, 1), share=st.floats(0, 1, exclude_max=True))
    def cancel_retry(self, process: int, share: float) -> None:
        if not self.messages:
            return
        message_id = list(self.messages)[int(share * len(self.messages))]
        message = self.messages[message_id]
        chains = self.processes[process].store.chains
        outcome = chains.cancel_retry(GROUP, message_id, by="me").outcome
        if message.state == "retrying":
            assert outcome == "cancelled"
            message.state = "cancelled"
        else:
            assert outcome in ("too_late", "not_found", "already_cancelled")

    @rule(process=st.integers(0, 1), clean=st.booleans())
    def restart(self, process: int, clean: bool) -> None:
        before = self.processes[process]
        if clean:
            before.close()
        else:
            before.consuming._ledgers.close()
            before.store.close()
        self.processes[process] = Process(self.root, self.clock)

    @invariant()
    def the_dead_letters_are_those_that_died(self) -> None:
        dead = [
            message_id
            for message_id, message in self.messages.items()
            if message.deaths and not message.redriven
        ]
        assert self.processes[0].dead() == sorted(dead)


class TestChains(ChainsMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(
        max_examples=25,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
