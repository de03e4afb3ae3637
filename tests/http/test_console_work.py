"""What changes many messages, and what failed: bulk, spread, retries, a group begun anew."""

import re

import pytest

from postdate.wiring import get_runners
from queues.models import AuditEntry, Operation
from queues.services import operations


@pytest.fixture(autouse=True)
def runners(console, monkeypatch):
    """The runners of the product, over the test's own store."""
    monkeypatch.setattr(type(console.api.wiring), "get_runners", lambda _: get_runners())


def carry_out(operation):
    operations.carry_out(operation.id, is_stopping=lambda: False)
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.error
    return operation.result


def plan_in(html):
    return re.search(r'name="plan_id" value="(\w+)"', html).group(1)


def test_many_are_looked_at_first_and_then_cancelled(console):
    meant = [console.api.send(delay="1h", tag="due")["id"] for _ in range(3)]
    other = console.api.send(delay="1h", tag="paid")["id"]
    html = console.post("/admin/messages/bulk/", verb="cancel", tag="due").content.decode()
    assert "3 messages" in html
    assert all(one in html for one in meant)
    assert other not in html
    assert console.api.get(f"messages/{meant[0]}").json["state"] == "scheduled"
    answer = console.post("/admin/messages/bulk/", verb="cancel", plan_id=plan_in(html))
    operation = Operation.objects.get()
    assert answer.request["PATH_INFO"] == f"/admin/operations/{operation.id}/"
    carry_out(operation)
    assert {console.api.get(f"messages/{one}").json["state"] for one in meant} == {"cancelled"}
    assert console.api.get(f"messages/{other}").json["state"] == "scheduled"
    assert AuditEntry.objects.filter(by="user:ada", action="operation.begin").exists()


def test_many_are_moved_by_a_shift(console):
    message = console.api.send(delay="1h")
    fields = {"verb": "reschedule", "topic": "orders"}
    html = console.post("/admin/messages/bulk/", shift="30m", **fields).content.decode()
    console.post("/admin/messages/bulk/", verb="reschedule", plan_id=plan_in(html))
    carry_out(Operation.objects.get())
    moved = console.api.get(f"messages/{message['id']}").json
    assert moved["due_at_ms"] == message["due_at_ms"] + 1_800_000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"verb": "cancel"}, "Say which messages"),
        ({"verb": "reschedule", "topic": "orders"}, "Give one of deliver_at"),
        ({"verb": "reschedule", "topic": "orders", "shift": "soon"}, "Write a duration"),
    ],
)
def test_what_is_not_said_is_asked_for(console, fields, words):
    assert words in console.post("/admin/messages/bulk/", **fields).content.decode()
    assert not Operation.objects.exists()


def test_a_search_leads_to_the_bulk_change_of_what_it_found(console):
    console.api.send(delay="1h")
    html = console.text("/admin/messages/?topic=orders&q=order-1")
    assert "/admin/messages/bulk/?topic=orders&amp;q=order-1" in html
    form = console.text("/admin/messages/bulk/?topic=orders&q=order-1")
    assert 'value="orders"' in form
    assert 'value="order-1"' in form


def test_a_hot_second_is_spread_in_order_and_nothing_becomes_earlier(console):
    api = console.api
    at_ms = api.wiring.clock.now_ms() // 1000 * 1000 + 3_600_000
    sent = [api.send(deliver_at=at_ms + number)["id"] for number in range(10)]
    after = api.send(deliver_at=at_ms + 1_000)
    assert "10" in console.text(f"/admin/forecast/spread/?at={at_ms}")
    console.post(f"/admin/forecast/spread/?at={at_ms}", over="10s")
    result = carry_out(Operation.objects.get())
    assert result == {"unchanged": 1, "moved": 9}
    due = [api.get(f"messages/{one}").json["due_at_ms"] for one in sent]
    assert due == [max(at_ms + n, at_ms + 1_000 * n) for n in range(10)]
    assert api.get(f"messages/{after['id']}").json["due_at_ms"] == at_ms + 1_000


def a_retry(console):
    message = console.api.send()
    console.api.group()
    [received] = console.api.receive()
    console.api.post("groups/billing/retry", {"receipts": [received["receipt"]], "reason": "busy"})
    return message["id"]


def test_a_retry_is_shown_with_its_reason_and_cancelled(console):
    message_id = a_retry(console)
    html = console.text("/admin/groups/billing/retries/")
    assert message_id in html
    assert "busy" in html
    console.post(f"/admin/groups/billing/retries/{message_id}/cancel/")
    assert "Nothing is tried again" in console.text("/admin/groups/billing/retries/")
    assert AuditEntry.objects.get(action="retry.cancel").subject == message_id


def test_a_retry_is_moved_and_tried_now(console):
    message_id = a_retry(console)
    page = f"/admin/groups/billing/retries/{message_id}"
    now_ms = console.api.wiring.clock.now_ms()
    console.post(f"{page}/move/", delay="2h")
    path = f"groups/billing/retries/{message_id}"
    assert console.api.get(path).json["due_at_ms"] == now_ms + 7_200_000
    console.post(f"{page}/now/")
    assert console.api.get(path).json["due_at_ms"] == now_ms


def test_a_message_shows_each_groups_attempts(console):
    html = console.text(f"/admin/messages/{a_retry(console)}/")
    assert "busy" in html
    assert "retrying" in html


def test_a_group_begins_anew(console):
    console.api.send()
    console.api.group()
    assert len(console.api.receive()) == 1
    assert console.api.receive() == []
    console.post("/admin/groups/billing/reset/", to="earliest")
    assert len(console.api.receive()) == 1
    answer = console.post("/admin/groups/billing/reset/", to="time")
    assert "Say from which moment" in answer.content.decode()


@pytest.mark.parametrize(("chosen", "left"), [({}, 1), ({"cancel_retries": "on"}, 0)])
def test_a_reset_keeps_retries_unless_they_are_to_go(console, chosen, left):
    a_retry(console)
    assert "Waits to be tried again" in console.text("/admin/groups/billing/reset/")
    answer = console.post("/admin/groups/billing/reset/", to="latest", **chosen)
    assert ("1 retries are cancelled" in answer.content.decode()) is not bool(left)
    assert len(console.api.get("groups/billing/retries").json["items"]) == left
    entry = AuditEntry.objects.get(action="group.reset")
    assert entry.detail == {"to": "latest", "cancelled_retries": 1 - left}


def test_a_bulk_change_means_one_level_alone(console):
    meant = console.api.send(delay_level=7)["id"]
    for other in ({"delay_level": 8}, {"delay": "1h"}):
        console.api.send(**other)
    html = console.post("/admin/messages/bulk/", verb="cancel", level="7").content.decode()
    assert "1 message" in html
    console.post("/admin/messages/bulk/", verb="cancel", plan_id=plan_in(html))
    carry_out(Operation.objects.get())
    states = [one["state"] for one in console.api.get("messages?state=scheduled").json["items"]]
    assert len(states) == 2
    assert console.api.get(f"messages/{meant}").json["state"] == "cancelled"


def test_a_reason_that_turns_text_round_turns_nothing_beside_it(console):
    reason = "\u202ekcots on"
    api = console.api
    api.group("billing")
    message_id = api.send()["id"]
    (message,) = api.receive()
    api.post("groups/billing/retry", {"receipts": [message["receipt"]], "reason": reason})
    for page in ("groups/billing/retries/", f"messages/{message_id}/"):
        assert f"<bdi>{reason}</bdi>" in console.text(f"/admin/{page}")
