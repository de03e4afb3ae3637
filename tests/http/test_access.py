"""Who may do what: keys, scopes, patterns."""

import pytest

from queues.models import ApiKey
from queues.services.keys import issue_key, revoke_key
from queues.services.keyuse import uses

NEED_NO_KEY = ["/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/docs"]


def test_what_is_no_key_is_401(api):
    for secret in (None, "x" * 40, "", "\x7f", api.secret + "x", api.secret.upper()):
        api.secret = secret
        answer = api.get("topics")
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", NEED_NO_KEY)
@pytest.mark.usefixtures("wiring")
def test_probes_and_documents_need_no_key(client, path):
    assert client.get(path).status_code in (200, 503)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_is_read_in_any_case(api, scheme):
    secret, api.secret = api.secret, None
    assert api.get("topics", Authorization=f"{scheme} {secret}").status == 200
    assert api.get("topics", Authorization=f"Basic {secret}").status == 401


def test_a_topic_outside_the_patterns_is_403(api):
    limited = api.as_(topics=("eu-*", "shared"))
    assert limited.post("topics/eu-orders/messages", {"body": "x"}).status == 201
    assert limited.post("topics/shared/messages", {"body": "x"}).status == 201
    for topic in ("orders", "shared2", "xeu-orders"):
        answer = limited.post(f"topics/{topic}/messages", {"body": "x"})
        assert (answer.status, answer.code) == (403, "forbidden")
    assert api.get("topics/orders").status == 404, "nothing was made"


def test_a_message_outside_the_patterns_is_404(api):
    message = api.send("orders", delay="1h")
    limited = api.as_(topics=("eu-*",))
    path = f"messages/{message['id']}"
    for answer in (limited.get(path), limited.delete(path), limited.patch(path, {"delay": "1s"})):
        assert (answer.status, answer.code) == (404, "message_not_found")
    assert api.get(path).json["state"] == "scheduled"


def test_lists_leave_out_what_is_outside_the_patterns(api):
    api.send("orders", delay="1h")
    api.send("eu-orders", delay="1h")
    api.group("billing")
    api.group("eu-billing")
    limited = api.as_(topics=("eu-*",), groups=("eu-*",))
    assert [topic["topic"] for topic in limited.get("topics").json["items"]] == ["eu-orders"]
    assert [group["group"] for group in limited.get("groups").json["items"]] == ["eu-billing"]
    listed = limited.get("messages?state=scheduled").json
    assert [message["topic"] for message in listed["items"]] == ["eu-orders"]
    assert listed["count"] == 1


def test_a_group_outside_the_patterns_is_403(api):
    api.group("billing")
    limited = api.as_(groups=("eu-*",))
    assert limited.post("groups/billing/receive").status == 403
    assert limited.get("groups/billing").status == 403


def test_a_group_cannot_subscribe_to_a_topic_outside_the_patterns(api):
    limited = api.as_(topics=("eu-*",))
    for topic, status in (("orders", 403), ("eu-orders", 201)):
        body = {"subscriptions": [{"topic": topic}]}
        assert limited.put("groups/billing", body).status == status


def test_a_revoked_key_is_refused_at_once(api):
    issued = issue_key(name="short", by="test")
    api.secret = issued.secret
    assert api.get("topics").status == 200
    assert revoke_key(key_id=issued.key.pk, by="test")
    assert api.get("topics").status == 401
    assert not revoke_key(key_id=issued.key.pk, by="test")


def test_of_a_secret_only_its_hash_is_kept(api):
    (key,) = ApiKey.objects.all()
    assert api.secret not in str(vars(key))
    assert api.secret.startswith(key.prefix)


def test_the_last_use_of_a_key_is_written_after_the_fact(api, clock):
    api.get("topics")
    assert ApiKey.objects.get().last_used_at is None
    uses.write()
    assert round(ApiKey.objects.get().last_used_at.timestamp() * 1000) == clock.now_ms()


def test_no_request_on_the_path_of_a_message_makes_a_query(api, django_assert_num_queries):
    message = api.send(delay="1h")
    api.group()
    with django_assert_num_queries(0):
        api.send(delay_level=3)
        api.post("topics/orders/messages/batch", {"messages": [{"body": "x"}]})
        api.get(f"messages/{message['id']}")
        api.patch(f"messages/{message['id']}", {"delay": "2h"})
        api.delete(f"messages/{message['id']}")
        receipts = [message["receipt"] for message in api.receive()]
        api.post("groups/billing/ack", {"receipts": receipts})
        api.get("groups/billing/lag")


def test_a_message_tells_of_the_groups_within_the_patterns_alone(api):
    api.group("billing")
    api.group("mail")
    path = f"messages/{api.send()['id']}"
    limited = api.as_(groups=("bill*",))
    assert [one["group"] for one in limited.get(path).json["groups"]] == ["billing"]


def test_the_audit_log_leaves_out_what_is_outside_the_patterns(api):
    for name in ("eu-orders", "orders"):
        api.put(f"topics/{name}", {})
        api.put(f"groups/{name}", {"subscriptions": [{"topic": name}]})
    limited = api.as_(topics=("eu-*",), groups=("eu-*",))
    limited.put("topics/eu-mail", {})
    first = limited.get("audit-log?page_size=2").json
    second = limited.get(f"audit-log?page_size=2&page_token={first['next_page_token']}").json
    told = [(one["action"], one["subject"]) for one in first["items"] + second["items"]]
    assert told == [
        ("topic.create", "eu-mail"),
        ("group.create", "eu-orders"),
        ("topic.create", "eu-orders"),
    ]
    assert second["next_page_token"] == ""
    every = {one["action"] for one in api.get("audit-log").json["items"]}
    assert "key.create" in every
