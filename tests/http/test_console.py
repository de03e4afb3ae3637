"""The console over HTTP: who may come in, what pages show, and what they do through services."""

import re

import pytest
from django.contrib.auth.models import Group as Role
from django.contrib.auth.models import User
from django.test import Client
from django.views.defaults import server_error

from queues.models import Topic
from queues.services import sightings
from tests.support.visiting import Console

PAGES = [
    "/admin/",
    "/admin/levels/",
    "/admin/wheel/",
    "/admin/loops/",
    "/admin/forecast/",
    "/admin/forecast/?span=40d&topic=orders",
    "/admin/messages/",
    "/admin/messages/?topic=orders&state=ready",
    "/admin/messages/?q=order-1&topic=orders",
    "/admin/messages/send/",
    "/admin/parked/",
    "/admin/topics/",
    "/admin/topics/orders/",
    "/admin/new-topic/",
    "/admin/groups/",
    "/admin/groups/billing/",
    "/admin/groups/billing/change/",
    "/admin/new-group/",
    "/admin/operations/",
    "/admin/keys/",
    "/admin/keys/new/",
    "/admin/keys/1/change/",
    "/admin/reports/",
    "/admin/reports/schedules/",
    "/admin/reports/schedules/new/",
    "/admin/reports/schedules/1/change/",
    "/admin/audit/",
    "/admin/system/",
    "/admin/people/",
    "/admin/people/?q=nobody",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/password_change/",
]


def person_with(api, role):
    user = User.objects.create_user(f"a-{role}", password="x", is_staff=True)
    if role:
        user.groups.add(Role.objects.get(name=role))
    return Console(api, user)


def a_little_of_everything(api):
    api.send(delay="1h", keys=["order-1"])
    api.send(delay_level=3)
    api.send()
    api.group()


# --- who comes in, and what protects the pages


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_under_a_strict_content_policy(console, page):
    a_little_of_everything(console.api)
    answer = console.get(page)
    assert answer.status_code == 200
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    html = answer.content
    assert not re.search(rb"<script(?![^>]*\bsrc=)", html)
    assert not re.search(rb"""\son\w+=|\sstyle=|javascript:|(src|href)="?(https?:)?//""", html)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("wiring")
def test_nobody_comes_in_without_a_password(client, page):
    answer = client.get(page)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("page", ["/admin/", "/admin/messages/", "/admin/keys/", "/admin/topics/"])
def test_staff_without_a_role_sees_nothing(api, page):
    answer = person_with(api, "").get(page)
    assert answer.status_code == 403
    assert b"Postdate" in answer.content


def test_a_viewer_looks_and_changes_nothing(api):
    message = api.send(delay="1h", body="a secret body")
    viewer = person_with(api, "viewer")
    html = viewer.text(f"/admin/messages/{message['id']}/")
    assert "a secret body" not in html
    assert "may not see bodies" in html
    assert "/cancel/" not in html
    for path in (f"messages/{message['id']}/cancel/", "messages/send/", "new-topic/", "keys/new/",
                 "topics/orders/delete/", "topics/orders/purge/"):  # fmt: skip
        assert viewer.post(f"/admin/{path}").status_code == 403
    assert api.get(f"messages/{message['id']}").json["state"] == "scheduled"


def test_an_operator_sees_bodies_and_acts_but_issues_no_keys(api):
    message = api.send(delay="1h", body="a secret body")
    operator = person_with(api, "operator")
    assert "a secret body" in operator.text(f"/admin/messages/{message['id']}/")
    assert operator.post(f"/admin/messages/{message['id']}/cancel/").status_code == 200
    assert api.get(f"messages/{message['id']}").json["state"] == "cancelled"
    assert operator.get("/admin/keys/").status_code == 403


def test_an_admin_issues_keys_and_makes_people_but_no_superusers(api):
    admin = person_with(api, "admin")
    assert admin.get("/admin/keys/new/").status_code == 200
    fields = {"username": "eve", "password1": "x-9-long-enough", "password2": "x-9-long-enough"}
    admin.post("/admin/auth/user/add/", **fields)
    eve = User.objects.get(username="eve")
    admin.post(f"/admin/auth/user/{eve.pk}/change/", username="eve", is_active="on", is_staff="on",
               is_superuser="on")  # fmt: skip
    eve.refresh_from_db()
    assert eve.is_staff
    assert not eve.is_superuser


