"""Consumers: a handler, run concurrently for a group, with its leases looked after."""

from postdate.client.consuming.outcomes import DeadLetterNow, Figures, RetryLater
from postdate.client.consuming.tasks import AsyncConsumer
from postdate.client.consuming.threads import Consumer

__all__ = ["AsyncConsumer", "Consumer", "DeadLetterNow", "Figures", "RetryLater"]
