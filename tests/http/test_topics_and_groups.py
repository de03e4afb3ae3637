"""Topics and groups: declared, looked at, listed, paused, deleted."""

import pytest

from queues.models import AuditEntry

NOW_MS = 1_790_000_000_000


def outcome(answer):
    return (answer.status, answer.json["code"])


def test_a_topic_is_made_once_and_then_kept(api):
    first = api.put("topics/orders", {"queues": 4})
    assert (first.status, first.json["topic"], first.json["queues"]) == (201, "orders", 4)
    assert first.json["created_at_ms"] == NOW_MS
    again = api.put("topics/orders", {"queues": 4})
    assert (again.status, again.json) == (200, first.json)
    assert api.get("topics/orders").json == first.json


def test_a_topic_has_eight_queues_unless_told(api):
    assert api.put("topics/orders").json["queues"] == 8
    assert api.put("topics/mail", {"queues": None}).json["queues"] == 8


def test_a_topic_gets_more_queues_and_never_fewer(api):
    api.put("topics/orders", {"queues": 4})
    assert api.put("topics/orders", {"queues": 6}).json["queues"] == 6
    assert outcome(api.put("topics/orders", {"queues": 5})) == (409, "queues_fewer")
    assert api.put("topics/orders").json["queues"] == 6


@pytest.mark.parametrize("queues", [0, -1, 1025])
def test_the_number_of_queues_has_bounds(api, queues):
    answer = api.put("topics/orders", {"queues": queues})
    assert (*outcome(answer), answer.pointers) == (422, "out_of_bounds", ["/queues"])


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("topics", "SCHEDULE_TOPIC_XXXX", "name_reserved"),
        ("topics", "a%25b", "name_reserved"),
        ("topics", "rmq_sys_postdate_journal", "name_reserved"),
        ("topics", "x" * 128, "name_invalid"),
        ("topics", "a.b", "name_invalid"),
        ("groups", "CID_RMQ_SYS_a", "name_reserved"),
        ("groups", "TOOLS_CONSUMER", "name_reserved"),
        ("groups", "%25RETRY%25a", "name_reserved"),
        ("groups", "x" * 111, "name_invalid"),
        ("groups", "a b", "name_invalid"),
        ("groups", "%C3%A4", "name_invalid"),
    ],
)
def test_a_name_that_is_not_allowed_is_refused(api, kind, name, code):
    body = {"subscriptions": []} if kind == "groups" else {}
    assert outcome(api.put(f"{kind}/{name}", body)) == (422, code)


@pytest.mark.parametrize("name", ["A-z_0-9", "x" * 110])
def test_letters_digits_underscores_and_hyphens_make_a_name(api, name):
    assert api.put(f"topics/{name}").status == 201
    assert api.put(f"groups/{name}", {"subscriptions": []}).status == 201


def test_an_unknown_topic_or_group_is_404(api):
    assert outcome(api.get("topics/orders")) == (404, "topic_not_found")
    assert outcome(api.delete("topics/orders")) == (404, "topic_not_found")
    for answer in (
        api.get("groups/billing"),
        api.delete("groups/billing"),
        api.post("groups/billing/pause"),
        api.post("groups/billing/resume"),
        api.post("groups/billing/receive"),
        api.post("groups/billing/ack", {"receipts": ["x"]}),
        api.get("groups/billing/lag"),
    ):
        assert outcome(answer) == (404, "group_not_found")


def test_a_list_comes_in_pages_by_name(api):
    for name in ("c", "a", "e", "b", "d"):
        api.put(f"topics/{name}")
    names, token = [], ""
    for expected in (2, 2, 1):
        page = api.get(f"topics?page_size=2&page_token={token}").json
        assert len(page["items"]) == expected
        names += [topic["topic"] for topic in page["items"]]
        token = page["next_page_token"]
    assert names == ["a", "b", "c", "d", "e"]
    assert token == ""


@pytest.mark.parametrize("page_size", ["0", "-1", "x", "", "999999999999999999999", "1.5", "%00"])
def test_a_page_size_is_coerced_and_not_refused(api, page_size):
    api.put("topics/orders")
    assert len(api.get(f"topics?page_size={page_size}").json["items"]) == 1


def test_a_page_token_of_others_is_refused(api):
    for name in "abc":
        api.put(f"topics/{name}")
        api.put(f"groups/{name}", {"subscriptions": []})
    token = api.get("topics?page_size=1").json["next_page_token"]
    assert outcome(api.get(f"groups?page_token={token}")) == (422, "page_token_invalid")
    for forged in (token[:-1], token[1:], "x", "W10:a:b", "%00", "%F0%9F%98%80"):
        answer = api.get(f"topics?page_token={forged}")
        assert (*outcome(answer), answer.pointers) == (422, "page_token_invalid", ["page_token"])


def test_an_unknown_parameter_is_refused(api):
    answer = api.get("topics?page_sise=1")
    assert (*outcome(answer), answer.pointers) == (422, "field_unknown", ["page_sise"])


