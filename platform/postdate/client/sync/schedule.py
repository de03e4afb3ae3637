"""The schedule, to look at: levels, wheel, loops, forecast, readiness."""

import msgspec

from postdate.client.calls import Call
from postdate.client.shapes.messages import Forecast
from postdate.client.shapes.schedule import DelayLevel, Loop, LoopPage, Readiness, TimerWheel
from postdate.client.sync.transport import Transport
from postdate.client.writing import Duration, Moment, write_duration, write_moment

_levels = msgspec.json.Decoder(list[DelayLevel])
_wheel = msgspec.json.Decoder(TimerWheel)
_loops = msgspec.json.Decoder(LoopPage)
_forecast = msgspec.json.Decoder(Forecast)
_readiness = msgspec.json.Decoder(Readiness)


class Schedule:
    """How the platform stands with what waits."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def levels(self) -> list[DelayLevel]:
        """Every delay level and how far it is."""
        return self._transport.run(Call(method="GET", path="/delay-levels", decoder=_levels))

    def wheel(self) -> TimerWheel:
        """The timer and how far it is."""
        return self._transport.run(Call(method="GET", path="/timer-wheel", decoder=_wheel))

    def loops(self) -> list[Loop]:
        """Every loop and who runs it."""
        page = self._transport.run(Call(method="GET", path="/loops", decoder=_loops))
        return page.items

    def forecast(
        self,
        *,
        from_: Moment | None = None,
        to: Moment | None = None,
        step: Duration | None = None,
        topic: str | None = None,
    ) -> Forecast:
        """What will come due, step by step."""
        query = {
            "from": None if from_ is None else write_moment(from_),
            "to": None if to is None else write_moment(to),
            "step": None if step is None else write_duration(step),
            "topic": topic,
        }
        call = Call(method="GET", path="/forecast", decoder=_forecast, query=query)
        return self._transport.run(call)

    def readiness(self) -> Readiness:
        """Whether the platform is in order, check by check."""
        also = frozenset({503})
        call = Call(method="GET", path="/readyz", decoder=_readiness, also=also)
        return self._transport.run(call)
