"""The store against a dictionary: whatever is done to it, in whatever order, both say the same."""

import random
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

from queues.store import Store
from tests.support.clock import ManualClock
from tests.support.faulty_disk import Died
from tests.support.forgetful_disk import ForgetfulDisk, Machine
from tests.support.invariants import assert_sound
from tests.support.storeworld import SYNC, delivered_ids, hand_over_due, open_store, outgoing

_LEVEL_MS = {1: 1_000, 2: 5_000, 3: 10_000}


@dataclass
class Expected:
    """What is true of a message."""

    state: str
    due_ms: int
    version: int = 1


class StoreModel(RuleBasedStateMachine):
    """Operations on a store in sync mode, each with what it must answer."""

    messages = Bundle("messages")

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.machine = Machine(self.directory / "store")
        self.clock = ManualClock()
        self.expected: dict[str, Expected] = {}
        self.disk: ForgetfulDisk
        self.store: Store
        self.open()

    def open(self) -> None:
        self.disk = self.machine.disk()
        root = self.directory / "store"
        self.store = open_store(root, self.clock, settings=SYNC, disk=self.disk)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            assert_sound(self.store)
            for message_id in self.expected:
                self.look_at(message_id)
            self.store.close()
            shutil.rmtree(self.directory)

    # -- sending

    @rule(target=messages, levels=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=4))
    def send_levels(self, levels: list[int]) -> object:
        sent = [outgoing(self.store, level=level) for level in levels]
        for message, placed in zip(sent, self.store.send(sent), strict=True):
            # A step back of the clock is hidden up to 100 ms.
            ahead_ms = placed.due_ms - self.clock.now_ms() - _LEVEL_MS[message.level]
            assert 0 <= ahead_ms <= 100
            self.expected[message.unique_id] = Expected("scheduled", placed.due_ms)
        return multiple(*(message.unique_id for message in sent))

    @rule(
        target=messages,
        delays=st.lists(st.integers(-5, 20_000), min_size=1, max_size=20),
        body_bytes=st.integers(0, 3_000),
    )
    def send_timed(self, delays: list[int], body_bytes: int) -> object:
        now_ms = self.clock.now_ms()
        sent = [
            outgoing(self.store, due_ms=now_ms + delay, body_bytes=body_bytes) for delay in delays
        ]
        for message, delay in zip(sent, delays, strict=True):
            state = "scheduled" if delay > 0 else "ready"
            self.expected[message.unique_id] = Expected(state, now_ms + max(0, delay))
        self.store.send(sent)
        return multiple(*(message.unique_id for message in sent))

    # -- changes

    @rule(message_id=messages)
    def cancel(self, message_id: str) -> None:
        expected = self.expected[message_id]
        outcome = {"ready": "too_late", "cancelled": "already_cancelled"}
        told = self.store.cancel(message_id, by="model").outcome
        assert told == outcome.get(expected.state, "cancelled")
        if told == "cancelled":
            expected.state = "cancelled"

    @rule(message_id=messages)
    def restore(self, message_id: str) -> None:
        expected = self.expected[message_id]
        told = self.store.restore(message_id, by="model").outcome
        assert told == ("restored" if expected.state == "cancelled" else "not_cancelled")
        if told == "restored":
            expected.state = "scheduled"
            expected.due_ms = max(expected.due_ms, self.clock.now_ms())

    @rule(message_id=messages, delay_ms=st.integers(-1_000, 20_000))
    def move(self, message_id: str, delay_ms: int) -> None:
        expected = self.expected[message_id]
        due_ms = self.clock.now_ms() + delay_ms
        told = self.store.move(message_id, due_ms, by="model").outcome
        outcome = {"ready": "too_late", "cancelled": "cancelled"}
        assert told == outcome.get(expected.state, "moved")
        if told == "moved":
            expected.state, expected.due_ms = "scheduled", due_ms
            expected.version += 1

    @rule(message_id=messages)
    def park(self, message_id: str) -> None:
        view, expected = self.store.find(message_id), self.expected[message_id]
        if not view.held_topic:
            return
        place = view.held_topic, view.held_queue_id, view.held_offset
        assert self.store.park(*place, reason="model") == (expected.state == "scheduled")
        if expected.state == "scheduled":
            expected.state = "parked"

    @rule(message_id=messages)
    def release(self, message_id: str) -> None:
        expected = self.expected[message_id]
        told = self.store.release(message_id, by="model").outcome
        assert told == ("released" if expected.state == "parked" else "not_parked")
        if told == "released":
            expected.state = "scheduled"

    @rule()
    def hand_over(self) -> None:
        hand_over_due(self.store)
        for expected in self.expected.values():
            if expected.state == "scheduled" and expected.due_ms <= self.clock.now_ms():
                expected.state = "ready"

    # -- time, and what may happen to processes and machines

    @rule(step_ms=st.integers(1, 15_000))
    def advance(self, step_ms: int) -> None:
        self.clock.advance(step_ms)

    @rule(step_ms=st.sampled_from([101, 5_000, 7_200_000]))
    def step_back(self, step_ms: int) -> None:
        self.clock.step_back(step_ms)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.machine.kill()
        self.open()

    @rule(write=st.integers(0, 40), torn=st.floats(0, 1))
    def die_handing_over(self, write: int, torn: float) -> None:
        self.disk.fate.die_at, self.disk.fate.torn = self.disk.fate.writes + write, torn
        try:
            self.hand_over()
        except Died:
            self.machine.kill()
            self.open()
            self.hand_over()
        self.disk.fate.die_at = None

    @rule(seed=st.integers(0, 1 << 16))
    def lose_power(self, seed: int) -> None:
        self.machine.power_cut(random.Random(seed))
        self.open()

    # -- what must be true

    def look_at(self, message_id: str) -> None:
        view, expected = self.store.find(message_id), self.expected[message_id]
        assert view is not None
        assert (view.state, view.version) == (expected.state, expected.version)
        assert view.due_ms == expected.due_ms

    @invariant()
    def what_is_ready_was_delivered_once_and_nothing_else(self) -> None:
        if hasattr(self, "store"):
            ready = [m for m, expected in self.expected.items() if expected.state == "ready"]
            assert delivered_ids(self.store) == sorted(ready)

    @invariant()
    def what_is_parked_is_listed(self) -> None:
        if hasattr(self, "store"):
            parked = {m for m, expected in self.expected.items() if expected.state == "parked"}
            assert {view.id for view in self.store.parked(limit=1_000)} == parked


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
