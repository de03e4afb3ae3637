"""A consumer for crash tests: `consumer.py STORE GROUP [ordered]` consumes until it is killed.

It prints one line for every ack that was answered: queue, offset, attempt, and by the machine's
monotonic clock when the message was received and when its ack began.
"""

import sys
import time
from pathlib import Path

from queues.store import Store
from queues.store.consuming import Consuming, Subscription

LEASE_MS = 400
BATCH = 16


def main(root: Path, group: str, *, ordered: bool) -> None:
    """Consume for ever."""
    store = Store.open(root)
    consuming = Consuming(store, b"a secret of the tests")
    consuming.ordered_of = lambda _: ordered
    while True:
        seen = store.bell.value()
        received = consuming.receive(
            group,
            [Subscription("orders")],
            max_messages=BATCH,
            lease_ms=LEASE_MS,
            now_ms=store.clock.now_ms(),
        )
        received_ns = time.monotonic_ns()
        receipts = [delivery.receipt for delivery in received.deliveries]
        began_ns = time.monotonic_ns()
        outcomes = consuming.ack(group, receipts, store.clock.now_ms())
        lines = [
            f"{delivery.queue_id} {delivery.queue_offset} {delivery.attempt}"
            f" {received_ns} {began_ns}\n"
            for delivery, outcome in zip(received.deliveries, outcomes, strict=True)
            if outcome == "acked"
        ]
        sys.stdout.write("".join(lines))
        sys.stdout.flush()
        if not lines:
            store.bell.wait(seen, 0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], ordered=sys.argv[3:] == ["ordered"])