def test_an_empty_topic_is_deleted(api):
    api.put("topics/orders")
    assert api.delete("topics/orders").status == 204
    assert api.get("topics/orders").status == 404


def test_a_topic_with_waiting_messages_is_not_deleted(api):
    for delay in ({"delay": "1h"}, {"delay_level": 18}):
        api.send(**delay)
    api.send("other", delay="1h")
    answer = api.delete("topics/orders")
    assert outcome(answer) == (409, "not_empty")
    assert answer.json["counts"] == {"scheduled": 2}
    assert api.send()["topic"] == "orders", "it is still there"


def test_a_purge_cancels_what_waits(api):
    waiting = [api.send(delay="1h"), api.send(delay_level=18)]
    other = api.send("other", delay="1h")
    assert api.delete("topics/orders?purge=true").status == 204
    for message in waiting:
        assert api.get(f"messages/{message['id']}").json["state"] == "cancelled"
    assert api.get(f"messages/{other['id']}").json["state"] == "scheduled"


def test_a_misspelt_purge_is_refused(api):
    api.put("topics/orders")
    assert outcome(api.delete("topics/orders?pruge=true")) == (422, "field_unknown")
    assert outcome(api.delete("topics/orders?purge=maybe")) == (422, "field_invalid")
    assert api.get("topics/orders").status == 200


def test_a_topic_made_anew_does_not_show_the_messages_of_the_old_one(api):
    api.put("topics/orders", {"queues": 1})
    api.send(body="old")
    api.delete("topics/orders")
    api.put("topics/orders", {"queues": 1})
    api.group(start_from="earliest")
    api.send(body="new")
    assert [message["body"] for message in api.receive()] == ["new"]


# --- groups


def test_a_group_is_made_and_shown_with_its_defaults(api):
    answer = api.put("groups/billing", {"subscriptions": [{"topic": "orders"}]})
    assert answer.status == 201
    assert answer.json == {
        "group": "billing",
        "subscriptions": [{"topic": "orders", "tags": "*"}],
        "mode": "clustering",
        "ordered": False,
        "max_retries": 16,
        "retry_queues": 1,
        "retry_policy": {"type": "levels"},
        "start_from": "latest",
        "paused": False,
        "created_at": "2026-09-21T14:13:20.000Z",
        "created_at_ms": NOW_MS,
    }
    assert api.get("groups/billing").json == answer.json


def test_a_put_replaces_what_was_there(api):
    api.group(max_retries=3)
    answer = api.put("groups/billing", {"subscriptions": [{"topic": "mail", "tags": "a || b"}]})
    assert answer.status == 200
    assert answer.json["subscriptions"] == [{"topic": "mail", "tags": "a || b"}]
    assert answer.json["max_retries"] == 16


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "levels"},
        {"type": "exponential", "initial": "1s", "factor": 3, "max": "1h"},
        {"type": "exponential"},
        {"type": "custom", "delays": ["1s", "PT90S"]},
    ],
)
def test_a_retry_policy_is_kept(api, policy):
    kept = api.group(retry_policy=policy)["retry_policy"]
    assert policy.items() <= kept.items()


def test_null_in_a_group_means_absent(api):
    nulls = {"type": "exponential", "initial": None, "factor": None, "max": None}
    body = {"subscriptions": [{"topic": "orders", "tags": None}], "retry_policy": nulls}
    group = api.put("groups/billing", body).json
    assert group["subscriptions"] == [{"topic": "orders", "tags": "*"}]
    assert group["retry_policy"] == {
        "type": "exponential", "initial": "5s", "factor": 2.0, "max": "2h",
    }  # fmt: skip


