"""A consumer that fails, for crash tests: `python failer.py STORE ROLE` goes on until it is killed.

As ``consumer`` it acknowledges, retries or gives up what it receives, and drives dead letters
again; it prints one line for every ack that was answered: the message's id. As ``keeper`` it does
what the loops and housekeeping do.
"""

import random
import sys
from pathlib import Path

import numpy as np

from queues.store import SCHEDULE_TOPIC, TIMER_TOPIC, Store
from queues.store.consuming import Consuming, Subscription
from queues.store.failing import Verdict, dead_letter
from queues.store.levels import LevelTable
from queues.store.record import decode_record
from queues.store.retryrules import RetryRule

GROUP = "billing"
SOURCES = [Subscription("orders"), Subscription(f"%RETRY%{GROUP}")]
RULE = RetryRule(LevelTable.parse("1s 5s"), retries_max=3, queues=2, delays_ms=(20, 60))
LEASE_MS = 600
SECRET = b"a secret of the tests"


def open_consuming(store: Store) -> Consuming:
    """Consuming of the group whose rule the tests know."""
    consuming = Consuming(store, SECRET)
    consuming.rule_of = lambda _: RULE
    return consuming


def hand_over(store: Store) -> int:
    """Hand over whatever is due."""
    handed = 0
    for topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
        for queue_id in store.queue_ids(topic):
            start = store.first_unsettled(topic, queue_id)
            end = store.queue_bounds(topic, queue_id).max_offset
            found = store.schedule(topic, queue_id, start, end)
            due = (found.settled == 0) & (found.due_ms <= store.clock.now_ms())
            handed += store.hand_over(topic, queue_id, np.flatnonzero(due) + found.start).handed
    return handed


def consume(store: Store, consuming: Consuming, chance: random.Random) -> None:
    """One round of a consumer."""
    seen, now_ms = store.bell.value(), store.clock.now_ms()
    deliveries = consuming.receive(
        GROUP, SOURCES, max_messages=12, lease_ms=LEASE_MS, now_ms=now_ms
    ).deliveries
    if not deliveries:
        store.bell.wait(seen, 0.02)
    shares: dict[str, list[tuple[str, str]]] = {"ack": [], "retry": [], "die": [], "leave": []}
    for delivery in deliveries:
        choice = chance.choices(list(shares), (6, 3, 1, 0.3))[0]
        message_id = decode_record(delivery.record).unique_id or ""
        shares[choice].append((message_id, delivery.receipt))
    receipts = {name: [receipt for _, receipt in those] for name, those in shares.items()}
    now_ms = store.clock.now_ms()
    consuming.failing.fail(GROUP, receipts["retry"], RULE, Verdict("it failed"), now_ms)
    consuming.failing.fail(GROUP, receipts["die"], RULE, dead_letter("never"), now_ms)
    outcomes = consuming.ack(GROUP, receipts["ack"], store.clock.now_ms())
    for (message_id, _), outcome in zip(shares["ack"], outcomes, strict=True):
        if outcome == "acked":
            sys.stdout.write(f"{message_id}\n")
    sys.stdout.flush()
    if chance.random() < 0.2:
        drive_again(store, chance)


def drive_again(store: Store, chance: random.Random) -> None:
    """Drive one dead letter again, if there is any."""
    chains = store.chains
    found = chains.lookup.letters(GROUP)
    units = found.units[~found.redriven]
    letter = chains.lookup.letter_at(GROUP, int(chance.choice(units))) if len(units) else None
    if letter is not None:
        chains.redrive(GROUP, letter.id, by="failer", retry_queues=RULE.queues)


def keep(store: Store, consuming: Consuming) -> None:
    """One round of the loops and of housekeeping."""
    seen = store.bell.value()
    if not hand_over(store):
        store.bell.wait(seen, 0.02)
    consuming.expire(store.clock.now_ms())
    consuming.save_offsets()


def main(root: Path, role: str) -> None:
    """Go on for ever."""
    store = Store.open(root)
    consuming = open_consuming(store)
    chance = random.Random()
    while True:
        if role == "keeper":
            keep(store, consuming)
        else:
            consume(store, consuming, chance)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
