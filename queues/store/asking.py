"""Asking: what a receive still wants, on its way round the group's queues."""

from dataclasses import dataclass, field
from typing import NamedTuple

from queues.store.deliveries import HandedOut, Received
from queues.store.handout import Ask
from queues.store.ledgers import Place
from queues.store.tagfilter import TagFilter


class Stop(NamedTuple):
    """One queue on a receive's way round."""

    turn: int
    place: Place
    tags: TagFilter


@dataclass(slots=True)
class Request:
    """A receive under way."""

    count: int
    bytes_max: int
    until_ms: int
    now_ms: int
    consumer: int = 0
    expires: bool = True
    received: Received = field(default_factory=Received)
    #: The same deliveries by queue.
    handed: list[HandedOut] = field(default_factory=list)
    #: The last queue that gave something.
    last_turn: int | None = None

    def ask(self, stop: Stop) -> Ask | None:
        """What to ask of the next queue; None when nothing more is wanted."""
        wanted = self.count - len(self.received.deliveries)
        if wanted <= 0 or (self.bytes_max <= 0 and self.received.deliveries):
            return None
        _, topic, queue_id = stop.place
        return Ask(
            topic=topic,
            queue_id=queue_id,
            tags=stop.tags,
            count=wanted,
            bytes_max=self.bytes_max,
            until_ms=self.until_ms,
            now_ms=self.now_ms,
            consumer=self.consumer,
            expires=self.expires,
        )
