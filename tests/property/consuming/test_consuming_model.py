"""Consuming against a dictionary: whatever is done in whatever order, over restarts and deaths."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from queues.store.consuming import Consuming, Delivery, Received, Subscription
from tests.support.faulty_disk import Died, Fate, FaultyDisk, UnsyncedDisk
from tests.support.ledgerchecks import assert_ledgers_sound
from tests.support.queuesinmemory import QueuesInMemory

LEASE_MS = 10_000
QUEUE_COUNT = 2
TAGS = ("a", "b", None)

Key = tuple[int, int]


@dataclass
class Message:
    """What the model knows of one message in the group."""

    tag: str | None
    readable: bool = True
    acked: bool = False
    attempt: int = 0
    until_ms: int = 0
    #: How many processes died since that may each have leased it once more.
    maybe_more: int = 0
    #: What settles it; None without a lease.
    receipt: str | None = None
    #: When the attempt began.
    started_ms: int = 0


class ConsumingMachine(RuleBasedStateMachine):
    """One group of one topic, and two processes (a `Consuming` each)."""

    shown = Bundle("shown")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="consuming-"))
        self.queues = QueuesInMemory(self.root, UnsyncedDisk())
        for queue_id in range(QUEUE_COUNT):
            self.queues.add_queue("orders", queue_id)
        self.now_ms = 1_700_000_000_000
        self.life = 0
        self.messages: dict[Key, Message] = {}
        self.processes = [self.start_process() for _ in range(2)]

    @initialize(tags=st.sampled_from(("*", "a", "a || b")))
    def subscribe(self, tags: str) -> None:
        self.subscriptions = [Subscription("orders", tags)]
        self.wanted = set(TAGS) if tags == "*" else set(tags.split(" || "))

    def start_process(self) -> Consuming:
        return Consuming(self.queues, b"secret")

    def teardown(self) -> None:
        for process in self.processes:
            process.close()
        shutil.rmtree(self.root)

    # ---- the queues

    @rule(
        queue_id=st.integers(0, QUEUE_COUNT - 1),
        tags=st.lists(st.sampled_from(TAGS), min_size=1, max_size=9),
    )
    def send(self, queue_id: int, tags: list[str | None]) -> None:
        for tag in tags:
            offset = self.queues.put("orders", queue_id, b"x", tag=tag)
            self.messages[queue_id, offset] = Message(tag)

    @rule(queue_id=st.integers(0, QUEUE_COUNT - 1), share=st.floats(0, 1))
    def damage(self, queue_id: int, share: float) -> None:
        offsets = [offset for queue, offset in self.messages if queue == queue_id]
        if offsets:
            offset = int(share * max(offsets))
            self.queues.damage("orders", queue_id, offset)
            self.messages[queue_id, offset].readable = False

    @rule(queue_id=st.integers(0, QUEUE_COUNT - 1), share=st.floats(0, 0.5))
    def retire(self, queue_id: int, share: float) -> None:
        bounds = self.queues.queue_bounds("orders", queue_id)
        end = bounds.min_offset + int(share * (bounds.max_offset - bounds.min_offset))
        self.queues.retire("orders", queue_id, end)

    def is_ready(self, key: Key) -> bool:
        message, (queue_id, offset) = self.messages[key], key
        return (
            message.readable
            and not message.acked
            and message.tag in self.wanted
            and message.until_ms <= self.now_ms
            and offset >= self.queues.queue_bounds("orders", queue_id).min_offset
        )

    # ---- the group

    def ask(self, process: Consuming, count: int) -> Received:
        return process.receive(
            "g", self.subscriptions, max_messages=count, lease_ms=LEASE_MS, now_ms=self.now_ms
        )

    @rule(
        target=shown,
        process=st.integers(0, 1),
        count=st.integers(1, 12),
        after_ms=st.sampled_from((0, 0, 1, LEASE_MS)),
    )
    def receive(self, process: int, count: int, after_ms: int):  # type: ignore[no-untyped-def]
        self.now_ms += after_ms
        deliveries = self.ask(self.processes[process], count).deliveries
        last: dict[int, int] = {}
        for delivery in deliveries:
            assert last.get(delivery.queue_id, -1) < delivery.queue_offset
            last[delivery.queue_id] = delivery.queue_offset
            self.check_delivery(delivery)
        if len(deliveries) < count:
            assert not [key for key in self.messages if self.is_ready(key)]
        return multiple(*[(self.life, delivery) for delivery in deliveries])

    def check_delivery(self, delivery: Delivery) -> None:
        key = delivery.queue_id, delivery.queue_offset
        message = self.messages[key]
        assert self.is_ready(key)
        assert 1 <= delivery.attempt - message.attempt <= 1 + message.maybe_more
        message.attempt, message.until_ms = delivery.attempt, delivery.lease_expires_ms
        message.receipt, message.started_ms = delivery.receipt, self.now_ms
        message.maybe_more = 0

    @rule(process=st.integers(0, 1), one=shown)
    def ack_one(self, process: int, one: tuple[int, Delivery]) -> None:
        self.ack(self.processes[process], [one])

    @rule(process=st.integers(0, 1), some=st.lists(shown, max_size=9))
    def ack_some(self, process: int, some: list[tuple[int, Delivery]]) -> None:
        self.ack(self.processes[process], some)

    def ack(self, process: Consuming, some: list[tuple[int, Delivery]]) -> None:
        outcomes = process.ack("g", [delivery.receipt for _, delivery in some], self.now_ms)
        for (life, delivery), outcome in zip(some, outcomes, strict=True):
            message = self.messages[delivery.queue_id, delivery.queue_offset]
            if life != self.life or delivery.receipt != message.receipt:
                assert outcome == "expired"
            elif message.acked or self.now_ms < message.until_ms:
                assert outcome == "acked"
            else:
                assert outcome in {"acked", "expired"}, "late: has anybody acted on its expiry?"
            message.acked |= outcome == "acked"

    @rule(target=shown, process=st.integers(0, 1), one=shown, lease_ms=st.integers(1, 3 * LEASE_MS))
    def extend(self, process: int, one: tuple[int, Delivery], lease_ms: int):  # type: ignore[no-untyped-def]
        life, delivery = one
        message = self.messages[delivery.queue_id, delivery.queue_offset]
        (extended,) = self.processes[process].leases.extend(
            "g", [delivery.receipt], lease_ms=lease_ms, now_ms=self.now_ms
        )
        current = life == self.life and delivery.receipt == message.receipt and not message.acked
        if not current:
            assert extended.outcome == "expired"
        elif self.now_ms < message.until_ms:
            assert extended.outcome == "extended", "a late one: has anybody acted on its expiry?"
        if extended.new_receipt is None or extended.until_ms is None:
            return multiple()
        assert extended.until_ms == self.now_ms + lease_ms
        assert extended.new_receipt != message.receipt
        message.receipt, message.until_ms = extended.new_receipt, extended.until_ms
        longer = delivery._replace(receipt=extended.new_receipt, lease_expires_ms=extended.until_ms)
        return multiple((life, longer))

    @rule(process=st.integers(0, 1), one=shown)
    def release(self, process: int, one: tuple[int, Delivery]) -> None:
        life, delivery = one
        message = self.messages[delivery.queue_id, delivery.queue_offset]
        (outcome,) = self.processes[process].leases.release("g", [delivery.receipt])
        current = life == self.life and delivery.receipt == message.receipt and not message.acked
        if not current:
            assert outcome == "expired"
        elif self.now_ms < message.until_ms:
            assert outcome == "released"
        if outcome == "released":
            message.attempt -= 1
            message.receipt, message.until_ms = None, 0

    @rule()
    def compare_the_leases(self) -> None:
        listed = {
            (lease.place.queue_id, lease.queue_offset): (lease.attempt, lease.until_ms)
            for lease in self.processes[1].leases.held("g", self.now_ms)
        }
        held = {
            key: (message.attempt, message.until_ms)
            for key, message in self.messages.items()
            if message.until_ms > self.now_ms and not message.acked
        }
        assert held.items() <= listed.items()
        assert len(listed) - len(held) <= sum(one.maybe_more for one in self.messages.values())

    @rule(process=st.integers(0, 1), step_ms=st.sampled_from((1, LEASE_MS // 2, LEASE_MS)))
    def keep_house(self, process: int, step_ms: int) -> None:
        self.now_ms += step_ms
        self.processes[process].expire(self.now_ms)
        self.processes[process].save_offsets()

    @rule(process=st.integers(0, 1))
    def drop_the_group(self, process: int) -> None:
        self.processes[process].drop_group("g")
        self.life += 1
        for message in self.messages.values():
            message.acked = False
            message.attempt = message.until_ms = message.maybe_more = 0
            message.receipt = None

    @rule(process=st.integers(0, 1), share=st.floats(0, 1))
    def begin_anew(self, process: int, share: float) -> None:
        starts = {
            ("orders", queue_id): int(
                share * self.queues.queue_bounds("orders", queue_id).max_offset
            )
            for queue_id in range(QUEUE_COUNT)
        }
        self.processes[process].resetting.reset("g", starts)
        self.life += 1
        for (queue_id, offset), message in self.messages.items():
            message.acked = offset < starts["orders", queue_id]
            message.attempt = message.until_ms = message.maybe_more = 0
            message.receipt = None

    @rule()
    def compare_the_lag(self) -> None:
        self.processes[0].expire(self.now_ms)
        lags = self.processes[0].lag("g", self.subscriptions)
        for lag in lags:
            keys = [key for key in self.messages if key[0] == lag.queue_id]
            held = [key for key in keys if self.messages[key].until_ms > self.now_ms]
            assert lag.leased == len([key for key in held if not self.messages[key].acked])
            assert lag.ready >= len([key for key in keys if self.is_ready(key)])

    # ---- processes

    @rule(process=st.integers(0, 1), clean=st.booleans())
    def restart(self, process: int, clean: bool) -> None:
        before = self.processes[process]
        if clean:
            before.close()
        else:
            before._ledgers.close()
        self.processes[process] = self.start_process()

    @rule(
        die_at=st.integers(0, 9),
        arrived=st.sampled_from((0.0, 1.0)),
        count=st.integers(1, 9),
        some=st.lists(shown, max_size=9),
    )
    def die(
        self, die_at: int, arrived: float, count: int, some: list[tuple[int, Delivery]]
    ) -> None:
        """Another process acks, receives and saves, and dies at one of its writes."""
        disk = FaultyDisk(Fate(die_at, torn=arrived))
        self.queues.disk = disk
        with contextlib.suppress(Died):
            process = self.start_process()
            process.ack("g", [delivery.receipt for _, delivery in some], self.now_ms)
            self.ask(process, count)
            process.expire(self.now_ms)
            process.save_offsets()
        disk.bury()
        self.queues.disk = UnsyncedDisk()
        self.ack(self.processes[0], some)  # Nobody heard its answers, and so it is asked again.
        for message in self.messages.values():
            message.maybe_more += not message.acked
        self.now_ms += LEASE_MS

    @invariant()
    def ledgers_are_sound(self) -> None:
        assert_ledgers_sound(self.queues)


class TestConsuming(ConsumingMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(
        max_examples=50,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
