"""A body that is not looked at is read all the same: the next request comes behind it."""

import pytest
from django.test import Client

from queues.api.views import REQUEST_BYTES_MAX
from tests.http.conftest import Api


@pytest.mark.parametrize(
    ("method", "path", "status", "has_key"),
    [
        ("POST", "topics/orders/messages", 401, False),
        ("POST", "topics", 405, True),
        ("POST", "nothing/here", 404, True),
        ("GET", "topics", 200, True),
        ("DELETE", f"messages/{'0' * 32}", 404, True),
    ],
)
def test_what_nobody_asked_for_is_read_away(
    api: Api, method: str, path: str, status: int, has_key: bool
) -> None:
    headers = {"Authorization": f"Bearer {api.secret}"} if has_key else {}
    response = Client().generic(
        method, f"/api/v1/{path}", b"x" * 20_000, "application/json", headers=headers
    )
    assert response.status_code == status
    assert response.wsgi_request.environ["wsgi.input"].read() == b""


def test_a_length_that_is_absurd_is_not_waited_for(api: Api) -> None:
    del api
    response = Client().generic(
        "POST", "/api/v1/topics", b"x", CONTENT_LENGTH=str(5 * REQUEST_BYTES_MAX)
    )
    assert response.status_code == 405
    assert response.wsgi_request.environ["wsgi.input"].read() == b"x"
