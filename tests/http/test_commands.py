"""The commands for API keys."""

import io

import pytest
from django.core.management import CommandError, call_command

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
