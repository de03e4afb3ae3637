"""SIGKILL to consumers that retry, give up and redrive: each message has one end, none is lost."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from queues.store import Outgoing, Store
from queues.store.record import decode_record
from tests.support.failer import GROUP, LEASE_MS, SOURCES, hand_over, open_consuming

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "1"))
MESSAGES, QUEUES, CONSUMERS, KILLS, BATCH = 1_500, 3, 2, 12, 12
ROLES = ["keeper"] + ["consumer"] * CONSUMERS

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


class Processes:
    """The keeper and the consumers of one store, each with a file of the acks it was answered."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._files: list[Path] = []
        self.living: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, role: str) -> None:
        self._files.append(self._folder / f"acked-{len(self._files)}")
        with self._files[-1].open("wb") as out:
            command = [sys.executable, "-m", "tests.support.failer", str(self._root), role]
            self.living.append((role, subprocess.Popen(command, cwd=ROOT, stdout=out)))

    def kill_one(self, chance: random.Random) -> str:
        role, victim = self.living.pop(chance.randrange(len(self.living)))
        assert victim.poll() is None, "it ended by itself"
        victim.kill()
        victim.wait()
        return role

    def kill_all(self) -> None:
        for _, process in self.living:
            process.kill()
            process.wait()
        self.living = []

    def acked(self) -> Counter[str]:
        """How often each message's ack was answered with ``acked``; a line cut short is none."""
        lines = [line for path in self._files for line in path.read_text().splitlines(True)]
        return Counter(line.strip() for line in lines if line.endswith("\n"))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_failing_consumers_that_are_killed_leave_each_message_one_end(tmp_path, seed):
    chance = random.Random(seed)
    store = Store.open(tmp_path / "store")
    processes = Processes(tmp_path / "store", tmp_path)
    pause = threading.Event()
    sent: list[str] = []
    try:
        for role in ROLES:
            processes.start(role)
        for _ in range(KILLS):
            sent += send(store, MESSAGES // KILLS)
            pause.wait(chance.uniform(0.2, 0.8))
            processes.start(processes.kill_one(chance))
        enough = MESSAGES // 2
        assert comes_true(lambda: len(processes.acked()) >= enough, pause)
    finally:
        processes.kill_all()
    acked = processes.acked()
    assert set(acked) <= set(sent)
    assert max(acked.values()) == 1, "an answered ack is final"
    rest, dead = drain(store, pause)
    ends = Counter(rest) + Counter(dead)
    assert not set(ends) & set(acked), "what was acked neither comes again nor is dead"
    assert max(ends.values(), default=1) == 1, "one chain a message"
    unheard = set(sent) - set(acked) - set(ends)
    assert len(unheard) <= BATCH * (KILLS + CONSUMERS), "acked, and the answer died"
    store.close()


def send(store: Store, count: int) -> list[str]:
    now_ms = store.clock.now_ms()
    ids = store.new_ids("orders", now_ms, count)
    store.send(
        [
            Outgoing("orders", number % QUEUES, unique_id, b"x", now_ms)
            for number, unique_id in enumerate(ids)
        ]
    )
    return ids


def drain(store: Store, pause: threading.Event) -> tuple[list[str], list[str]]:
    """Ids of what still comes once every lease ended, and of the dead letters left."""
    consuming = open_consuming(store)
    found: list[str] = []
    quiet = 0
    while quiet < 3:
        pause.wait(LEASE_MS / 1000)
        moved = consuming.expire(store.clock.now_ms()) + hand_over(store)
        deliveries = consuming.receive(
            GROUP, SOURCES, max_messages=MESSAGES, lease_ms=60_000, now_ms=store.clock.now_ms()
        ).deliveries
        found += [decode_record(delivery.record).unique_id or "" for delivery in deliveries]
        receipts = [delivery.receipt for delivery in deliveries]
        consuming.ack(GROUP, receipts, store.clock.now_ms())
        quiet = 0 if moved or deliveries else quiet + 1
    consuming.close()
    lookup = store.chains.lookup
    kept = lookup.letters(GROUP)
    letters = [lookup.letter_at(GROUP, unit) for unit in kept.units[~kept.redriven].tolist()]
    return found, [one.id for one in letters if one is not None]


def comes_true(holds, pause, timeout_s: float = 120.0) -> bool:
    for _ in range(int(timeout_s / 0.1)):
        if holds():
            return True
        pause.wait(0.1)
    return bool(holds())