def test_a_deletion_answers_nothing_of_no_type(api):
    api.group("billing")
    answer = api.delete("groups/billing")
    assert (answer.status, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"subscriptions": None}, "field_invalid", "/subscriptions"),
        ({"subscriptions": [{}]}, "field_required", "/subscriptions/0/topic"),
        ({"subscriptions": [{"topic": "a b"}]}, "name_invalid", "/subscriptions/0/topic"),
        ({"subscriptions": [{"topic": "TBW102"}]}, "name_reserved", "/subscriptions/0/topic"),
        ({"subscriptions": [{"topic": "a", "tag": "x"}]}, "field_unknown", "/subscriptions/0/tag"),
        ({"subscriptions": [{"topic": "a", "tags": "|"}]}, "tag_invalid", "/subscriptions/0/tags"),
        ({"subscriptions": [{"topic": "a", "tags": ""}]}, "tag_invalid", "/subscriptions/0/tags"),
        ({"subscriptions": [{"topic": "a"}] * 2}, "field_invalid", "/subscriptions/1/topic"),
        ({"subscriptions": [{"topic": "a"}] * 65}, "out_of_bounds", "/subscriptions"),
        ({"mode": "anycast"}, "field_invalid", "/mode"),
        ({"ordered": 1}, "field_invalid", "/ordered"),
        ({"max_retries": -1}, "out_of_bounds", "/max_retries"),
        ({"max_retries": 10**30}, "out_of_bounds", "/max_retries"),
        ({"retry_queues": 0}, "out_of_bounds", "/retry_queues"),
        ({"start_from": "noon"}, "field_invalid", "/start_from"),
        ({"retry_policy": {"type": "never"}}, "field_invalid", "/retry_policy/type"),
        ({"retry_policy": {}}, "field_required", "/retry_policy/type"),
        ({"retry_policy": {"type": "custom", "delays": []}}, "out_of_bounds",
         "/retry_policy/delays"),
        ({"retry_policy": {"type": "custom", "delays": ["x"]}}, "delay_invalid",
         "/retry_policy/delays/0"),
        ({"retry_policy": {"type": "exponential", "max": "0s"}}, "delay_out_of_range",
         "/retry_policy/max"),
        ({"retry_policy": {"type": "exponential", "factor": 0.5}}, "field_invalid",
         "/retry_policy/factor"),
        ({"pause": True}, "field_unknown", "/pause"),
    ],
)  # fmt: skip
def test_a_group_that_makes_no_sense_is_refused(api, fields, code, pointer):
    answer = api.put("groups/billing", {"subscriptions": [{"topic": "orders"}], **fields})
    assert (answer.code, answer.pointers) == (code, [pointer])
    assert answer.status == (400 if code == "delay_invalid" else 422)
    assert api.get("groups/billing").status == 404


def test_a_paused_group_receives_nothing_and_says_so(api):
    api.group()
    api.send()
    assert api.post("groups/billing/pause").json["paused"] is True
    answer = api.post("groups/billing/receive")
    assert answer.json == {"messages": [], "paused": True}
    assert api.post("groups/billing/resume").json["paused"] is False
    assert len(api.receive()) == 1


def test_a_paused_group_still_takes_acks(api):
    api.group()
    api.send()
    (message,) = api.receive()
    api.post("groups/billing/pause")
    answer = api.post("groups/billing/ack", {"receipts": [message["receipt"]]})
    assert answer.json["results"][0]["outcome"] == "acked"


def test_pausing_twice_changes_nothing(api):
    api.group()
    api.post("groups/billing/pause")
    api.post("groups/billing/pause")
    assert AuditEntry.objects.filter(action="group.pause").count() == 1


def test_a_group_with_leases_is_not_deleted_unless_purged(api):
    api.group()
    api.send()
    (message,) = api.receive()
    answer = api.delete("groups/billing")
    assert outcome(answer) == (409, "not_empty")
    assert answer.json["counts"]["leased"] == 1
    assert api.delete("groups/billing?purge=true").status == 204
    assert api.get("groups/billing").status == 404
    api.group()
    answer = api.post("groups/billing/ack", {"receipts": [message["receipt"]]})
    assert answer.json["results"][0]["outcome"] != "acked"


def test_the_audit_log_is_read_newest_first_in_pages(api, clock):
    for name in ("a", "b", "c"):
        api.put(f"topics/{name}")
        clock.advance(1)
    page = api.get("audit-log?page_size=2").json
    assert [(entry["action"], entry["subject"]) for entry in page["items"]] == [
        ("topic.create", "c"),
        ("topic.create", "b"),
    ]
    assert page["items"][0]["by"] == "key:test"
    assert page["items"][0]["at_ms"] == NOW_MS + 2
    rest = api.get(f"audit-log?page_size=2&page_token={page['next_page_token']}").json
    assert [entry["subject"] for entry in rest["items"]] == ["a", "test"]
    assert rest["next_page_token"] == ""


def test_every_control_change_leaves_an_audit_entry(api):
    api.put("topics/orders", {"queues": 2})
    api.put("topics/orders", {"queues": 3})
    api.group()
    api.group(max_retries=1)
    api.post("groups/billing/pause")
    api.post("groups/billing/resume")
    api.delete("groups/billing")
    api.delete("topics/orders")
    entries = AuditEntry.objects.filter(by="key:test").order_by("pk")
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("topic.create", "orders"),
        ("topic.change", "orders"),
        ("group.create", "billing"),
        ("group.change", "billing"),
        ("group.pause", "billing"),
        ("group.resume", "billing"),
        ("group.delete", "billing"),
        ("topic.delete", "orders"),
    ]


def test_a_put_that_changes_nothing_leaves_no_entry(api):
    api.group()
    api.group()
    assert AuditEntry.objects.filter(subject="billing").count() == 1


def test_what_a_deletion_that_was_cut_short_left_behind_is_not_inherited(api, wiring, monkeypatch):
    api.put("topics/orders", {"queues": 1})
    api.group()
    api.send(body="first")
    assert len(api.receive()) == 1
    with monkeypatch.context() as cut_short:
        cut_short.setattr(wiring.consuming, "drop_group", lambda _: None)
        api.delete("groups/billing?purge=true")
    api.group()
    assert [message["attempt"] for message in api.receive()] == [1]
