"""The forecast: what will come due."""

from django.http import HttpResponse

from queues.api.answers import answer
from queues.api.codec import moment_in_query
from queues.api.endpoint import INSPECT, SEND, Call, endpoint
from queues.api.views import ApiView
from queues.codes import Code
from queues.durations import parse_duration
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors.forecast import forecast
from scheduler.api.shapes import ForecastAnswer, ForecastBucket, ForecastQuery


class ForecastView(ApiView):
    """`/forecast`."""

    @endpoint(
        "See what will come due",
        scopes=(SEND, INSPECT),
        query=ForecastQuery,
        gives={200: ForecastAnswer},
        codes=(Code.DELAY_INVALID, Code.OUT_OF_BOUNDS),
    )
    def get(self, call: Call) -> HttpResponse:
        query: ForecastQuery = call.query
        found = forecast(
            from_ms=moment_in_query("from", query.start),
            to_ms=moment_in_query("to", query.to),
            step_ms=_step_ms(query.step),
            topic=query.topic,
            now_ms=call.now_ms,
            patterns=call.caller.topics,
        )
        starts = range(found.from_ms, found.to_ms, found.step_ms)
        return answer(
            ForecastAnswer(
                from_=format_moment(found.from_ms),
                from_ms=found.from_ms,
                to=format_moment(found.to_ms),
                to_ms=found.to_ms,
                step_ms=found.step_ms,
                total=sum(found.counts),
                buckets=[
                    ForecastBucket(format_moment(start_ms), start_ms, count)
                    for start_ms, count in zip(starts, found.counts, strict=True)
                ],
            )
        )


def _step_ms(written: str | None) -> int | None:
    if written is None:
        return None
    step_ms = parse_duration(written)
    if step_ms is None:
        raise Problem(Code.DELAY_INVALID, "Write a duration, such as 1m.", pointer="step")
    return step_ms
