"""The forecast: how many messages come due when, levels and timed together, exactly.

It is a scan of the schedule table and reads no message: what is cancelled, parked or delivered has
its settled word set and is left out, and so are waiting retries, which are their groups' own.
"""

from dataclasses import dataclass

from queues import wires
from queues.access import Patterns
from queues.codes import Code
from queues.problems import Problem
from queues.selectors.scheduled import ANYTHING, Window, wanted_of
from queues.store.limits import DUE_MS_MAX

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
#: A day by the second, and some.
BUCKETS_MAX = 100_000
#: The steps that a forecast without one chooses from, and how many buckets it likes at most.
_STEPS_MS = (
    SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS,
    DAY_MS,
)  # fmt: skip
_BUCKETS_LIKED = 1440


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many messages are due in each step of a range."""

    #: The first bucket begins here; the last ends at `to_ms`, and may be shorter than a step.
    from_ms: int
    to_ms: int
    step_ms: int
    counts: list[int]


def forecast(
    *, from_ms: int | None, to_ms: int | None, step_ms: int | None, topic: str | None,
    now_ms: int, patterns: Patterns = ANYTHING,
) -> Forecast:  # fmt: skip
    """Count what is due; by default the next 24 hours by the minute. Raises `out_of_bounds`."""
    start_ms = now_ms if from_ms is None else from_ms
    end_ms = start_ms + DAY_MS if to_ms is None else to_ms
    if not 0 <= start_ms < end_ms <= DUE_MS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, "It begins after 1970 and ends later.", pointer="to")
    step_ms = step_for(end_ms - start_ms) if step_ms is None else step_ms
    if not SECOND_MS <= step_ms <= DAY_MS:
        raise Problem(Code.OUT_OF_BOUNDS, "A step has 1 second to 1 day.", pointer="step")
    buckets = -(-(end_ms - start_ms) // step_ms)
    if buckets > BUCKETS_MAX:
        detail = f"These are {buckets} buckets; at most {BUCKETS_MAX} are told at once."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="step")
    wanted = wanted_of(Window(topic, None, start_ms, end_ms), patterns)
    if wanted is None:
        return Forecast(start_ms, end_ms, step_ms, [0] * buckets)
    counts = wires.wiring().get_store().outlook.buckets(wanted, step_ms)
    return Forecast(start_ms, end_ms, step_ms, counts.tolist())


def step_for(range_ms: int, buckets: int = _BUCKETS_LIKED) -> int:
    """The smallest step that makes at most so many buckets of a range."""
    return next((step for step in _STEPS_MS if range_ms <= step * buckets), DAY_MS)
