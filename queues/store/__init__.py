"""The storage engine: CommitLog, what is derived from it, and the one write.

Plain Python and numpy, without Django and without Celery. Begin reading at `store`.
"""

from queues.store.errors import StoreClosing, StoreError, StoreFailed, StoreFull
from queues.store.messages import (
    Decision,
    Event,
    Failure,
    HandOver,
    MessageView,
    Once,
    Outgoing,
    Placed,
    QueueBounds,
    Repeat,
)
from queues.store.names import JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.schedule import ScheduleSlice
from queues.store.settings import Sizes, StoreSettings
from queues.store.store import Store

__all__ = [
    "JOURNAL_TOPIC",
    "SCHEDULE_TOPIC",
    "TIMER_TOPIC",
    "Decision",
    "Event",
    "Failure",
    "HandOver",
    "MessageView",
    "Once",
    "Outgoing",
    "Placed",
    "QueueBounds",
    "Repeat",
    "ScheduleSlice",
    "Sizes",
    "Store",
    "StoreClosing",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreSettings",
]
