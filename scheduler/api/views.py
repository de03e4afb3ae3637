"""Levels, wheel and loops, to look at."""

from typing import Any

from django.http import HttpResponse

from queues import wires
from queues.api.answers import answer
from queues.api.endpoint import INSPECT, Call, endpoint
from queues.api.telling import moment_or_none
from queues.api.views import ApiView
from queues.wires import LoopState
from scheduler import selectors
from scheduler.api.shapes import DelayLevel, LoopAnswer, LoopList, TimerStage, TimerWheelAnswer
from scheduler.selectors import LevelState


class DelayLevelsView(ApiView):
    """`/delay-levels`."""

    @endpoint("See every delay level", scopes=(INSPECT,), gives={200: list[DelayLevel]})
    def get(self, call: Call) -> HttpResponse:
        del call
        return answer([_tell_level(state) for state in selectors.level_states()])


class TimerWheelView(ApiView):
    """`/timer-wheel`."""

    @endpoint("See the timer wheel", scopes=(INSPECT,), gives={200: TimerWheelAnswer})
    def get(self, call: Call) -> HttpResponse:
        del call
        return answer(_tell_wheel(selectors.wheel_detail(), selectors.wheel_loop()))


class LoopsView(ApiView):
    """`/loops`."""

    @endpoint("See every loop and who runs it", scopes=(INSPECT,), gives={200: LoopList})
    def get(self, call: Call) -> HttpResponse:
        del call
        return answer(LoopList([_tell_loop(loop) for loop in selectors.loop_states()]))


def _tell_level(state: LevelState) -> DelayLevel:
    loop = state.loop
    return DelayLevel(
        level=state.level,
        delay=state.delay,
        delay_ms=state.delay_ms,
        delay_offset=state.delay_offset,
        max_offset=state.max_offset,
        pending=state.pending,
        next_due_at=moment_or_none(state.next_due_ms),
        next_due_at_ms=state.next_due_ms,
        last_delivered_at=moment_or_none(state.last_delivered_ms),
        last_delivered_at_ms=state.last_delivered_ms,
        behind_ms=state.behind_ms,
        stuck=loop is not None and loop.stuck,
        holder=None if loop is None else loop.holder,
    )


def _tell_wheel(detail: Any, loop: LoopState) -> TimerWheelAnswer:
    sizes = wires.wiring().get_store().sizes
    read_ms, write_ms = detail.get("read_time_ms"), detail.get("write_time_ms")
    checkpoint_ms = detail.get("checkpoint_ms")
    counts = {name: detail.get(name) or 0 for name in _COUNTS}
    return TimerWheelAnswer(
        engine=detail.get("engine") or selectors.timer_engine(),
        precision_ms=sizes.timer_precision_ms,
        window_ms=sizes.timer_precision_ms * sizes.timer_window_slots,
        pending=selectors.timed_waiting(),
        read_time=moment_or_none(read_ms),
        read_time_ms=read_ms,
        write_time=moment_or_none(write_ms),
        write_time_ms=write_ms,
        behind_ms=loop.behind_ms,
        stuck=loop.stuck,
        holder=loop.holder,
        checkpoint_at=moment_or_none(checkpoint_ms),
        checkpoint_at_ms=checkpoint_ms,
        stages=[TimerStage(**stage) for stage in detail.get("stages", ())],
        **counts,
    )


_COUNTS = (
    "enqueue_lag_messages",
    "enqueue_lag_ms",
    "dequeued",
    "loaded",
    "failing",
    "log_files",
    "log_begin",
    "log_end",
    "timeline_entries",
    "timeline_bytes",
)


def _tell_loop(loop: LoopState) -> LoopAnswer:
    return LoopAnswer(
        loop=loop.name,
        holder=loop.holder,
        since=moment_or_none(loop.since_ms),
        since_ms=loop.since_ms,
        last_step_at=moment_or_none(loop.last_step_ms),
        last_step_at_ms=loop.last_step_ms,
        behind_ms=loop.behind_ms,
        stuck=loop.stuck,
    )
