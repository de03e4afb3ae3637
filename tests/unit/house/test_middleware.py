"""The doors: programs are let past the console's middlewares, people get the policy."""

import json

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import path
from pytest_django.fixtures import Settings

from postdate.middleware import STRICT_POLICY, content_security_policy, program_door


def answer(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("called directly")


urlpatterns = [path("api/v1/thing", answer), path("healthz", answer), path("admin/", answer)]


def the_rest(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("went through Django's chain")


@pytest.fixture
def here(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("address", ["/api/v1/thing", "/healthz"])
def test_programs_are_answered_without_the_consoles_middlewares(address: str) -> None:
    response = program_door(the_rest)(RequestFactory().get(address))
    assert response.content == b"called directly"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.status_code == 200


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("address", ["/admin/", "/", "/healthz/"])
def test_everyone_else_goes_through_djangos_chain(address: str) -> None:
    response = program_door(the_rest)(RequestFactory().get(address))
    assert response.content == b"went through Django's chain"


@pytest.mark.usefixtures("here")
def test_behind_tls_a_key_sent_in_clear_is_refused_not_redirected(
    settings: Settings,
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    response = program_door(the_rest)(RequestFactory().get("/api/v1/thing"))
    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["errors"] == []
    assert program_door(the_rest)(RequestFactory().get("/healthz")).status_code == 200
    secure = RequestFactory().get("/api/v1/thing", secure=True)
    assert program_door(the_rest)(secure).status_code == 200


def test_a_page_carries_the_strict_policy_unless_it_has_its_own() -> None:
    own = "default-src 'none'"

    def with_own(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers={"Content-Security-Policy": own})

    request = RequestFactory().get("/")
    response = content_security_policy(the_rest)(request)
    assert response.headers["Content-Security-Policy"] == STRICT_POLICY
    assert "script-src 'self'" in STRICT_POLICY
    assert content_security_policy(with_own)(request).headers["Content-Security-Policy"] == own
