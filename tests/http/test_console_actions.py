"""What a person does in the console: through the services, confirmed, and written down."""

import re

import pytest

from queues.models import ApiKey, AuditEntry, Group, Topic


def said(answer):
    return " ".join(str(message) for message in answer.context["messages"])


def test_a_message_sent_from_the_console_is_one_like_any_other(console):
    console.post("/admin/messages/send/", topic="orders", body="hello", delay="1h", keys="a b",
                 tag="due", properties="color=red")  # fmt: skip
    entry = AuditEntry.objects.get(action="message.send")
    message = console.api.get(f"messages/{entry.subject}").json
    assert (message["body"], message["keys"], message["tag"]) == ("hello", ["a", "b"], "due")
    assert (message["state"], message["properties"]) == ("scheduled", {"color": "red"})
    assert entry.by == "user:ada"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"delay": "soon"}, "Write a duration"),
        ({"delay": "1h", "level": 3}, "Give one of"),
        ({"properties": "nothing"}, "Write name=value"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "belongs to the system"),
    ],
)
def test_what_cannot_be_sent_is_said_beside_the_form(console, fields, words):
    given = {"topic": "orders", "body": "hello", **fields}
    answer = console.post("/admin/messages/send/", **given)
    assert words in answer.content.decode()
    assert not AuditEntry.objects.filter(action="message.send").exists()


def test_a_message_is_cancelled_restored_moved_and_delivered(console):
    message_id = console.api.send(delay="1h")["id"]
    page = f"/admin/messages/{message_id}"

    def now():
        return console.api.get(f"messages/{message_id}").json

    assert "No one will receive" in console.text(f"{page}/cancel/")
    assert now()["state"] == "scheduled", "a GET changes nothing"
    console.post(f"{page}/cancel/")
    assert now()["state"] == "cancelled"
    console.post(f"{page}/restore/")
    assert now()["state"] == "scheduled"
    console.post(f"{page}/move/", delay="2h")
    assert now()["due_at_ms"] == console.api.wiring.clock.now_ms() + 7_200_000
    console.post(f"{page}/move/", at="2026-10-01T10:00")
    assert now()["due_at"] == "2026-10-01T10:00:00.000Z"
    console.post(f"{page}/deliver-now/")
    assert now()["due_at_ms"] == console.api.wiring.clock.now_ms()
    console.api.hand_over_what_is_due()
    answer = console.post(f"{page}/cancel/")
    assert "It was delivered at" in said(answer)
    actions = AuditEntry.objects.filter(subject=message_id).values_list("action", flat=True)
    assert sorted(actions) == ["message.cancel", "message.deliver-now", "message.move",
                               "message.move", "message.restore"]  # fmt: skip


def test_a_topic_is_made_widened_purged_and_deleted(console):
    console.post("/admin/new-topic/", name="orders", queues=4)
    assert console.api.get("topics/orders").json["queues"] == 4
    console.post("/admin/topics/orders/change/", queues=6)
    assert console.api.get("topics/orders").json["queues"] == 6
    assert "cannot have fewer" in said(console.post("/admin/topics/orders/change/", queues=2))
    message = console.api.send(delay="1h")
    assert "1" in console.text("/admin/topics/orders/purge/")
    console.post("/admin/topics/orders/purge/")
    assert console.api.get(f"messages/{message['id']}").json["state"] == "cancelled"
    console.api.send(delay="1h")
    console.post("/admin/topics/orders/delete/")
    assert not Topic.objects.exists()
    actions = set(AuditEntry.objects.filter(by="user:ada").values_list("action", flat=True))
    assert actions >= {"topic.create", "topic.change", "topic.purge", "topic.delete"}


def test_what_a_service_refuses_is_said_on_the_page(console):
    answer = console.post("/admin/new-topic/", name="SCHEDULE_TOPIC_XXXX", queues=4)
    assert "belongs to the system" in said(answer)


