"""The bare view: parses the same JSON as a send, answers 201, and does nothing else.

It is an `APIView` of the project's own REST framework settings (so its parser and renderer are as
fast as ours), without authentication. `bare_settings` adds it to all other addresses of the
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


urlpatterns = [
    path("api/v1/bare", BareView.as_view()),
    path("", include("postdate.urls")),
]
