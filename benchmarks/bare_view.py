"""The bare views: they parse the same JSON as ours, answer the same bytes, and do nothing else.

They are `APIView`s of the project's own REST framework settings (so parser and renderer are as fast
as ours), without authentication. `bare_settings` adds them to all other addresses of the
platform.
"""

from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class BareView(APIView):
    """The least that a DRF view can do with a message."""

    authentication_classes = ()
    permission_classes = ()

    def post(self, request: Request) -> Response:
        message = request.data
        return Response({"id": "0" * 32, "size": len(message["body"])}, status=201)


#: What a `receive` answers for each message of `benchmarks/consume.py`.
MESSAGE = {
    "id": "01a1ff9fc3c37dee8effcfb10dd9c72f",
    "topic": "orders",
    "queue": 0,
    "body": {"order": 1, "note": "x" * 60},
    "tag": "order-timeout",
    "keys": ["order-1"],
    "properties": {},
    "attempt": 1,
    "receipt": "KAZAzVkNicy0GHioTEJiEAEAAQABAAAA-UUqlb7LFwAE8aD_oQEAAG9yZGVycwAAAAAAAAAA",
    "due_at": "2026-01-31T09:30:00.000Z",
    "due_at_ms": 1769851800000,
    "delivered_at": "2026-01-31T09:30:00.000Z",
    "delivered_at_ms": 1769851800000,
    "lateness_ms": 0,
    "lease_expires_at": "2026-01-31T09:35:00.000Z",
    "lease_expires_at_ms": 1769852100000,
}


class BareReceiveView(BareView):
    """The answer to a `receive`, as many messages as were asked for."""

    def post(self, request: Request) -> Response:
        return Response({"messages": [MESSAGE] * request.data["max_messages"]})


class BareAckView(BareView):
    """The answer to an `ack`."""

    def post(self, request: Request) -> Response:
        receipts = request.data["receipts"]
        return Response({"results": [{"receipt": one, "outcome": "acked"} for one in receipts]})


urlpatterns = [
    path("api/v1/bare/receive", BareReceiveView.as_view()),
    path("api/v1/bare/ack", BareAckView.as_view()),
    path("api/v1/bare", BareView.as_view()),
    path("", include("postdate.urls")),
]
