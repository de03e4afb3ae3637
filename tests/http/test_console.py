"""The plain console: who may come in, what it shows, and what it does through services."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from queues.models import ApiKey, AuditEntry, Group, Topic
from queues.services.bootstrap import bootstrap

PAGES = [
    "/admin/",
    "/admin/queues/topic/",
    "/admin/queues/topic/add/",
    "/admin/queues/group/",
    "/admin/queues/apikey/",
    "/admin/queues/apikey/add/",
    "/admin/queues/auditentry/",
    "/admin/queues/operation/",
    "/admin/schedule/levels/",
    "/admin/schedule/wheel/",
]


@pytest.fixture
def console(api):
    """An administrator's browser."""
    User.objects.create_superuser("ada", password="lovelace")
    client = Client()
    client.login(username="ada", password="lovelace")
    client.api = api
    return client


def said(answer):
    return " ".join(str(message) for message in answer.context["messages"])


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_under_a_strict_content_policy(console, page):
    console.api.send(delay="1h")
    console.api.send(delay_level=3)
    console.api.group()
    answer = console.get(page)
    assert answer.status_code == 200
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert not re.search(rb"<script(?![^>]*\bsrc=)(?![^>]*application/json)", answer.content)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("wiring")
def test_nobody_comes_in_without_a_password(client, page):
    answer = client.get(page)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


def test_levels_show_what_waits(console):
    console.api.send(delay_level=3)
    html = console.get("/admin/schedule/levels/").content.decode()
    assert "2026-09-21T14:13:30.000Z" in html


def test_staff_without_permission_sees_no_schedule(api):
    User.objects.create_user("bob", password="x", is_staff=True)
    client = Client()
    client.login(username="bob", password="x")
    assert client.get("/admin/schedule/levels/").status_code == 403
    assert api.get("delay-levels").status == 200


def test_a_topic_made_in_the_console_is_audited(console):
    console.post("/admin/queues/topic/add/", {"name": "orders", "queues": 4})
    assert console.api.get("topics/orders").json["queues"] == 4
    entry = AuditEntry.objects.get(action="topic.create")
    assert (entry.by, entry.subject) == ("user:ada", "orders")


def test_what_a_service_refuses_is_said_on_the_page(console):
    answer = console.post(
        "/admin/queues/topic/add/", {"name": "SCHEDULE_TOPIC_XXXX", "queues": 4}, follow=True
    )
    assert "belongs to the system" in said(answer)
    console.api.send(delay="1h")
    topic = Topic.objects.get(name="orders")
    answer = console.post(f"/admin/queues/topic/{topic.pk}/delete/", {"post": "yes"}, follow=True)
    assert "1 messages wait" in said(answer)
    assert Topic.objects.filter(name="orders").exists()


def test_a_purge_in_the_console_cancels_what_waits(console):
    message = console.api.send(delay="1h")
    topic = Topic.objects.get(name="orders")
    data = {"action": "purge_and_delete", "_selected_action": [topic.pk]}
    console.post("/admin/queues/topic/", data)
    assert not Topic.objects.exists()
    assert console.api.get(f"messages/{message['id']}").json["state"] == "cancelled"


def test_a_group_is_paused_and_resumed(console):
    console.api.group()
    group = Group.objects.get()
    for action, paused in (("pause", True), ("resume", False)):
        data = {"action": action, "_selected_action": [group.pk]}
        console.post("/admin/queues/group/", data)
        assert console.api.get("groups/billing").json["paused"] is paused
    assert AuditEntry.objects.filter(by="user:ada").count() == 2


def test_a_new_key_is_shown_once_and_works(console):
    data = {"name": "shop", "scopes": ["send"], "topic_patterns": "eu-*\nshared",
            "group_patterns": "*", "messages_per_day": "1000"}  # fmt: skip
    answer = console.post("/admin/queues/apikey/add/", data, follow=True)
    secret = re.search(r"pd_[\w-]+", said(answer)).group()
    console.api.secret = secret
    assert console.api.post("topics/eu-a/messages", {"body": "x"}).status == 201
    assert console.api.post("topics/us-a/messages", {"body": "x"}).status == 403
    assert secret.encode() not in console.get("/admin/queues/apikey/").content
    key = ApiKey.objects.get(name="shop")
    assert (key.scopes, key.topic_patterns) == (["send"], ["eu-*", "shared"])
    assert (key.messages_per_day, key.burst_seconds) == (1000, 10)


def test_a_key_revoked_in_the_console_is_refused(console):
    key = ApiKey.objects.get()
    console.post("/admin/queues/apikey/", {"action": "revoke", "_selected_action": [key.pk]})
    assert console.api.get("topics").status == 401
    assert AuditEntry.objects.filter(action="key.revoke", by="user:ada").exists()


# --- the first run


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
