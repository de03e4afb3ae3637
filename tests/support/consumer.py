"""A consumer for crash tests: `python consumer.py STORE GROUP` consumes until it is killed.

It prints one line for every ack that was answered: queue, offset, attempt.
"""

import sys
from pathlib import Path

from queues.store import Store
from queues.store.consuming import Consuming, Subscription

LEASE_MS = 400
BATCH = 16


def main(root: Path, group: str) -> None:
    """Consume for ever."""
    store = Store.open(root)
    consuming = Consuming(store, b"a secret of the tests")
    while True:
        seen = store.bell.value()
        received = consuming.receive(
            group,
            [Subscription("orders")],
            max_messages=BATCH,
            lease_ms=LEASE_MS,
            now_ms=store.clock.now_ms(),
        )
        receipts = [delivery.receipt for delivery in received.deliveries]
        outcomes = consuming.ack(group, receipts, store.clock.now_ms())
        lines = [
            f"{delivery.queue_id} {delivery.queue_offset} {delivery.attempt}\n"
            for delivery, outcome in zip(received.deliveries, outcomes, strict=True)
            if outcome == "acked"
        ]
        sys.stdout.write("".join(lines))
        sys.stdout.flush()
        if not lines:
            store.bell.wait(seen, 0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
