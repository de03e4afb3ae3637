"""The wheel's step: the five stages over RocketMQ's timing wheel."""

from typing import TYPE_CHECKING

from queues.store.disk import Disk
from scheduler.engine.step import TimerStep
from scheduler.wheel.engine import WheelEngine

if TYPE_CHECKING:
    from queues.store.store import Store


class WheelStep(TimerStep):
    """The `wheel` group's work with the wheel."""

    def __init__(
        self, store: "Store", *, disk: Disk | None = None, sync_beside: bool = True
    ) -> None:
        """`sync_beside`: checkpoints are synced on a thread of their own, not in the step."""
        super().__init__(store, WheelEngine(store, disk=disk, sync_beside=sync_beside))