def test_a_live_page_answers_the_follower_with_its_live_block_alone(console):
    a_little_of_everything(console.api)
    html = console.text("/admin/levels/", **{"X-Live": "1"})
    assert "<html" not in html
    assert "level-3" in html


@pytest.mark.usefixtures("wiring")
def test_the_favicon_is_found_where_browsers_guess_it(client):
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert answer["Location"].endswith(".svg")


def test_what_is_not_there_is_said_in_words(console):
    for path in ("messages/00000000000070008000000000000000/", "topics/nothing/", "groups/none/",
                 "operations/none/", "keys/999/revoke/", "nowhere/"):  # fmt: skip
        answer = console.get(f"/admin/{path}")
        assert answer.status_code == 404, path
        assert "Postdate" in answer.content.decode()


# --- what pages show


def test_levels_show_what_waits(console):
    console.api.send(delay_level=3)
    assert "2026-09-21T14:13:30.000Z" in console.text("/admin/levels/")


def test_a_search_by_id_leads_to_the_message(console):
    message = console.api.send(delay="1h")
    answer = console.get(f"/admin/messages/?q={message['id']}")
    assert answer["Location"] == f"/admin/messages/{message['id']}/"


def test_a_search_by_key_finds_what_waits_what_was_delivered_and_what_was_cancelled(console):
    ids = [console.api.send(keys=["order-7"], **delay)["id"] for delay in
           ({}, {"delay": "1h"}, {"delay_level": 2})]  # fmt: skip
    other = console.api.send(keys=["order-8"], delay="1h")["id"]
    console.api.delete(f"messages/{ids[1]}")
    html = console.text("/admin/messages/?q=order-7&topic=orders")
    assert all(one in html for one in ids)
    assert other not in html
    assert console.api.send("elsewhere", keys=["order-7"])["id"] not in console.text(
        "/admin/messages/?q=order-7&topic=orders"
    )


def test_a_due_window_narrows_the_list(console):
    early, late = (console.api.send(delay=delay)["id"] for delay in ("10m", "3h"))
    now_ms = console.api.wiring.clock.now_ms()
    html = console.text(f"/admin/messages/?due_before_ms={now_ms + 3_600_000}")
    assert early in html
    assert late not in html


def test_a_long_list_goes_on_where_the_page_ended(console):
    sent = [console.api.send(delay=f"{minute}m")["id"] for minute in range(1, 56)]
    first = console.text("/admin/messages/")
    following = re.search(r'href="(\?page=[^"]+)"', first).group(1)
    second = console.text(f"/admin/messages/{following}")
    assert all(one in first for one in sent[:50])
    assert all(one in second for one in sent[50:])
    assert sent[0] not in second


def test_the_forecast_counts_what_is_due(console):
    for _ in range(3):
        console.api.send(delay="90s")
    html = console.text("/admin/forecast/?span=15m")
    assert "3 messages due" in html
    assert "0 messages due" in console.text("/admin/forecast/?span=15m&topic=other")


def test_a_level_leads_to_what_waits_in_it_and_to_nothing_else(console):
    meant, other = (console.api.send(delay_level=level)["id"] for level in (3, 4))
    found = re.search(r'href="(/admin/messages/[^"]*level=3)"', console.text("/admin/levels/"))
    html = console.text(found[1].replace("&amp;", "&"))
    assert meant in html
    assert other not in html
    assert '<option value="3" selected>3: 10s</option>' in html


@pytest.mark.parametrize("state", ["ready", "cancelled"])
def test_a_level_is_looked_for_in_every_state(console, state):
    meant, other = (console.api.send(delay_level=level)["id"] for level in (3, 4))
    timed = console.api.send(delay="10s")["id"]
    if state == "cancelled":
        for one in (meant, other, timed):
            console.api.delete(f"messages/{one}")
    else:
        console.api.wiring.clock.advance(60_000)
        console.api.hand_over_what_is_due()
    html = console.text(f"/admin/messages/?topic=orders&state={state}&level=3")
    assert meant in html
    assert other not in html
    assert timed not in html


def test_a_level_that_is_none_is_left_aside(console):
    message = console.api.send(delay="1h")["id"]
    for level in ("99", "0", "x", "²"):
        assert message in console.text(f"/admin/messages/?level={level}")


