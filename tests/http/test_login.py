"""Logging in: who fails too often waits, and nobody else does."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

LOGIN = "/admin/login/"


@pytest.fixture
def people(wiring, settings):
    del wiring
    settings.AXES_ENABLED = True
    for name in ("ada", "grace"):
        User.objects.create_superuser(name, password="right")


def attempt(name, password, address="192.0.2.1", **more):
    fields = {"username": name, "password": password, "next": "/admin/"}
    return Client(REMOTE_ADDR=address).post(LOGIN, fields, **more)


@pytest.mark.usefixtures("people")
def test_the_sixth_attempt_is_refused_even_with_the_right_password():
    for _ in range(4):
        assert attempt("ada", "wrong").status_code == 200
    assert attempt("ada", "wrong").status_code == 429
    answer = attempt("ada", "right")
    assert answer.status_code == 429
    assert answer["Retry-After"] == "900"
    assert b"15 minutes" in answer.content


@pytest.mark.usefixtures("people")
def test_the_lock_is_one_persons_from_one_address():
    for _ in range(6):
        attempt("ada", "wrong")
    assert attempt("grace", "right").status_code == 302
    assert attempt("ada", "right", address="192.0.2.2").status_code == 302


@pytest.mark.usefixtures("people")
def test_a_client_cannot_choose_its_address():
    for number in range(6):
        attempt("ada", "wrong", headers={"X-Forwarded-For": f"198.51.100.{number}"})
    assert attempt("ada", "right").status_code == 429


@pytest.mark.usefixtures("people")
def test_a_login_leads_only_to_this_server():
    fields = {"username": "ada", "password": "right", "next": "https://evil.example/"}
    answer = Client().post(LOGIN, fields)
    assert answer.status_code == 302
    assert "evil" not in answer["Location"]
