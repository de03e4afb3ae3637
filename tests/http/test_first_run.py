"""The first run: an administrator and a key, once."""

import pytest
from django.test import Client

from queues.models import ApiKey
from queues.services.bootstrap import bootstrap


@pytest.mark.usefixtures("wiring")
def test_bootstrap_makes_an_administrator_and_a_key_once():
    first = bootstrap(username="admin", password=None, secret=None)
    assert first.password
    assert first.secret.startswith("pd_")
    assert Client().login(username="admin", password=first.password)
    again = bootstrap(username="admin", password=None, secret=None)
    assert (again.password, again.secret, again.admin_created, again.key_created) == (
        None, None, False, False,
    )  # fmt: skip
    assert ApiKey.objects.count() == 1


def test_a_key_that_the_operator_gives_is_taken_as_it_is(api):
    secret = "!" * 31 + "~"
    made = bootstrap(username="admin", password="given", secret=secret)
    assert (made.password, made.secret, made.key_created) == (None, None, True)
    api.secret = secret
    assert api.put("topics/orders").status == 201
    assert not bootstrap(username="admin", password="given", secret=secret).key_created
