"""An ordered group on a small store: a process of it, and what must hold of what it is handed."""

from collections.abc import Sequence
from pathlib import Path

from queues.store.consuming import Delivery
from queues.store.disk import Disk
from queues.store.failing import Failed, Verdict, dead_letter
from queues.store.record import decode_record
from tests.support.chainworld import GROUP, RULE, DyingProcess, Process
from tests.support.clock import ManualClock
from tests.support.storeworld import outgoing

LEVEL_3_MS = 10_000


class Ordered(Process):
    """One process of an ordered group."""

    def __init__(self, root: Path, clock: ManualClock, disk: Disk | None = None) -> None:
        super().__init__(root, clock, disk)
        self.consuming.ordered_of = lambda _: True

    def post(self, keys: str, *, queue_id: int = 0, **fields: object) -> list[str]:
        """Send a message for every letter, which is its sharding key; a dot is none."""
        return [self._post(key, queue_id, fields) for key in keys]

    def _post(self, key: str, queue_id: int, fields: dict[str, object]) -> str:
        properties = {} if key == "." else {"__SHARDINGKEY": key}
        message = outgoing(
            self.store, queue_id=queue_id, keys=(), body=key.encode(),
            **{"tag": None, "properties": properties, **fields},
        )  # fmt: skip
        self.store.send([message])
        return message.unique_id

    def keys(self, count: int = 100) -> str:
        """Receive; the keys that came, as letters."""
        return "".join(key_of(one) for one in self.receive(count))

    def ack(self, deliveries: Sequence[Delivery]) -> set[str]:
        receipts = [one.receipt for one in deliveries]
        return set(self.consuming.ack(GROUP, receipts, self.clock.now_ms()))

    def fail(self, deliveries: Sequence[Delivery], *, dead: bool = False) -> list[Failed]:
        verdict = dead_letter("broken") if dead else Verdict("broken")
        receipts = [one.receipt for one in deliveries]
        return self.consuming.failing.fail(GROUP, receipts, RULE, verdict, self.clock.now_ms())

    def retry_is_due(self) -> None:
        """Let the first retry of what failed come."""
        self.clock.advance(LEVEL_3_MS)
        self.hand_over()


class DyingOrdered(DyingProcess, Ordered):
    """One that dies at one of the writes of what it does."""

    def __init__(self, root: Path, clock: ManualClock) -> None:
        super().__init__(root, clock)
        self.consuming.ordered_of = lambda _: True


def key_of(delivery: Delivery) -> str:
    return decode_record(delivery.record).properties.get("__SHARDINGKEY", ".")


def number_of(delivery: Delivery, ids: Sequence[str]) -> int:
    return ids.index(decode_record(delivery.record).unique_id or "")