def test_a_group_is_made_changed_paused_resumed_and_deleted(console):
    console.post("/admin/new-group/", name="billing", subscriptions="orders: paid || due\nmails",
                 max_retries=3, start_from="earliest", mode="clustering")  # fmt: skip
    made = console.api.get("groups/billing").json
    assert made["subscriptions"] == [
        {"topic": "orders", "tags": "paid || due"}, {"topic": "mails", "tags": "*"},
    ]  # fmt: skip
    console.post("/admin/groups/billing/change/", subscriptions="orders", max_retries=5,
                 start_from="earliest", mode="clustering", ordered="on")  # fmt: skip
    changed = console.api.get("groups/billing").json
    assert (changed["max_retries"], changed["ordered"]) == (5, True)
    for paused in (True, False):
        console.post("/admin/groups/billing/pause/")
        assert console.api.get("groups/billing").json["paused"] is paused
    console.post("/admin/groups/billing/delete/")
    assert not Group.objects.exists()
    actions = list(AuditEntry.objects.filter(by="user:ada").values_list("action", flat=True))
    assert sorted(actions) == ["group.change", "group.create", "group.delete", "group.pause",
                               "group.resume"]  # fmt: skip


def test_a_group_is_told_how_to_try_again(console):
    group = {"name": "billing", "subscriptions": "orders", "max_retries": 3, "mode": "clustering",
             "start_from": "latest"}  # fmt: skip
    custom = {"policy": "custom", "delays": "10s 1m", "retry_queues": 4}
    console.post("/admin/new-group/", **group, **custom)
    made = console.api.get("groups/billing").json
    assert made["retry_policy"] == {"type": "custom", "delays": ["10s", "1m"]}
    assert made["retry_queues"] == 4
    page = "/admin/groups/billing/change/"
    assert 'value="10s 1m"' in console.text(page)
    console.post(page, **group, policy="exponential", first="2s", factor="1.5", longest="1h")
    changed = console.api.get("groups/billing").json
    assert changed["retry_policy"] == {
        "type": "exponential", "initial": "2s", "factor": 1.5, "max": "1h",
    }  # fmt: skip
    assert changed["retry_queues"] == 4
    assert "then 1.5 times as long" in console.text("/admin/groups/billing/")
    refused = console.post(page, **group, policy="custom", delays="soon")
    assert "Write a duration" in refused.content.decode()
    assert console.api.get("groups/billing").json["retry_policy"]["type"] == "exponential"


def test_a_new_key_is_shown_once_and_works(console):
    answer = console.post("/admin/keys/new/", name="shop", scopes=["send"],
                          topic_patterns="eu-* shared", group_patterns="*")  # fmt: skip
    assert "no-store" in answer["Cache-Control"]
    secret = re.search(r"pd_[\w-]+", answer.content.decode()).group()
    console.api.secret = secret
    assert console.api.post("topics/eu-a/messages", {"body": "x"}).status == 201
    assert console.api.post("topics/us-a/messages", {"body": "x"}).status == 403
    assert secret not in console.text("/admin/keys/")
    key = ApiKey.objects.get(name="shop")
    assert (key.scopes, key.topic_patterns) == (["send"], ["eu-*", "shared"])


def test_a_new_secret_is_shown_once_and_the_old_one_goes_on_for_the_overlap(console):
    key = ApiKey.objects.get()
    old = console.api.secret
    answer = console.post(f"/admin/keys/{key.pk}/rotate/", overlap="3600")
    secret = re.search(r"pd_[\w-]+", answer.content.decode()).group()
    for one in (old, secret):
        console.api.secret = one
        assert console.api.get("topics").status == 200
    console.api.wiring.clock.advance(3_600_001)
    console.api.secret = old
    assert console.api.get("topics").status == 401


def limited_key(console, **fields):
    """A program's key; its secret is the API's from then on."""
    chosen = {"name": "shop", "scopes": ["send"], "topic_patterns": "eu-*", "group_patterns": "*"}
    answer = console.post("/admin/keys/new/", **{**chosen, **fields})
    console.api.secret = re.search(r"pd_[\w-]+", answer.content.decode()).group()
    return ApiKey.objects.get(name="shop")


