"""Working is how a consumer is told to work, and which failures end it."""

import logging
from dataclasses import dataclass

from postdate.client.consuming.outcomes import Outcome, outcome_of
from postdate.client.errors import PostdateError, Refused, ServerFailure, TooManyRequests
from postdate.client.shapes.consuming import ReceivedMessage

logger = logging.getLogger("postdate.consumer")

#: Between two polls that failed, s: the client was patient already.
POLL_AGAIN_S = 1.0
RECEIVE_MESSAGES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """How a consumer works; every option has its price."""

    #: Handlers at work at once.
    concurrency: int = 8
    #: Messages leased beyond those at work, so that a worker never waits for a request; they wait
    #: here instead of at another consumer. None: as many as `concurrency`.
    prefetch: int | None = None
    #: How long a message is held without a sign of life, 10 s at least: so long does it take until
    #: another consumer gets it when this one dies.
    lease_seconds: float = 60.0
    #: How long one poll waits; `stop` waits for it too.
    poll_seconds: float = 5.0
    #: How long handlers may go on after `stop`; then their messages are given back all the same.
    grace_seconds: float = 20.0
    #: How long an ack waits for others to go with it. 0: at once, a request each.
    linger_seconds: float = 0.02
    #: Who this is; a broadcasting group needs it, and it must be the same after a restart.
    consumer_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would never handle a message."""
        if self.concurrency < 1:
            raise ValueError("concurrency is at least 1: so many handlers work at once")
        if self.prefetch is not None and self.prefetch < 0:
            raise ValueError("prefetch is at least 0")

    @property
    def capacity(self) -> int:
        """Messages leased at once."""
        more = self.concurrency if self.prefetch is None else self.prefetch
        return self.concurrency + more

    def asked(self, room: int) -> int:
        """How many messages one poll asks for."""
        return min(room, RECEIVE_MESSAGES_MAX)


def is_final(error: PostdateError) -> bool:
    """Whether polling again is no use: the key, the group or the request is wrong."""
    passing = isinstance(error, ServerFailure | TooManyRequests)
    return isinstance(error, Refused) and not passing


def failed(message: ReceivedMessage, error: BaseException) -> Outcome:
    """What a handler's exception means for its message; logged, the unusual louder."""
    # `sys.exit` in a handler, or a cancellation of what it waited for: its message's, not ours.
    level = logging.INFO if isinstance(error, Exception) else logging.WARNING
    logger.log(level, "The handler failed for %s.", message.id, exc_info=error)
    return outcome_of(error)
