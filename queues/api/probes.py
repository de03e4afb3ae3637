"""What needs no key: alive, ready, and the figures."""

from django.http import HttpResponse
from msgspec import Struct

from queues.api.answers import answer, raw_answer
from queues.api.endpoint import Call, endpoint
from queues.api.views import ApiView
from queues.selectors.figures import metrics_text
from queues.selectors.health import readiness


class Alive(Struct):
    """This process answers."""

    status: str = "alive"


class CheckAnswer(Struct):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


class Readiness(Struct):
    """Whether everything is in order, check by check."""

    ready: bool
    checks: list[CheckAnswer]


class HealthView(ApiView):
    """`/healthz`."""

    @endpoint("Alive", scopes=None, gives={200: Alive})
    def get(self, call: Call) -> HttpResponse:
        del call
        return answer(Alive())


class ReadyView(ApiView):
    """`/readyz`."""

    @endpoint("Ready", scopes=None, gives={200: Readiness, 503: Readiness})
    def get(self, call: Call) -> HttpResponse:
        del call
        checks = [CheckAnswer(check.name, check.ok, check.detail) for check in readiness()]
        ready = all(check.ok for check in checks)
        return answer(Readiness(ready, checks), status=200 if ready else 503)


class MetricsView(ApiView):
    """`/metrics`."""

    @endpoint("Figures for Prometheus", scopes=None, gives={200: str})
    def get(self, call: Call) -> HttpResponse:
        del call
        return raw_answer(metrics_text(), "text/plain; version=0.0.4; charset=utf-8")