def test_a_message_says_why_it_waits_and_why_it_was_late(console):
    message = console.api.send(delay="10s")
    page = f"/admin/messages/{message['id']}/"
    assert "nobody runs the loop wheel" in console.text(page)
    console.api.wiring.clock.advance(12_500)
    assert "It is due since" in console.text(page)
    console.api.hand_over_what_is_due()
    assert "handed over 2500ms late" in console.text(page).replace("2s500ms", "2500ms")


def test_the_overview_names_what_needs_attention(console):
    html = console.text("/admin/")
    assert "Nobody runs levels" in html
    assert "Nothing needs attention" not in html


def test_what_is_parked_for_a_topic_that_is_gone_leads_to_making_it(console):
    console.api.send(topic="former", delay="1s")
    Topic.objects.filter(name="former").delete()
    store = console.api.wiring.store
    store.raise_generation()
    store.park("rmq_sys_wheel_timer", 0, 0, reason="The topic was deleted.")
    html = console.text("/admin/parked/")
    assert "The topic was deleted." in html
    assert "/admin/new-topic/?name=former" in html
    assert 'value="former"' in console.text("/admin/new-topic/?name=former")


def test_the_overview_counts_everything_that_was_sent_as_sent(console):
    a_little_of_everything(console.api)
    html = console.text("/admin/")
    assert '<dt>Sent in all</dt><dd class="num">3</dd>' in html
    assert '<dt>of these to a level</dt><dd class="num">1</dd>' in html


def test_a_group_says_why_nothing_arrives(console):
    console.api.send()
    console.api.group()
    assert "no consumer asked for any within the day" in console.text("/admin/groups/billing/")
    console.api.post("groups/billing/pause", {})
    assert "The group is paused" in console.text("/admin/groups/billing/")


def test_a_group_shows_who_asks_for_messages_with_which_key(console):
    console.api.group()
    assert "No consumer was seen" in console.text("/admin/groups/billing/")
    assert console.api.receive(consumer_id="worker-7") == []
    sightings.sightings.write()
    html = console.text("/admin/groups/billing/")
    assert "worker-7" in html
    assert "key:test" in html
    assert "consuming" in console.text("/admin/groups/")
    console.api.send()
    assert "no consumer asked" not in console.text("/admin/groups/billing/")
    console.api.wiring.clock.advance(120_000)
    since = 'no consumer asked for any since <time datetime="2026-09-21T14:13:20.000Z"'
    assert since in console.text("/admin/groups/billing/")
    assert "not consuming" in console.text("/admin/groups/")


def test_a_group_shows_its_retries_by_attempt_and_how_it_tries(console):
    console.api.send()
    console.api.group(retry_policy={"type": "custom", "delays": ["1m", "1h"]})
    for advance_ms in (0, 60_000):
        console.api.wiring.clock.advance(advance_ms)
        console.api.hand_over_what_is_due()
        (got,) = console.api.receive()
        console.api.post("groups/billing/retry", {"receipts": [got["receipt"]]})
    html = console.text("/admin/groups/billing/")
    assert "1 for attempt 3" in html
    assert "after 1m, 1h" in html
    assert "/admin/groups/billing/retries/" in console.text("/admin/groups/")


def test_an_ordered_group_says_that_keys_may_be_blocked(console):
    console.api.send(sharding_key="a")
    console.api.group(ordered=True)
    console.api.receive()
    assert "It is ordered" in console.text("/admin/groups/billing/")


def test_a_group_shows_who_holds_what(console):
    message = console.api.send()
    console.api.group()
    console.api.receive(consumer_id="worker-7")
    html = console.text("/admin/groups/billing/")
    assert "worker-7" in html
    assert message["id"] in html


def test_the_page_of_a_failure_needs_nothing_that_may_have_failed(rf):
    answer = server_error(rf.get("/admin/"))
    assert answer.status_code == 500
    assert b"went wrong on our side" in answer.content


def test_a_form_from_elsewhere_is_refused_in_words(console):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = console.client.cookies
    answer = strict.post("/admin/new-topic/", {"name": "orders", "queues": 4})
    assert answer.status_code == 403
    assert b"Nothing was changed" in answer.content
