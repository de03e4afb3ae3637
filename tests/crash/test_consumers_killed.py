"""SIGKILL to consumers at random moments: nothing is lost, and nothing acked comes again."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from queues.store import Outgoing, Store
from queues.store.consuming import Consuming, Subscription

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "1"))
MESSAGES, QUEUES, CONSUMERS, KILLS = 6_000, 3, 3, 12
LEASE_MS = 400
SUBSCRIPTIONS = [Subscription("orders")]

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]


class Consumers:
    """Processes that consume one store, each with a file of the acks that it was answered."""

    def __init__(self, root: Path, folder: Path, *options: str) -> None:
        self._root, self._folder, self._options = root, folder, options
        self._files: list[Path] = []
        self.living: list[subprocess.Popen[bytes]] = []

    def start_one(self) -> None:
        self._files.append(self._folder / f"acked-{len(self._files)}")
        with self._files[-1].open("wb") as out:
            command = [sys.executable, "-m", "tests.support.consumer", str(self._root), "g"]
            command += self._options
            self.living.append(subprocess.Popen(command, cwd=ROOT, stdout=out))

    def kill_one(self, chance: random.Random) -> None:
        victim = self.living.pop(chance.randrange(len(self.living)))
        victim.kill()
        victim.wait()

    def kill_all(self) -> None:
        chance = random.Random(0)
        while self.living:
            self.kill_one(chance)

    def lines(self) -> list[list[int]]:
        """What they told of acks that were answered; a line cut short is none."""
        lines = [line for path in self._files for line in path.read_text().splitlines(True)]
        return [list(map(int, line.split())) for line in lines if line.endswith("\n")]

    def acked(self) -> Counter[tuple[int, int]]:
        """How often each message's ack was answered with ``acked``."""
        return Counter((queue_id, offset) for queue_id, offset, *_ in self.lines())


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_consumers_that_are_killed_lose_nothing_and_repeat_nothing(tmp_path, seed):
    chance = random.Random(seed)
    store = Store.open(tmp_path / "store")
    consumers = Consumers(tmp_path / "store", tmp_path)
    try:
        for _ in range(CONSUMERS):
            consumers.start_one()
        pause = threading.Event()
        for _ in range(KILLS):
            send(store, MESSAGES // KILLS)
            pause.wait(chance.uniform(0.1, 0.6))
            consumers.kill_one(chance)
            consumers.start_one()
        assert comes_true(lambda: len(consumers.acked()) >= MESSAGES - 16 * KILLS, pause)
    finally:
        consumers.kill_all()
    acked = consumers.acked()
    assert max(acked.values()) == 1, "an answered ack is final"
    rest = drain(store)
    assert not set(rest) & set(acked), "what was acked does not come again"
    sent = {
        (queue_id, offset) for queue_id in range(QUEUES) for offset in range(MESSAGES // QUEUES)
    }
    unheard = sent - set(acked) - set(rest)
    assert len(unheard) <= 16 * (KILLS + CONSUMERS), "acked, and the answer died with its process"
    store.close()


def test_consumers_of_an_ordered_group_that_are_killed_keep_the_order(tmp_path):
    chance, pause = random.Random(FIRST_SEED), threading.Event()
    store = Store.open(tmp_path / "store")
    consumers = Consumers(tmp_path / "store", tmp_path, "ordered")
    try:
        for _ in range(CONSUMERS):
            consumers.start_one()
        for _ in range(KILLS // 2):
            send(store, 150, keys=5)
            pause.wait(chance.uniform(0.1, 0.6))
            consumers.kill_one(chance)
            consumers.start_one()
        wanted = 150 * (KILLS // 2)
        assert comes_true(lambda: len(consumers.acked()) >= wanted - 16 * KILLS, pause)
    finally:
        consumers.kill_all()
    before: dict[tuple[int, int], tuple[int, int]] = {}
    for queue_id, offset, _, received_ns, began_ns in sorted(consumers.lines()):
        key = queue_id, offset % 5
        last_offset, over_ns = before.get(key, (-1, 0))
        assert last_offset < offset, "an answered ack is final"
        assert over_ns < received_ns, "what was before it in its key was over"
        before[key] = offset, began_ns
    assert max(consumers.acked().values()) == 1
    store.close()


def send(store: Store, count: int, *, keys: int = 0) -> None:
    now_ms = store.clock.now_ms()
    ids = store.new_ids("orders", now_ms, count)
    store.send(
        [
            Outgoing(
                "orders",
                number % QUEUES,
                unique_id,
                b"x",
                now_ms,
                # The offset in its queue modulo `keys`: a send begins where the one before ended.
                properties={"__SHARDINGKEY": f"{number // QUEUES % keys}"} if keys else {},
            )
            for number, unique_id in enumerate(ids)
        ]
    )


def drain(store: Store) -> list[tuple[int, int]]:
    """What is still to come once every lease has run out."""
    consuming = Consuming(store, b"a secret of the tests")
    received = consuming.receive(
        "g",
        SUBSCRIPTIONS,
        max_messages=MESSAGES,
        lease_ms=LEASE_MS,
        now_ms=store.clock.now_ms() + LEASE_MS,
    )
    consuming.close()
    return [(delivery.queue_id, delivery.queue_offset) for delivery in received.deliveries]


def comes_true(holds, pause, timeout_s: float = 60.0) -> bool:
    for _ in range(int(timeout_s / 0.1)):
        if holds():
            return True
        pause.wait(0.1)
    return bool(holds())
