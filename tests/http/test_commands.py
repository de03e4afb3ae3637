"""The commands for API keys."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from queues.models import ApiKey

pytestmark = pytest.mark.usefixtures("wiring")


def said(name, *arguments, **options):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()


def test_a_created_key_is_printed_once_and_works(api):
    api.secret = said("create_api_key", "shop", "--scope", "send", "--topics", "eu-*").strip()
    assert api.post("topics/eu-a/messages", {"body": "x"}).status == 201
    assert api.post("topics/us-a/messages", {"body": "x"}).status == 403
    assert api.secret not in said("list_api_keys")


def test_a_revoked_key_is_refused(api):
    key = ApiKey.objects.get()
    assert "revoked" in said("revoke_api_key", str(key.pk))
    assert api.get("topics").status == 401
    assert "revoked" in said("list_api_keys")


def test_what_cannot_be_is_said(api):
    assert api.secret
    with pytest.raises(CommandError):
        said("revoke_api_key", "999999")
    with pytest.raises(CommandError):
        said("create_api_key", "x" * 101)


@pytest.mark.parametrize(
    "arguments",
    [
        ["list_api_keys"],
        ["create_api_key", "a"],
        ["rotate_api_key", "1"],
        ["revoke_api_key", "1"],
        ["change_api_key", "1", "--scope", "send"],
        ["run_report", "lateness"],
        ["run_report", "lateness", "--topic", "orders"],
    ],
    ids=" ".join,
)
def test_without_a_database_one_sentence_says_what_to_run(arguments):
    def no_such_table(*_):
        raise OperationalError("no such table:\nqueues_apikey")

    with (
        connection.execute_wrapper(no_such_table),
        pytest.raises(CommandError, match=r"no such table: queues_apikey.*manage.py bootstrap"),
    ):
        said(*arguments)


@pytest.mark.parametrize("when", ["99999999d", "999999999w", "9999-12-31T23:59:60Z", "-1d", "soon"])
def test_a_key_expires_before_the_year_10000(when):
    with pytest.raises(CommandError, match="--expires takes a moment"):
        said("create_api_key", "a", f"--expires={when}")


@pytest.mark.parametrize("overlap", ["999999999w", "-999999999w", "9999d"])
def test_an_overlap_beyond_its_bounds_is_refused(api, overlap):
    assert api.secret
    with pytest.raises(CommandError, match="Secrets overlap for"):
        said("rotate_api_key", str(ApiKey.objects.get().pk), f"--overlap={overlap}")