def test_a_keys_rights_are_changed_and_its_secret_stays(console):
    key = limited_key(console)
    assert console.api.get("topics").status == 403
    console.post(f"/admin/keys/{key.pk}/change/", scopes=["send", "inspect"], expiry="keep",
                 topic_patterns="eu-* us-*", group_patterns="billing", burst_seconds=5,
                 messages_per_day=1)  # fmt: skip
    assert console.api.get("topics").status == 200
    assert console.api.post("topics/us-a/messages", {"body": "x"}).status == 201
    assert console.api.post("topics/us-a/messages", {"body": "x"}).code == "quota_exceeded"
    key.refresh_from_db()
    assert (key.group_patterns, key.burst_seconds, key.expires_at) == (["billing"], 5, None)
    entry = AuditEntry.objects.get(action="key.change")
    assert (entry.by, entry.subject) == ("user:ada", "shop")
    assert entry.before["scopes"] == ["send"]
    assert entry.after["scopes"] == ["send", "inspect"]


def test_a_keys_form_shows_what_it_has(console):
    key = limited_key(console, requests_per_second=7, burst_seconds=3, days=10)
    html = console.text(f"/admin/keys/{key.pk}/change/")
    assert 'value="eu-*"' in html
    assert re.search(r'value="send"[^>]*checked', html)
    assert not re.search(r'value="manage"[^>]*checked', html)
    assert re.search(r'name="requests_per_second" value="7"', html)
    assert re.search(r'name="burst_seconds" value="3"', html)
    assert "2026-10-01" in html


@pytest.mark.parametrize(
    ("fields", "kept_days"),
    [({"expiry": "keep"}, 10), ({"expiry": "never"}, None), ({"expiry": "days", "days": 3}, 3)],
)
def test_a_keys_end_is_kept_moved_or_taken_away(console, fields, kept_days):
    key = limited_key(console, days=10)
    console.post(f"/admin/keys/{key.pk}/change/", scopes=["send"], topic_patterns="eu-*",
                 group_patterns="*", **fields)  # fmt: skip
    key.refresh_from_db()
    now_ms = console.api.wiring.clock.now_ms()
    ends = None if kept_days is None else now_ms / 1000 + kept_days * 86_400
    assert (key.expires_at and key.expires_at.timestamp()) == ends


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"scopes": []}, "required"),
        ({"topic_patterns": "a " * 101}, "At most 100 patterns"),
        ({"expiry": "days"}, "Say after how many days"),
        ({"messages_per_day": 0}, "greater than or equal to 1"),
    ],
)
def test_a_key_is_not_given_rights_that_are_none(console, fields, words):
    key = limited_key(console)
    good = {"scopes": ["inspect"], "topic_patterns": "*", "group_patterns": "*", "expiry": "keep"}
    answer = console.post(f"/admin/keys/{key.pk}/change/", **{**good, **fields})
    assert words in answer.content.decode()
    key.refresh_from_db()
    assert key.scopes == ["send"]


def test_a_revoked_key_is_not_changed(console):
    key = limited_key(console)
    console.post(f"/admin/keys/{key.pk}/revoke/")
    answer = console.post(f"/admin/keys/{key.pk}/change/", scopes=["inspect"], topic_patterns="*",
                          group_patterns="*", expiry="keep")  # fmt: skip
    assert "not revoked" in answer.content.decode()


def test_a_key_revoked_in_the_console_is_refused(console):
    key = ApiKey.objects.get()
    console.post(f"/admin/keys/{key.pk}/revoke/")
    assert console.api.get("topics").status == 401
    assert AuditEntry.objects.filter(action="key.revoke", by="user:ada").exists()


def test_the_audit_log_is_searched(console):
    console.post("/admin/new-topic/", name="orders", queues=4)
    console.post("/admin/new-topic/", name="mails", queues=4)
    html = console.text("/admin/audit/?subject=mail&by=ada")
    assert "mails" in html
    assert ">orders<" not in html
