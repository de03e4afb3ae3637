"""The beat scheduler: sends each group's tick once a second, by the monotonic clock.

Celery's own decides by the wall clock, and so sends nothing for an hour when that is set an hour
back; it also spins for the last 9 ms before each tick. This one never sleeps longer than a
second, keeps no file, and catches a missed tick up once.
"""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule

from queues.store.clock import Clock, SystemClock

#: No sleep is longer, so that a stop is heard and nothing depends on what the sleep was cut short
#: by.
SLEEP_S_MAX = 1.0


class MonotonicScheduler(Scheduler):
    """Sends entries with a fixed interval; other kinds of schedule are not taken."""

    clock: Clock = SystemClock()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._due_ms: dict[str, int] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *_args: Any, **_kwargs: Any) -> float:
        """Send what is due; return for how many seconds to sleep."""
        now_ms = self.clock.monotonic_ms()
        for name, entry in self.schedule.items():
            if self._due_ms.get(name, now_ms) <= now_ms:
                self._send(entry)
                self._due_ms[name] = self._after(name, entry, now_ms)
        wait_ms = min(self._due_ms.values(), default=now_ms) - self.clock.monotonic_ms()
        return min(max(wait_ms, 1) / 1000, SLEEP_S_MAX)

    def _after(self, name: str, entry: ScheduleEntry, now_ms: int) -> int:
        if not isinstance(entry.schedule, schedule):
            message = f"{name} has no fixed interval"
            raise TypeError(message)
        every_ms = int(entry.schedule.seconds * 1000)
        next_ms = self._due_ms.get(name, now_ms) + every_ms
        return next_ms if next_ms > now_ms else now_ms + every_ms

    def _send(self, entry: ScheduleEntry) -> None:
        try:
            self.apply_async(entry, producer=self.producer, advance=False)
        except Exception:
            # The broker is away: the next tick comes in a second.
            self.logger.exception("The tick %s could not be sent.", entry.name)
